// The commands of `hermes kanban` around cards that are not work yet, chats that are told, and what looks wrong.
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { profileExists } from "../home/profiles.ts";
import type { Boards } from "../kanban/boards.ts";
import { BoardError, cardOf, forgetEvents, listCards, setModel } from "../kanban/cards.ts";
import { oneLine } from "../kanban/context-text.ts";
import { diagnose, SEVERITIES, type Severity } from "../kanban/diagnostics.ts";
import type { BoardFile } from "../kanban/schema.ts";
import { subscribe, subscriptionsOf, type ToldChat, unsubscribe } from "../kanban/subscriptions.ts";
import { decomposeCard, specifyCard, startSwarm } from "../kanban/triage.ts";
import { tagWorkerSessions } from "../kanban/worker-sessions.ts";
import { messageOf } from "../kit/errors.ts";
import { plural } from "../kit/formats.ts";
import { parseJson } from "../kit/json.ts";
import type { KanbanWorld } from "./kanban.ts";
import { triagePorts } from "./kanban-side.ts";

interface Triaging {
  readonly boards: () => Boards;
  /** The board that is meant. */
  slug(): Promise<string>;
  onBoard<T>(work: (board: BoardFile) => Promise<T> | T): Promise<T>;
  readonly world: KanbanWorld;
  author(): string;
  readonly whole: (text: string) => number;
  /** Throws for a name that is no profile. */
  checkAssignee(name: string): void;
}

interface Json {
  readonly json?: true;
}

export function defineTriage(command: Command, triaging: Triaging): void {
  const { boards, slug, onBoard, world, author, whole, checkAssignee } = triaging;
  const out: KanbanWorld["out"] = (...said) => world.out(...said);
  const json = (child: Command) => child.option("--json", "machine-readable");
  const data = (value: unknown) => out(`${JSON.stringify(value, null, 2)}\n`, { asIs: true });
  const now = () => world.clock.now() / 1000;

  for (const [name, does, act] of [
    ["specify", "let a model turn ideas into cards that can be worked on", specifyCard],
    ["decompose", "let a model split cards among the profiles", decomposeCard],
  ] as const)
    json(command.command(name))
      .description(does)
      .argument("[id...]", "cards in triage")
      .option("--all", "every card in triage")
      .action(async (ids: readonly string[], flags: Json & { readonly all?: true }) => {
        if ((ids.length === 0) === (flags.all !== true))
          throw new BoardError(`name cards in triage, or use --all: hermes kanban ${name} ID`);
        const ports = triagePorts(world, new AbortController().signal);
        const results: object[] = [];
        await onBoard(async (board) => {
          const chosen = flags.all ? listCards(board.db, { status: "triage" }).map(({ id }) => id) : ids;
          for (const id of chosen)
            try {
              const { children } = await act(board, id, ports);
              const { status, assignee } = cardOf(board.db, id);
              results.push({ id, status, assignee, children });
              if (!flags.json)
                out(`✓ ${id} ${status}${children.length > 0 ? `, split into ${children.join(", ")}` : ""}\n`);
            } catch (error) {
              results.push({ id, error: messageOf(error) });
              if (!flags.json) world.err(`✗ ${named(id, messageOf(error))}\n`);
              world.failed();
            }
          if (!flags.json && chosen.length === 0) out("No card is in triage.\n");
        });
        if (flags.json) data(results);
      });
  json(command.command("swarm"))
    .description("let several profiles work side by side, one check their work, and one put it together")
    .argument("<goal...>", "the goal")
    .requiredOption("--worker <PROFILE:TITLE...>", "a profile and its part", partsOf)
    .requiredOption("--verifier <PROFILE>", "who checks the parts")
    .requiredOption("--synthesizer <PROFILE>", "who puts the results together")
    .action(async (words: readonly string[], flags: Json & SwarmFlags) => {
      const { worker: workers, verifier, synthesizer } = flags;
      for (const one of [...workers.map(({ profile }) => profile), verifier, synthesizer]) checkAssignee(one);
      const goal = words.join(" ");
      const { sessionId, chat } = world.conversation ?? {};
      const made = await onBoard((board) =>
        board.change((change) => {
          const swarm = startSwarm(change, { goal, workers, verifier, synthesizer, by: author(), sessionId });
          if (chat && world.home.config().kanban.auto_subscribe_on_create)
            for (const id of [...swarm.workers, swarm.verifier, swarm.synthesizer]) subscribe(change, id, chat);
          return swarm;
        }),
      );
      if (flags.json) return data(made);
      out(`✓ ${made.root}: ${made.workers.length} workers (${made.workers.join(", ")}), `);
      out(`then ${made.verifier} verifies and ${made.synthesizer} puts it together\n`);
    });
  defineTold(command, { onBoard, world });

  json(command.command("diagnostics"))
    .description("show what looks wrong, and what to do about it")
    .addOption(new Option("--severity <LEVEL>", "only this severity or worse").choices([...SEVERITIES]))
    .option("--task <ID>", "only this card")
    .action(async (flags: Json & { readonly severity?: Severity; readonly task?: string }) => {
      const model = await triagePorts(world, new AbortController().signal)
        .auxiliary()
        .then((client) => client?.resolveAux("kanban_decomposer") ?? null)
        .catch(() => null); // none can be asked
      const isProfile = (name: string) => profileExists(world.home.paths.root, name);
      const found = await onBoard((board) => {
        if (flags.task !== undefined) cardOf(board.db, flags.task);
        const chosen = { severity: flags.severity, card: flags.task };
        return diagnose(board.db, { now: now(), hasModel: model !== null, isProfile }, chosen);
      });
      if (flags.json) return data(found);
      if (found.length === 0) return out("✓ Nothing looks wrong.\n");
      for (const { severity, task_id: id, title, message, actions } of found) {
        out(
          `${severity === "warning" ? "⚠" : "✗"} ${severity}  ${id}  ${oneLine(title)}\n  ${oneLine(message, 500)}\n`,
          { asIs: true },
        );
        for (const action of actions) out(`    ${action}\n`, { asIs: true });
      }
    });
  command
    .command("set-model")
    .description("choose the model that works on a card")
    .argument("<id>", "the card")
    .argument("<model>", "the model, or none for that of its profile")
    .option("--provider <NAME>", "the provider of that model")
    .action(async (id: string, given: string, { provider }: { readonly provider?: string }) => {
      const model = given === "none" ? null : given;
      await onBoard((board) => board.change((change) => setModel(change, id, model, provider ?? null)));
      out(model === null ? `✓ ${id} uses the model of its profile\n` : `✓ ${id} uses ${model}\n`);
    });
  command
    .command("gc")
    .description("remove old logs, and old events of finished cards")
    .option("--event-retention-days <N>", "days to keep events", whole, 30)
    .option("--log-retention-days <N>", "days to keep logs", whole, 30)
    .action(async (flags: { readonly eventRetentionDays: number; readonly logRetentionDays: number }) => {
      const { events, logs } = await onBoard(async (board) => ({
        events: await board.change((change) => forgetEvents(change, flags.eventRetentionDays)),
        logs: await removeLogs(board, boards().place(await slug()).logs, flags.logRetentionDays),
      }));
      const workers = await tagWorkerSessions(await world.store(), boards());
      if (workers > 0) out(`✓ ${plural(workers, "conversation")} of workers no longer listed with those of people\n`);
      out(`✓ Removed ${plural(events, "event")} and ${plural(logs, "log")}\n`);
    });
}

const named = (id: string, problem: string) => (problem.includes(id) ? problem : `${id}: ${problem}`);

interface SwarmFlags {
  readonly worker: readonly { readonly profile: string; readonly title: string }[];
  readonly verifier: string;
  readonly synthesizer: string;
}

function partsOf(text: string, before: SwarmFlags["worker"] | undefined): SwarmFlags["worker"] {
  const [, profile = "", title = ""] = /^([^:]+):([\s\S]+)$/.exec(text) ?? [];
  if (title.trim() === "")
    throw new InvalidArgumentError('a profile and its part are needed: --worker "coder:write the parser"');
  return [...(before ?? []), { profile: profile.trim().toLowerCase(), title: title.trim() }];
}

// Chats that are told.

interface ChatFlags {
  readonly platform?: string;
  readonly chatId?: string;
  readonly threadId?: string;
  readonly chatType?: string;
  readonly userId?: string;
  readonly notifierProfile?: string;
}

function defineTold(command: Command, { onBoard, world }: Pick<Triaging, "onBoard" | "world">): void {
  const out: KanbanWorld["out"] = (...said) => world.out(...said);
  const place = (child: Command) =>
    child
      .option("--platform <NAME>", "the platform of the chat, such as telegram")
      .option("--chat-id <ID>", "the id of the chat on its platform")
      .option("--thread-id <ID>", "a thread of the chat");

  place(command.command("notify-subscribe"))
    .description("notify a chat about a card")
    .argument("<id>", "the card")
    .option("--chat-type <TYPE>", "dm, group, channel or thread")
    .option("--user-id <ID>", "who asked for it")
    .option("--notifier-profile <PROFILE>", "whose gateway sends it (default: this one)")
    .action(async (id: string, flags: ChatFlags) => {
      const chat = chatIn(flags, world);
      const isNew = await onBoard((board) =>
        board.change((change) => {
          cardOf(change.db, id);
          return subscribe(change, id, { profile: flags.notifierProfile ?? world.home.paths.profile, ...chat });
        }),
      );
      out(
        isNew
          ? `✓ ${chat.platform}:${chat.chatId} is notified about ${id}\n`
          : `${chat.platform}:${chat.chatId} is notified already.\n`,
      );
    });
  command
    .command("notify-list")
    .description("list the chats that are notified, about one card or about all")
    .argument("[id]", "the card")
    .option("--json", "machine-readable")
    .action((id: string | undefined, { json: asJson }: Json) =>
      onBoard((board) => {
        const rows = subscriptionsOf(board.db, id);
        if (asJson) {
          const parsed = rows.map((row) => ({
            ...row,
            delivery_metadata: parseJson(row.delivery_metadata ?? "null") ?? null,
          }));
          return out(`${JSON.stringify(parsed, null, 2)}\n`, { asIs: true });
        }
        if (rows.length === 0) return out("No chat is notified.\n");
        for (const { task_id, platform, chat_id, thread_id, notifier_profile, last_event_id } of rows) {
          const thread = thread_id === "" ? "" : `:${thread_id}`;
          const by = notifier_profile ? `, by ${notifier_profile}` : "";
          out(`${task_id}  ${platform}:${chat_id}${thread}  (notified up to event ${last_event_id}${by})\n`, {
            asIs: true,
          });
        }
      }),
    );
  place(command.command("notify-unsubscribe"))
    .description("stop notifying a chat about a card")
    .argument("<id>", "the card")
    .action(async (id: string, flags: ChatFlags) => {
      const { platform, chatId: chat_id, threadId: thread_id = "" } = chatIn(flags, world);
      const was = await onBoard((board) =>
        board.change((change) => unsubscribe(change, { task_id: id, platform, chat_id, thread_id })),
      );
      if (!was)
        throw new BoardError(`${platform}:${chat_id} is not notified about ${id}: hermes kanban notify-list ${id}`);
      out(`✓ ${platform}:${chat_id} is no longer notified about ${id}\n`);
    });
}

/** The chat it is typed in, unless another one is named. */
function chatIn({ platform, chatId, threadId, chatType, userId }: ChatFlags, { conversation }: KanbanWorld): ToldChat {
  if (platform && chatId) return { platform: platform.toLowerCase(), chatId, threadId, chatType, userId };
  if (conversation?.chat && !platform && !chatId) return conversation.chat;
  throw new BoardError("name the chat: --platform telegram --chat-id 123456");
}

// What is over for long.

/** Of no card that somebody works on. */
async function removeLogs(board: BoardFile, folder: string, days: number): Promise<number> {
  const names = await readdir(folder).catch(() => []); // nobody has worked yet
  const before = board.now - days * 86_400;
  const running = new Set(listCards(board.db, { status: "running" }).map(({ id }) => id));
  let removed = 0;
  for (const name of names) {
    const path = join(folder, name);
    const [id = ""] = name.split(".");
    const facts = await stat(path).catch(() => null); // somebody else removed it
    if (!/^t_[0-9a-f]{8}$/.test(id) || !facts?.isFile() || facts.mtimeMs / 1000 >= before) continue;
    if (running.has(id)) continue;
    await rm(path, { force: true });
    removed++;
  }
  return removed;
}
