// Where a request stops being the beginning of the next one, told from the bodies a server received and from nothing else.
import type { RecordedRequest } from "./model-server/script.ts";

type Recorded = Pick<RecordedRequest, "wire" | "body">;

/** What was rewritten, in words; null when nothing was. Cache markers are laid over the bytes and do not count. */
export function firstBreak(before: Recorded, now: Recorded): string | null {
  const [a, b] = [partsOf(before), partsOf(now)];
  if (a.system !== b.system) return `the system text (${difference(a.system, b.system)})`;
  if (a.tools !== b.tools) return `the tool list (${difference(a.tools, b.tools)})`;
  const at = a.messages.findIndex((message, index) => message !== b.messages[index]);
  if (at < 0) return null;
  const [old = "", next] = [a.messages[at], b.messages[at]];
  const grown = next !== undefined && at === a.messages.length - 1 && hasGrown(JSON.parse(old), JSON.parse(next));
  return grown ? null : `message ${at} (${difference(old, next ?? "")})`;
}

interface Spoken {
  readonly role?: string;
  readonly content?: string | readonly { readonly text?: string }[];
}

/** A user whose answer never came may go on where he ended: in his text, or with more parts. */
function hasGrown(before: Spoken, now: Spoken): boolean {
  if (before.role !== "user" || now.role !== "user") return false;
  const [was, is] = [before.content, now.content];
  if (typeof was === "string" || typeof is === "string")
    return typeof was === "string" && typeof is === "string" && is.startsWith(was);
  return (was ?? []).every((part, index) => {
    const [then, next] = [JSON.stringify(part), is?.[index]];
    if (then === JSON.stringify(next)) return true;
    const last = index === (was ?? []).length - 1;
    return last && part.text !== undefined && next?.text?.startsWith(part.text) === true;
  });
}

/** The system text as one, in whatever parts it came. */
export function systemOf({ wire, body }: Recorded): string {
  const system =
    wire === "anthropic" ? body.system : wire === "responses" ? body.instructions : body.messages[0].content;
  return typeof system === "string" ? system : system.map((part: { text: string }) => part.text).join("");
}

function partsOf({ wire, body }: Recorded) {
  const strip = (value: unknown) =>
    JSON.stringify(value ?? null, (key, inner) => (key === "cache_control" ? undefined : inner));
  const spoken: readonly unknown[] = wire === "responses" ? body.input : body.messages;
  return {
    system: systemOf({ wire, body }),
    tools: strip(body.tools),
    messages: spoken.slice(wire === "chat" ? 1 : 0).map(strip),
  };
}

function difference(a: string, b: string): string {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return `${JSON.stringify(a.slice(Math.max(0, at - 20), at + 40))} became ${JSON.stringify(b.slice(Math.max(0, at - 20), at + 40))}`;
}
