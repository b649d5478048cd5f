// Commands about the next message, the running turn, and taking messages back.

import type { TakenBack } from "../agent/transcript.ts";
import { askHolder, type Heard, heardInWords } from "../sessions/controls.ts";
import type { Control } from "../sessions/work.ts";
import { undoCompression } from "./compression.ts";
import { type CommandContext, type CommandDefinition, confirmDestructive } from "./context.ts";
import { stopGoal } from "./goals.ts";
import { takeSkipWord } from "./registry.ts";

const queue: CommandDefinition = {
  name: "queue",
  aliases: ["q"],
  description: "queue a message for after this turn; without one, edit the queue",
  category: "Session",
  editor: true,
  argsHint: "[prompt]",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args !== "") {
      // A screen shows its queue; a chat has to be told.
      if (ctx.chat && ctx.busy) ctx.say("Queued. It gets a turn of its own when this one is done.");
      return ctx.queue(args);
    }
    if (ctx.waiting.length === 0) return ctx.say("The queue is empty. /queue <prompt> adds a message.");
    if (ctx.terminal) return ctx.terminal.openQueue();
    ctx.say(ctx.waiting.map((text, index) => `${index + 1}. ${text}`).join("\n"));
  },
};

const steer: CommandDefinition = {
  name: "steer",
  description: "send a message into the running turn",
  category: "Session",
  editor: true,
  argsHint: "<prompt>",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args === "") return ctx.warn("/steer needs a text: /steer <prompt>");
    const elsewhere = await steeredElsewhere(args, ctx);
    if (elsewhere !== null) return ctx.say(elsewhere);
    if (!ctx.busy) return ctx.submit(args);
    // Busy without a turn, for example while compressing: the text waits for a turn of its own. So do pictures: no result carries them.
    if ((ctx.terminal?.pictures ?? 0) > 0 || !ctx.conversation.agent.steer(args)) return ctx.queue(args);
    ctx.say(`↪ with the next tool result: ${ctx.home.redact.fromUser(args).text}`);
  },
};

const stop: CommandDefinition = {
  name: "stop",
  description: "stop the running turn and the background processes",
  category: "Session",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    if (await stopGoal(ctx)) ctx.say("⏸ Goal paused. /goal resume continues, /goal clear drops it.");
    if (ctx.chat) return ctx.say(await ctx.chat.stop());
    const { busy } = ctx;
    if (busy) ctx.conversation.agent.interrupt("stopped by the user");
    const ended = await ctx.conversation.processes.stopAll();
    if (ended > 0) return ctx.say(`${ended} background process${ended === 1 ? "" : "es"} stopped.`);
    if (busy) return;
    const asked = await askElsewhere(ctx, { kind: "interrupt", says: {} });
    if (asked !== null) return ctx.say(heardInWords(asked));
    const prompts = ctx.background?.running.length ?? 0;
    ctx.say(
      prompts === 0 ? "Nothing is running." : "Only background prompts are running; /agents stop <id> stops one.",
    );
  },
};

/** Whoever works on this conversation, if that is another process. */
async function askElsewhere(
  { conversation, store, clock, busy }: CommandContext,
  request: Pick<Control, "kind" | "says">,
): Promise<Heard | null> {
  if (busy) return null;
  return askHolder(await store.work(), conversation.agent.sessionId, request, { clock });
}

async function steeredElsewhere(text: string, ctx: CommandContext): Promise<string | null> {
  if (ctx.chat) return ctx.chat.steerElsewhere(text);
  const asked = await askElsewhere(ctx, { kind: "steer", says: { text } });
  return asked?.state === "taken" ? heardInWords(asked) : null;
}

const retry: CommandDefinition = {
  name: "retry",
  description: "resend the last message",
  category: "Session",
  async run(_args, ctx) {
    const [said] = await ctx.conversation.agent.undo(1);
    if (said === undefined) return ctx.say("Nothing to resend yet.");
    ctx.terminal?.takenBack(1);
    if (said.picturesLost) return offer(said, ctx);
    ctx.submit(said.text, said);
  },
};

function offer(said: TakenBack, ctx: CommandContext): void {
  if (said.picturesLost) ctx.warn("Pictures are not kept when a conversation is resumed: attach them again.");
  ctx.offerInput(said.text, said);
}

const undo: CommandDefinition = {
  name: "undo",
  description: "undo the last messages and their answers",
  category: "Session",
  argsHint: "[N]",
  destructive: true,
  async run(typed, ctx) {
    const { args, skip } = takeSkipWord(typed);
    const turns = args === "" ? 1 : Number(args);
    if (!Number.isInteger(turns) || turns < 1) return ctx.warn(`/undo takes a number of messages, not "${args}".`);
    if (args === "" && (await undoCompression(ctx))) return;
    const what = turns === 1 ? "Undo the last message?" : `Undo the last ${turns} messages?`;
    const detail = "The answers go too. File changes made by tools stay.";
    if (!(await confirmDestructive(ctx, { what, detail, skip }))) return;
    const said = await ctx.conversation.agent.undo(turns);
    if (said.length === 0) return ctx.say("Nothing to undo yet.");
    ctx.terminal?.takenBack(said.length);
    const gone = said.length === 1 ? "1 message and its answers" : `${said.length} messages and their answers`;
    ctx.say(`↶ Undid ${gone}.${ctx.terminal ? " Your text is back in the input line." : ""}`);
    if (said[0]) offer(said[0], ctx);
  },
};

const compose: CommandDefinition = {
  name: "prompt",
  aliases: ["compose"],
  description: "write the next message in your editor",
  category: "Session",
  availability: "cli",
  async run(_args, ctx) {
    await ctx.terminal?.compose();
  },
};

const image: CommandDefinition = {
  name: "image",
  description: "attach a picture to your next message",
  category: "Info",
  argsHint: "<path> [text]",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args === "") return ctx.warn("/image needs a path: /image pic.png [text]. /paste attaches the clipboard.");
    const text = (await ctx.terminal?.attach(args)) ?? "";
    if (text !== "") ctx.submit(text);
  },
};

const paste: CommandDefinition = {
  name: "paste",
  description: "attach the picture on the clipboard, or paste its text",
  category: "Info",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    await ctx.terminal?.paste();
  },
};

export const TURN_COMMANDS: readonly CommandDefinition[] = [queue, steer, stop, retry, undo, compose, image, paste];
