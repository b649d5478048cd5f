// The end of a conversation on the screen: store it, close it, show how to resume it.

import type { Agent } from "../../agent/agent.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { said, t } from "../../home/language/words.ts";
import type { OpenHome } from "../../home/open.ts";
import { hermesCommand } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { exactDuration, plural } from "../../kit/formats.ts";
import { withoutControls } from "../../kit/strip-ansi.ts";
import { HANGUP } from "./status.ts";

interface GoodbyeParts {
  readonly home: OpenHome;
  /** Conversations that were left before this one. */
  readonly leftBehind: Iterable<Agent>;
  readonly startedAt: number;
  /** The last word of a conversation in which nothing was said; empty = the usual one. */
  readonly word: string;
  now(): number;
  /** Resolves when the turn and the work in the background have ended. */
  settled(): Promise<unknown>;
}

/** Ends the session and says how to come back. The terminal is the shell's again. */
export async function sayGoodbye(conversation: OpenAgent, code: number, parts: GoodbyeParts): Promise<void> {
  const { home } = parts;
  await Promise.all([...parts.leftBehind].map((agent) => agent.close()));
  const grace = Number(home.env("HERMES_SIGTERM_GRACE") ?? "") || 1.5;
  const timer = Promise.withResolvers<void>();
  const waiting = setTimeout(timer.resolve, grace * 1000);
  await Promise.race([parts.settled(), timer.promise]);
  clearTimeout(waiting);
  // There is no time for it after a signal.
  const say = (line: string) => process.stdout.write(withoutControls(`${line}\n`));
  if (code === 0) await lastLook(conversation.agent, home.config().memory.flush_wait, say);
  const seconds = (parts.now() - parts.startedAt) / 1000;
  const text = await farewell(conversation, {
    profile: home.paths.profile,
    seconds,
    lost: home.unwritable !== null,
    word: parts.word,
  });
  if (code !== HANGUP) process.stdout.write(withoutControls(text));
}

/** What nobody expected. The terminal is the shell's again. */
export async function tellCrash(home: OpenHome, error: unknown): Promise<void> {
  home.log.error("the screen crashed", error);
  const details = home.display(home.paths.at("logs", "errors.log"));
  process.stderr.write(
    withoutControls(`${t("hermes: {what} (details: {file})", { what: messageOf(error), file: details })}\n`),
  );
  await home.close();
}

interface FarewellFacts {
  readonly word: string;
  readonly profile: string;
  readonly seconds: number;
  /** It was held in memory only. */
  readonly lost: boolean;
}

/** Closes the conversation and returns what is left on the terminal. */
async function farewell(conversation: OpenAgent, facts: FarewellFacts): Promise<string> {
  const { store, agent } = conversation;
  const session = await store.get(agent.sessionId);
  await conversation.close("cli_close");
  if (!session || session.messageCount === 0) return `${facts.word || t("Goodbye.")}\n`;
  const messages = await store.load(session.id);
  const summary = exitSummary({
    ...facts,
    sessionId: session.id,
    title: session.title,
    messages: messages.length,
    userMessages: messages.filter((message) => message.role === "user").length,
    toolCalls: session.toolCallCount,
  });
  return `\n${summary}\n`;
}

// What is left on the terminal after the screen is gone.

interface SummaryFacts {
  readonly sessionId: string;
  readonly title: string | null;
  readonly profile: string;
  readonly seconds: number;
  readonly messages: number;
  readonly userMessages: number;
  readonly toolCalls: number;
  /** It was held in memory only. */
  readonly lost?: boolean;
}

function exitSummary(facts: SummaryFacts): string {
  const profile = facts.profile === "default" ? "" : ` -p ${facts.profile}`;
  const goingOn = [
    "Resume this conversation with:",
    `  ${hermesCommand(`--resume ${facts.sessionId}${profile}`)}`,
    ...(facts.title ? [`  ${hermesCommand(`-c ${JSON.stringify(facts.title)}${profile}`)}`] : []),
  ];
  return [
    ...(facts.lost ? ["This conversation was kept in memory only and was not saved."] : goingOn),
    "",
    `Session:   ${facts.sessionId}`,
    ...(facts.title ? [`Title:     ${facts.title}`] : []),
    `Duration:  ${exactDuration(facts.seconds)}`,
    `Messages:  ${facts.messages} (${facts.userMessages} user, ${plural(facts.toolCalls, "tool call")})`,
  ]
    .map(said)
    .join("\n");
}

/** Saves memories before a conversation is left. Nobody waits longer than the settings say for a model that takes its time. */
export async function lastLook(agent: Agent, seconds: number, say: (line: string) => void): Promise<void> {
  if (!agent.wantsToSave || seconds === 0) return;
  say(`Saving memories … (at most ${seconds}s; Ctrl+C skips)`);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    agent.interrupt();
  }, seconds * 1000);
  const lines = await agent.saveMemories().finally(() => clearTimeout(timer));
  for (const line of lines) say(`  ${line}`);
  if (late && lines.length === 0) say("  No answer yet; this will be done when you resume the conversation.");
}
