// Another way from an earlier message on: a branch that ends before it, with the message in the input.
import { t } from "../home/language/words.ts";
import { relativeTime } from "../kit/formats.ts";
import { withoutControls } from "../kit/strip-ansi.ts";
import { textOf } from "../llm/messages.ts";
import { holderInWords } from "../sessions/lanes.ts";
import { newSessionId } from "../sessions/session-id.ts";
import type { StoredMessage } from "../sessions/store.ts";
import type { CommandContext, CommandDefinition, PickItem } from "./context.ts";

const fork: CommandDefinition = {
  name: "fork",
  aliases: ["tree"],
  description: "fork from one of your messages",
  category: "Session",
  argsHint: "[name]",
  keepsText: true,
  async run(args, ctx) {
    const said = await ownMessages(ctx);
    if (said.length === 0) return ctx.say("Nothing to branch from yet.");
    const title = args === "" ? {} : { title: args };
    // Where nothing can be picked, or the copy has a name already, it is a branch of the whole.
    if (!ctx.terminal || args !== "") return branchOff(ctx, title);
    const from = await ctx.pick("Fork before which message? This conversation is not changed.", rowsOf(said, ctx), {
      preview: async (id) => whatFollows(id, said),
    });
    if (from === null) return;
    const chosen = said.find(({ message }) => message.id === from);
    if (!chosen) return branchOff(ctx, title);
    await branchOff(ctx, { ...title, before: from });
    ctx.offerInput(chosen.text);
    if (Array.isArray(chosen.message.content))
      ctx.warn("Only the text of that message was restored, not its pictures.");
  },
};

const branch: CommandDefinition = {
  name: "branch",
  description: "branch: continue in a copy of this conversation",
  category: "Session",
  argsHint: "[name]",
  keepsText: true,
  run: (args, ctx) => branchOff(ctx, args === "" ? {} : { title: args }),
};

export const FORK_COMMANDS: readonly CommandDefinition[] = [branch, fork];

async function branchOff(
  ctx: CommandContext,
  { title, before }: { readonly title?: string; readonly before?: number },
): Promise<void> {
  const { sessionId } = ctx.conversation.agent;
  // What was compressed since lies in an earlier session of the same conversation.
  const source = before === undefined ? sessionId : ((await ctx.store.locateMessage(before))?.sessionId ?? sessionId);
  const session = await ctx.store.get(source);
  if (!session || session.messageCount === 0) return ctx.say("Nothing to branch from yet.");
  const present = (await ctx.conversation.title()) ?? session.title;
  const name = title ?? (present === null ? undefined : await ctx.store.nextTitle(present));
  const copy = newSessionId(ctx.clock);
  const options = { ...(name ? { title: name } : {}), ...(before === undefined ? {} : { before }) };
  const { inUseBy } = await ctx.store.branch(source, copy, options);
  await ctx.resumeSession(copy);
  ctx.say(`This is a branch of ${present ?? sessionId}${name ? `, called ${name}` : ""}.`);
  if (inUseBy !== null) ctx.say(`It ends before the turn that ${holderInWords(inUseBy)} is still running.`);
}

interface Said {
  readonly message: StoredMessage;
  readonly text: string;
  /** The answer it got; empty when there was none. */
  readonly answer: string;
}

/** What the user said, newest first. What a compression carried on is listed once, as it stands now. */
async function ownMessages({ store, conversation }: CommandContext): Promise<readonly Said[]> {
  const { isRealUser, summaryAbove, wordsOf } = await import("../agent/compression/summary-text.ts");
  const { withoutPictureWords } = await import("../llm/pictures/fit.ts");
  const said: Said[] = [];
  for (const id of await store.conversation(conversation.agent.sessionId)) {
    const rows = await store.load(id);
    const carriedOn = lastCopy(await store.getValue(id, "compression"), id);
    const seen = new Set<Said>();
    for (const [at, message] of rows.entries()) {
      if (!isRealUser(message)) continue;
      const next = { message, text: withoutPictureWords(wordsOf(message)).text.trim(), answer: answerBehind(at, rows) };
      const before = said.findLastIndex((one) => one.text === next.text && !seen.has(one));
      const isCopy = message.id <= carriedOn && before >= 0;
      seen.add(next);
      if (!isCopy) said.push(next);
      // A branch that ends before a message with the summary above it would lose the summary.
      else if (summaryAbove(message) === null) said[before] = next;
    }
  }
  return said.toReversed();
}

/** The last row that a compression wrote into a session; 0 for one that began by itself. */
function lastCopy(written: unknown, id: string): number {
  if (typeof written !== "object" || written === null || !("child" in written) || !("last" in written)) return 0;
  return written.child === id && typeof written.last === "number" ? written.last : 0;
}

function answerBehind(at: number, rows: readonly StoredMessage[]): string {
  const next = rows.findIndex(({ role }, index) => index > at && role === "user");
  const turn = rows.slice(at + 1, next < 0 ? undefined : next);
  const answer = turn.findLast(({ role, content }) => role === "assistant" && textOf(content).trim() !== "");
  return textOf(answer?.content ?? null).trim();
}

/** No message of the store has this id. */
const WHOLE = -1;

function rowsOf(said: readonly Said[], ctx: CommandContext): readonly PickItem<number>[] {
  const rows = said.map(({ message, text }) => ({
    label: oneLine(text) || "[picture]",
    hint: [relativeTime(message.timestamp, ctx.now())],
    value: message.id,
  }));
  return [{ label: t("(after the last answer: copy the whole conversation)"), hint: [""], value: WHOLE }, ...rows];
}

function whatFollows(id: number, said: readonly Said[]): string {
  const chosen = said.find(({ message }) => message.id === id);
  if (!chosen) return "The copy contains the whole conversation so far.";
  return `❯ ${oneLine(chosen.text)}\n⚕ ${oneLine(chosen.answer) || "(no answer)"}`;
}

const oneLine = (text: string) => withoutControls(text).replace(/\s+/g, " ").trim();
