// A key that the user pastes: masked before anything is stored or sent, so that no byte has to be taken back later; then it is offered a
// home in .env.
import type { PastedKey } from "../home/open.ts";
import { hermesCommand } from "../home/paths.ts";
import { messageOf } from "../kit/errors.ts";
import type { UserInput } from "../llm/messages.ts";
import { PROVIDERS } from "../llm/providers/table.ts";
import type { Ask } from "../safety/decision.ts";
import type { Assembly } from "./assembly.ts";
import type { AgentEventBody } from "./events.ts";

/** At most so many questions for one message. */
const MOST_OFFERS = 3;

/** What is said, without the keys in it. The same input when there are none. */
export function withoutKeys(input: UserInput, { pasted }: Assembly): { input: UserInput; keys: readonly PastedKey[] } {
  if (!pasted) return { input, keys: [] };
  const text = pasted.find(input.text);
  const kept = input.persistText === undefined ? undefined : pasted.find(input.persistText);
  const parts = input.parts?.map((part) =>
    part.type === "text" ? { ...part, text: pasted.find(part.text).text } : part,
  );
  if (
    text.text === input.text &&
    kept?.text === input.persistText &&
    !input.parts?.some((part) => part.type === "text")
  )
    return { input, keys: [] };
  return {
    input: { ...input, text: text.text, ...(kept && { persistText: kept.text }), ...(parts && { parts }) },
    keys: kept?.keys ?? text.keys,
  };
}

/** Says what was masked; where somebody can be asked, offers to keep it. Never fails: a key that cannot be kept is told. */
export async function offerToKeep(
  keys: readonly PastedKey[],
  { pasted, model }: Assembly,
  { ask, emit }: { readonly ask: Ask; readonly emit: (event: AgentEventBody) => void },
): Promise<void> {
  if (!pasted || keys.length === 0) return;
  const say = (message: string, kind: "warn" | "done" = "warn") =>
    emit({ type: "status", kind, message, changedInput: true });
  const open: PastedKey[] = [];
  const done: string[] = [];
  for (const [index, key] of keys.entries()) {
    const { name, value, shown } = key;
    if (name === null || value.includes("\n") || index >= MOST_OFFERS) {
      open.push(key);
      continue;
    }
    const { choice } = await ask({
      kind: "confirm",
      onceOnly: true,
      title: `Keep ${shown} in ${pasted.file} as ${name}?`,
      detail: `It is masked in this conversation either way.${pasted.has(name) ? ` ${name} is already set; its value would be replaced.` : ""}`,
    });
    if (choice === "cancel") open.push(key);
    else {
      try {
        const also = await pasted.keep(name, value);
        const unused = model.target.provider === "demo" && PROVIDERS.some(({ keyEnv }) => keyEnv.includes(name));
        const use = unused ? ` To use it, choose a model: ${hermesCommand("model")}` : "";
        done.push(
          `${shown} is kept as ${name} in ${pasted.file} and masked here.${use}${also === null ? "" : ` ${also}`}`,
        );
      } catch (error) {
        say(`${name} could not be kept: ${messageOf(error)}`);
        open.push(key);
      }
    }
  }
  for (const line of done) say(line, "done");
  if (open.length > 0) say(maskedLine(open));
}

/** What the user is told of keys that were taken out and kept nowhere. */
export function maskedLine(keys: readonly PastedKey[]): string {
  const names = keys.map(({ shown, name }) => (name === null ? shown : `${shown} (${name})`));
  const example = keys.find(({ name }) => name !== null)?.name ?? "NAME";
  return `Masked in your message, not stored and not sent: ${names.join(", ")}. To keep a key for Hermes: hermes config set ${example}`;
}
