// Slash commands over a real home, a real store and the model that needs no network; only the surface is the test's own.
import type { TestContext } from "node:test";
import { BackgroundTasks } from "../../src/agent/background.ts";
import { openAgent } from "../../src/agent/open.ts";
import type { OpenRequest } from "../../src/agent/open-request.ts";
import { builtinCommands } from "../../src/commands/builtin.ts";
import type { CommandContext } from "../../src/commands/context.ts";
import { dispatchTyped } from "../../src/commands/dispatch.ts";
import { menuSkills } from "../../src/commands/skills.ts";
import { TerminalGoals } from "../../src/doors/terminal/goals.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { openRequest } from "./open-request.ts";
import { tempHome } from "./temp-home.ts";

export interface CommandRig {
  readonly ctx: CommandContext;
  /** Everything that was shown, submitted or put into the input, in order. */
  readonly heard: string[];
  /** What the surface answers to the next questions. */
  readonly answers: ("once" | "always" | "cancel")[];
  /** What the next pickers take: the first row that has this in it, null = cancelled; without one, the first row. */
  readonly picks: (string | null)[];
  busy: boolean;
  /** The goal has a turn coming. */
  goalWaits: boolean;
  /** Types a line; false = it belongs to the model. */
  type(text: string): Promise<boolean>;
  /** One whole turn. */
  chat(text: string): Promise<string>;
  text(): string;
}

const withParts = (parts: readonly unknown[]) => (parts.length === 0 ? "" : ` with ${parts.length} pictures`);

export async function commandRig(
  t: TestContext,
  files: Readonly<Record<string, string>> = {},
  { masked = false, ...more }: Pick<OpenRequest, "ignoreRules"> & { readonly masked?: boolean } = {},
): Promise<CommandRig> {
  const temp = await tempHome(files);
  const { home, store, request: plain } = await openRequest(temp, { masked });
  const request = { ...plain, interactive: true, ...more };
  let conversation = await openAgent(request);
  const heard: string[] = [];
  const answers: CommandRig["answers"] = [];
  const picks: CommandRig["picks"] = [];
  const switchTo = async (name: string | undefined, title?: string) => {
    const next = await openAgent({ ...request, ...(name === undefined ? {} : { resume: { name } }) });
    await conversation.close(name === undefined ? "new_session" : "resumed_other");
    conversation = next;
    if (title) await next.setTitle(title);
    heard.push(`switched to ${name ?? "new"}${title ? ` (${title})` : ""}`);
  };
  const background = new BackgroundTasks({
    clock: systemClock,
    onReport: ({ id, status, text }) => void heard.push(`${id} ${status}: ${text}`),
  });
  // The screen's own, with a queue that only tells what comes next.
  const turns = {
    isTaken: false,
    continueGoal(wanted: boolean) {
      rig.goalWaits = wanted;
      if (wanted) heard.push("the goal goes on");
    },
    queue: ({ text }: { readonly text: string }) => void heard.push(`first turn: ${text}`),
  };
  const page = {
    info: (text: string) => void heard.push(text),
    warn: (text: string) => void heard.push(`warning: ${text}`),
  };
  const goals = new TerminalGoals(request, () => turns, page);
  await goals.begin(conversation);
  const ctx: CommandContext = {
    home,
    store,
    clock: systemClock,
    cwd: temp.project,
    platform: "cli",
    get conversation() {
      return conversation;
    },
    get busy() {
      return rig.busy;
    },
    waiting: [],
    lastListed: [],
    now: () => systemClock.now() / 1000,
    say: (text) => void heard.push(text),
    warn: (text) => void heard.push(`warning: ${text}`),
    submit: (text, { parts = [] } = {}) => void heard.push(`submitted: ${text}${withParts(parts)}`),
    queue: (text, { shownAs } = {}) =>
      void heard.push(shownAs === undefined ? `queued: ${text}` : `queued as ${shownAs}: ${text}`),
    offerInput: (text, { parts = [] } = {}) => void heard.push(`input: ${text}${withParts(parts)}`),
    pick: async (title, items) => {
      heard.push(`${title}: ${items.map((item) => item.label).join(" | ")}`);
      const wanted = picks.shift();
      if (wanted === null) return null;
      return items.find(({ label }) => wanted === undefined || label.includes(wanted))?.value ?? null;
    },
    confirm: async (title) => {
      heard.push(`asked: ${title}`);
      return answers.shift() ?? "cancel";
    },
    startSession: ({ title }) => switchTo(undefined, title),
    resumeSession: (id) => switchTo(id),
    commands: () => "the help",
    skillCommands: () => menuSkills(ctx, builtinCommands()),
    get goals() {
      return goals.present;
    },
    background: {
      get running() {
        return background.running;
      },
      start: (prompt) => background.start(prompt, request, conversation),
      stop: (id) => background.stop(id),
    },
    quit: ({ deleteSession }) => void heard.push(`quit${deleteSession ? " and delete" : ""}`),
    terminal: {
      clearScreen: () => void heard.push("cleared"),
      redraw: () => void heard.push("redrawn"),
      copy: async (text) => {
        heard.push(`copied: ${text}`);
        return "somehow";
      },
      compose: async () => void heard.push("composed"),
      attach: async (line) => {
        heard.push(`attached: ${line}`);
        return line.split(" ").slice(1).join(" ");
      },
      paste: async () => void heard.push("pasted"),
      pictures: 0,
      keys: () => "Ctrl+C  stop",
      openQueue: async () => void heard.push("the queue"),
      setup: async () => undefined,
      toggleStatusLine: () => true,
      toggleTodos: () => "The task list is shown.",
      takenBack: (turns) => void heard.push(`taken back: ${turns}`),
    },
  };
  const rig: CommandRig = {
    ctx,
    heard,
    answers,
    picks,
    busy: false,
    goalWaits: false,
    type: (text) =>
      dispatchTyped(text, builtinCommands(), ctx, {
        kind: "terminal",
        interrupt: async () => {
          heard.push("interrupted");
          rig.busy = false;
        },
      }),
    chat: (text) => conversation.agent.chat(text),
    text: () => heard.splice(0).join("\n"),
  };
  t.after(async () => {
    goals.close();
    await background.close();
    await conversation.close("cli_close");
    await store.close();
    await home.close();
    await temp[Symbol.asyncDispose]();
  });
  return rig;
}
