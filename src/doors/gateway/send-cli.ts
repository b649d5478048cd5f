// `hermes send`: a message to a chat, through the gateway if it runs, else straight to the platform.

import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { Delivered } from "../../tools/toolset/context.ts";
import { type CliContext, ExitError, readAll } from "../cli-context.ts";
import { composeAnswer } from "./answer.ts";
import type { PlatformAdapter, PlatformEntry, SendOptions, SendResult } from "./contract.ts";
import { textOf } from "./delivery.ts";
import { runningGatewayOf } from "./instance.ts";
import { loneHost } from "./lone-host.ts";
import { allPlatforms } from "./platform-list.ts";
import { Routes } from "./routes.ts";
import { Sender, withSubject } from "./send.ts";
import { GatewaySettings } from "./settings.ts";
import type { ResolvedTarget } from "./targets.ts";

interface Flags {
  readonly to?: string;
  readonly file?: string;
  readonly subject?: string;
  readonly quiet?: true;
  readonly json?: true;
  readonly list?: string | true;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("send a message to a chat; exit code 0 sent or queued, 1 failed, 2 wrong usage")
    .argument("[text...]", "the message; - reads standard input")
    .option("-t, --to <TARGET>", "a platform (its home channel), PLATFORM:CHAT_ID[:THREAD_ID] or PLATFORM:#NAME")
    .option("-f, --file <PATH>", "read the message from a file; - is standard input")
    .option("-s, --subject <TEXT>", "a first line; the subject of an e-mail")
    .option("-q, --quiet", "print nothing on success")
    .option("--json", "print the result as JSON")
    .option("--list [PLATFORM]", "list the chats that can be reached")
    .action((words: readonly string[], flags: Flags) => send(words, flags, ctx));
}

async function send(words: readonly string[], flags: Flags, ctx: CliContext): Promise<void> {
  const { home, io, clock, cwd } = ctx;
  const { sender, entries, deliver } = await openSending({ home, clock, cwd, store: await ctx.store() });
  if (flags.list !== undefined) return list(flags, sender, entries, ctx);
  if (flags.to === undefined) throw new ExitError(2, "hermes send needs a target: -t PLATFORM or -t PLATFORM:CHAT_ID.");
  const text = await messageFrom(words, flags, ctx);
  const cause = `send:cli:${randomBytes(8).toString("hex")}`;
  const result = await deliver(flags.to, text, { cause, subject: flags.subject });
  if (flags.json) io.out(`${JSON.stringify(result)}\n`);
  if ("error" in result) throw new ExitError(1, flags.json ? "" : `${result.error}.`);
  if (flags.json || flags.quiet) return;
  io.out(
    result.queued ? `Queued for ${flags.to}; the gateway sends it as soon as it can.\n` : `Sent to ${flags.to}.\n`,
  );
}

type Sending = Pick<CliContext, "home" | "clock" | "cwd"> & { readonly store: SessionStore };

/** What sends without a turn: through the gateway of this home if it runs, else straight to the platform. */
export async function openSending({ store, ...ctx }: Sending) {
  const { home, clock } = ctx;
  const settings = await GatewaySettings.open(home);
  const work = await store.work();
  const log = home.log.child("gateway");
  const routes = await Routes.open({ home, work, clock, log });
  const known = await allPlatforms(ctx, log);
  const sender = new Sender({
    ...{ settings, work, routes, clock },
    entries: () => known,
    wake: () => undefined,
  });
  return {
    sender,
    /** Platforms that are set up. */
    entries: known.filter((entry) => settings.enabled(entry).on),
    /** Never rejects for what the target is. */
    async deliver(target: string, message: string, about: Pick<Alone, "cause" | "subject">): Promise<Delivered> {
      if ((await runningGatewayOf(home)) === null)
        return sendAlone(target, message, { sender, settings, ctx, ...about });
      return sender.deliver({ target, message, ...about });
    },
  };
}

async function messageFrom(words: readonly string[], { file }: Flags, { io }: CliContext): Promise<string> {
  const isPiped = file === "-" || (words.length === 1 && words[0] === "-");
  const text = isPiped ? await readAll(io.stdin) : file !== undefined ? await fileText(file) : words.join(" ");
  if (text.trim() === "") throw new ExitError(2, "there is no message: write one after the options, or use -f FILE.");
  return text;
}

async function fileText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new ExitError(1, `${path} cannot be read: ${messageOf(error)}.`);
  }
}

async function list(
  flags: Flags,
  sender: Sender,
  entries: readonly PlatformEntry[],
  { io }: CliContext,
): Promise<void> {
  const platform = typeof flags.list === "string" ? flags.list.toLowerCase() : undefined;
  const all = await sender.list(platform);
  const on = new Set(entries.map(({ name }) => name));
  const platforms = Object.fromEntries(Object.entries(all).filter(([name, rows]) => on.has(name) || rows.length > 0));
  if (flags.json) return io.out(`${JSON.stringify({ platforms })}\n`);
  const lines = Object.entries(platforms).flatMap(([name, rows]) =>
    (rows as readonly { id: string; name: string; type: string; home?: true }[]).map(
      (row) => `${name}:${row.id}  ${row.name} (${row.type})${row.home ? "  home" : ""}`,
    ),
  );
  io.out(
    lines.length > 0
      ? `${lines.join("\n")}\n`
      : "No chats are known yet. They are listed once somebody has written, or a home channel is set.\n",
  );
}

// Without a gateway.

interface Alone {
  readonly sender: Sender;
  readonly settings: GatewaySettings;
  readonly ctx: Pick<CliContext, "home" | "clock">;
  readonly cause: string;
  readonly subject?: string | undefined;
}

async function sendAlone(target: string, message: string, alone: Alone): Promise<Delivered> {
  const chats = await alone.sender.resolve(target);
  if ("error" in chats) return chats;
  let last: Delivered = { success: true, note: "local: nothing is sent" };
  for (const chat of chats) {
    last = await sendTo(chat, message, alone);
    if ("error" in last) return last;
  }
  return last;
}

/** One message, without a gateway. Never rejects for what the platform does. */
export async function sendTo(
  { entry, target }: ResolvedTarget,
  message: string,
  alone: Pick<Alone, "settings" | "ctx" | "cause" | "subject">,
): Promise<Delivered> {
  const { settings, ctx, cause, subject } = alone;
  const { home, clock } = ctx;
  const over = new AbortController();
  try {
    const adapter = await entry.open(loneHost(entry, settings.option(entry.name), ctx));
    try {
      if (!entry.sendsAlone)
        await within(() => adapter.connect(over.signal), settings.timers.connect * 1000, clock, over.signal);
      const text = entry.hasSubject ? message : withSubject(message, subject);
      const { payloads } = await composeAnswer(text, { home, settings, entry, origin: "chat" });
      let result: SendResult = { failed: "refused", error: "there is nothing to send" };
      for (const [part, payload] of payloads.entries()) {
        result = await hand(adapter, target, payload, { key: `${cause}#${part}`, subject });
        if ("failed" in result)
          return { error: result.error, code: result.failed === "refused" ? "refused" : "unreachable" };
      }
      const messageId = "failed" in result ? null : result.messageId;
      const thread = target.threadId === undefined ? {} : { thread_id: target.threadId };
      return { success: true, platform: entry.name, chat_id: target.chatId, ...thread, message_id: messageId };
    } finally {
      over.abort();
      await adapter.disconnect().catch(() => undefined); // the message is out
    }
  } catch (error) {
    return { error: messageOf(error), code: "unreachable" };
  }
}

function hand(
  adapter: PlatformAdapter,
  target: ResolvedTarget["target"],
  payload: Awaited<ReturnType<typeof composeAnswer>>["payloads"][number],
  about: Pick<SendOptions, "key" | "subject">,
): Promise<SendResult> {
  const options = { ...about, important: true };
  if (payload.type === "file" && adapter.sendFile) return adapter.sendFile(target, payload.file, options);
  return adapter.send(target, textOf(payload), options);
}
