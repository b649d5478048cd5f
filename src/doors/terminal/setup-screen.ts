// `/setup`: the steps of setup between the transcript and the input line, without leaving the screen.
import { said } from "../../home/language/words.ts";
import { hermesCommand } from "../../home/paths.ts";
import { runSetup, SECTIONS } from "../setup.ts";
import { type SetupQuestion, SetupSkipped, type SetupSurface } from "../setup-model.ts";
import type { SurfaceParts } from "./command-surface.ts";

export async function setUpOnScreen(word: string, parts: SurfaceParts): Promise<void> {
  const { request, transcript } = parts;
  const section = SECTIONS.find((name) => name === word);
  if (word !== "" && section === undefined)
    return parts.warn(`There is no section "${word}". Sections: ${SECTIONS.join(", ")}.`);
  const elsewhere = {
    tools: "Use /tools to enable and disable toolsets.",
    gateway: `Connect chats in a shell: ${hermesCommand("gateway setup")}`,
  };
  if (section === "tools" || section === "gateway") return transcript.info(elsewhere[section]);
  const pointTo = (text: string) => async () => {
    transcript.info(text);
    throw new SetupSkipped(); // nothing of it was set here
  };
  const setup = {
    home: request.home,
    surface: surfaceOf(parts),
    fetch,
    tools: pointTo(elsewhere.tools),
    gateway: pointTo(elsewhere.gateway),
  };
  const { saved, connected, cancelled } = await runSetup(setup, { section });
  const what = saved.length === 0 ? "nothing was saved" : `saved: ${[...new Set(saved)].join(", ")}`;
  if (cancelled) transcript.info(`Setup cancelled; ${what}.`);
  if (connected === null) {
    if (saved.length > 0 && !cancelled) transcript.info("It applies to new conversations: /new");
    return;
  }
  const [now = ""] = (await parts.conversation().switchModel(connected)).split("\n"); // the rest was said by setup
  transcript.info(now);
  if (!cancelled) transcript.info("Type a message and press Enter.");
}

function surfaceOf({ questions, transcript, warn }: SurfaceParts): SetupSurface {
  return {
    signal: new AbortController().signal, // nothing here waits longer than a request to a server
    say: (text) => transcript.info(text),
    warn: (text) => warn(text),
    async pick<T>({ title, choices, selected }: SetupQuestion<T>): Promise<T> {
      // In boxes, because null is a value here and means "left" there.
      const boxed = choices.map((choice) => ({ ...choice, label: said(choice.label), value: { value: choice.value } }));
      const taken = await questions.pick(title, boxed, { filter: true, numbers: false, selected: selected ?? 0 });
      if (taken === null) throw new SetupSkipped();
      return taken.value;
    },
    async ask(prompt, { hidden = false } = {}) {
      const typed = await questions.type(said(prompt.trim()).replace(/[:：]\s*$/, ""), { hidden });
      if (typed === null) throw new SetupSkipped();
      return typed;
    },
  };
}
