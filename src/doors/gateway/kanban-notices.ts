// What happens to cards, told in the chats that asked for it. The outbox row comes first and the cursor of the board behind it: the cause of
// a row names the event, so that whatever dies between the two files, a chat hears each event once.
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { t } from "../../home/language/words.ts";
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import { runningGateway } from "../../home/profiles.ts";
import { Boards } from "../../kanban/boards.ts";
import type { BoardFile, Card, CardEvent, CardRun } from "../../kanban/schema.ts";
import {
  adoptSubscription,
  moveCursor,
  type Subscription,
  subscriptionsOf,
  unsubscribe,
} from "../../kanban/subscriptions.ts";
import { tagOnce } from "../../kanban/worker-sessions.ts";
import type { Clock } from "../../kit/clock.ts";
import { asRecord, type Json, parseJson } from "../../kit/json.ts";
import { lazy } from "../../kit/lazy.ts";
import { fenced } from "../../prompt/fence.ts";
import { isDerivedId } from "../../sessions/session-id.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { InboxEvent, OutboxRow, WorkStore } from "../../sessions/work.ts";
import { masked, splitFor } from "./answer.ts";
import { plainTitle } from "./chat.ts";
import type { PlatformEntry } from "./contract.ts";
import type { Payload } from "./delivery.ts";
import type { Link } from "./link.ts";
import { checkedFile, outgoing } from "./media-out.ts";
import type { QueuedMessage } from "./reply.ts";
import type { ChatEntry, Routes } from "./routes.ts";
import { CHATLESS, type SessionWake } from "./session-wakes.ts";
import { splitMessage } from "./split.ts";

export interface KanbanNoticesOptions {
  readonly home: OpenHome;
  readonly work: WorkStore;
  readonly store: SessionStore;
  readonly routes: Routes;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined: the platform is not set up. */
  link(platform: string): Link | undefined;
  /** When the gateway began, in milliseconds: on a board that it never looked at, nothing earlier wakes a conversation. */
  readonly since: number;
  /** A row of the inbox may be new. */
  arrived(): void;
}

const KINDS = [
  ...["completed", "blocked", "gave_up", "crashed", "timed_out", "status"],
  ...["archived", "unblocked", "block_loop_detected"],
];
/** Events that the conversation which made the card has to know of. */
const WAKING: ReadonlySet<string> = new Set(["completed", "gave_up", "crashed", "timed_out", "blocked"]);
const MOST_REASON = 160;
const MOST_SUMMARY = 200;
const MOST_FILES = 20;
const QUIET_MS = 2000;

export class KanbanNotices {
  readonly #options: KanbanNoticesOptions;
  readonly #boards: Boards;
  /** How the files of a board looked when all that was in them had been told. */
  readonly #told = new Map<string, string>();

  constructor(options: KanbanNoticesOptions) {
    this.#options = options;
    this.#boards = new Boards(options.home, options.clock);
  }

  /** One board that cannot be read holds up no other. */
  async look(): Promise<void> {
    await this.#tag();
    for (const slug of await this.#boards.list())
      await this.#lookAt(slug).catch((error) =>
        this.#options.log.warn(`the board ${slug} could not be looked at for notices`, error),
      );
  }

  /** A notice was refused for good: the chat is told nothing more of this card. False: the row is no notice of a card. */
  async refused({ cause, payload }: OutboxRow): Promise<boolean> {
    const [kind, slug = "", event = "", name = ""] = cause.split(":");
    if (kind !== "kanban") return false;
    // A file may be too large for the chat; the chat itself is still there.
    if ((payload as Payload).type !== "text") return false; // written by us
    await this.#onBoard(slug, async (board) => {
      const row = board.db.get<{ task_id: string }>("SELECT task_id FROM task_events WHERE id = ?", Number(event));
      const gone = subscriptionsOf(board.db, row?.task_id ?? "").filter((one) => nameOf(one) === name);
      await board.change((change) => gone.forEach((one) => void unsubscribe(change, one)));
      this.#options.log.warn(`${row?.task_id} of the board ${slug} is no longer told in a chat that refuses it`);
    });
    return true;
  }

  readonly #tag = lazy(() =>
    tagOnce(this.#options.store, this.#boards).catch((error) =>
      this.#options.log.warn("older conversations of workers are still listed with those of people", error),
    ),
  );

  async #lookAt(slug: string): Promise<void> {
    const { database } = this.#boards.place(slug);
    const stamp = `${await stampOf(database)} ${await stampOf(`${database}-wal`)}`;
    if (stamp.startsWith("-") || this.#told.get(slug) === stamp) return;
    const isAll = await this.#onBoard(slug, async (board) => {
      let told = true;
      for (const one of subscriptionsOf(board.db)) told = (await this.#tell(board, slug, one)) && told;
      await this.#wakeSessions(board, slug);
      return told;
    });
    // Two changes within one tick of the file system's clock look the same.
    const isQuiet = await Promise.all([database, `${database}-wal`].map((path) => isOld(path, this.#options.clock)));
    if (isAll && isQuiet.every(Boolean)) this.#told.set(slug, stamp);
  }

  async #onBoard<T>(slug: string, work: (board: BoardFile) => Promise<T>): Promise<T> {
    const board = await this.#boards.open(slug);
    try {
      return await work(board);
    } finally {
      board.close();
    }
  }

  /** False: something is left to be told, when its platform is set up. */
  async #tell(board: BoardFile, slug: string, subscription: Subscription): Promise<boolean> {
    const { task_id: id, last_event_id: after } = subscription;
    const events = board.db.all<CardEvent>(
      `SELECT * FROM task_events WHERE task_id = ? AND id > ? AND kind IN (${KINDS.map(() => "?").join(", ")}) ORDER BY id`,
      ...[id, after, ...KINDS],
    );
    const card = board.db.get<Card>("SELECT * FROM tasks WHERE id = ?", id);
    if (events.length === 0 || !card) return true;
    const link = this.#options.link(subscription.platform);
    if (!link) return false;
    if (!(await this.#isMine(board, subscription))) return true;
    for (const event of events) {
      await this.#promise(board, { slug, card, event, subscription, link });
      await board.change((change) => moveCursor(change, subscription, event.id));
    }
    return true;
  }

  /** Each profile has a store of its own: two gateways would tell a chat everything twice. */
  async #isMine(board: BoardFile, subscription: Subscription): Promise<boolean> {
    const { paths } = this.#options.home;
    const { notifier_profile: named } = subscription;
    if (named) return named === paths.profile;
    if (paths.profile !== "default" && (await runningGateway(paths.root)) !== null) return false;
    return board.change((change) => adoptSubscription(change, subscription, paths.profile));
  }

  async #promise(board: BoardFile, notice: Notice): Promise<void> {
    const { work, home } = this.#options;
    const { slug, event, subscription, link } = notice;
    const { entry, account } = link;
    const run =
      event.run_id === null ? null : board.db.get<CardRun>("SELECT * FROM task_runs WHERE id = ?", event.run_id);
    const text = noticeText(notice, run ?? null);
    if (text !== null) {
      const { files, refused } = event.kind === "completed" ? await this.#artifacts(run ?? null) : NO_FILES;
      const shown = masked([text, ...refused].join("\n"), home.redact);
      const parts: readonly Payload[] = [
        ...splitMessage(shown, splitFor(entry)).map((part): Payload => ({ type: "text", text: part, important: true })),
        ...files,
      ];
      const { chat_id: chatId, thread_id: threadId } = subscription;
      const target = { chatId, ...(threadId === "" ? {} : { threadId }) };
      const cause = `kanban:${slug}:${event.id}:${nameOf(subscription)}`;
      await work.promise(
        parts.map((payload, part) => ({ cause, part, platform: entry.name, account, target, payload })),
      );
      link.wake();
    }
    if (WAKING.has(event.kind)) await this.#wakeCreator(notice, run ?? null);
  }

  /** Files that the worker declared, under the rules for every file that leaves this machine. */
  async #artifacts(run: CardRun | null): Promise<typeof NO_FILES> {
    const { home, clock } = this.#options;
    const { artifacts } = asRecord(parseJson(run?.metadata ?? "{}"));
    const paths = (Array.isArray(artifacts) ? artifacts : []).filter((one) => typeof one === "string");
    const files: Payload[] = [];
    const refused: string[] = [];
    for (const path of [...new Set(paths)].slice(0, MOST_FILES)) {
      const checked = await checkedFile(path, { home, now: clock.now() });
      if ("path" in checked) files.push({ type: "file", file: outgoing(checked.path) });
      else refused.push(`(not sent: ${quoted(path.split(/[\\/]/).at(-1) ?? "", 80)}: ${checked.refused})`);
    }
    return { files, refused };
  }

  /** The conversation that made the card gets a message of ours, if a chat still holds it. */
  async #wakeCreator({ slug, card, event }: Happening, run: CardRun | null): Promise<void> {
    const { work, clock, arrived } = this.#options;
    const chat = await this.#chatOf(card.session_id);
    const link = chat?.origin && this.#options.link(chat.origin.platform);
    if (!chat?.origin || !link) return;
    const updateId = updateIdOf(slug, event);
    const message: QueuedMessage = {
      ...{ text: wakeText({ slug, card, event }, run, IN_CHAT), type: "text", source: chat.origin, updateId },
      ...{ sentAt: clock.now() / 1000, queued: true, ours: true, outside: [`card ${card.id}`] },
    };
    const { entry, account } = link;
    await work.accept([
      { sessionKey: chat.session_key, platform: entry.name, account, updateId, kind: "wake", event: message },
    ]);
    arrived();
  }

  /**
   * A program that made a card through the API server cannot be told: the conversation goes on by itself instead. The rows and how far the
   * board was read are one step of the store.
   */
  async #wakeSessions({ db }: BoardFile, slug: string): Promise<void> {
    const { work, home, since } = this.#options;
    const newest = db.get<{ id: number | null }>("SELECT MAX(id) AS id FROM task_events")?.id ?? 0;
    const read = await work.cursor(CHATLESS, slug);
    if (read === String(newest)) return;
    // Never read, or another board of the same name: what happened before the gateway began is nobody's news.
    const isNew = read === null || Number(read) > newest;
    const kinds = [...WAKING];
    const events = db.all<CardEvent & { readonly session_id: string }>(
      `SELECT e.*, t.session_id FROM task_events e JOIN tasks t ON t.id = e.task_id
       WHERE e.id > ? AND e.id <= ? AND e.created_at >= ? AND t.session_id IS NOT NULL
         AND e.kind IN (${kinds.map(() => "?").join(", ")}) ORDER BY e.id`,
      ...[isNew ? 0 : Number(read), newest, isNew ? Math.floor(since / 1000) : 0, ...kinds],
    );
    const rows: InboxEvent[] = [];
    for (const { session_id: session, ...event } of home.config().kanban.auto_subscribe_on_create ? events : []) {
      const card = db.get<Card>("SELECT * FROM tasks WHERE id = ?", event.task_id);
      const run = db.get<CardRun>("SELECT * FROM task_runs WHERE id = ?", event.run_id ?? -1) ?? null;
      const { worker_session_id: worker } = asRecord(parseJson(run?.metadata ?? "{}"));
      if (!card || worker === session || !(await this.#isWoken(session))) continue;
      const happening = { slug, card, event };
      // A chat that took it over is where it goes on.
      if (await this.#chatOf(session)) await this.#wakeCreator(happening, run);
      else {
        const wake: SessionWake = { text: wakeText(happening, run, ALONE), outside: [`card ${card.id}`] };
        const updateId = updateIdOf(slug, event);
        rows.push({ sessionKey: session, platform: CHATLESS, account: slug, updateId, kind: "wake", event: wake });
      }
    }
    await work.accept(rows, { platform: CHATLESS, account: slug, cursor: String(newest) });
  }

  /** Somebody at a screen looks at the board when they like; a program that keeps the conversation itself would never see the turn. */
  async #isWoken(session: string): Promise<boolean> {
    const { source } = (await this.#options.store.get(session)) ?? {};
    return source === "api_server" && !isDerivedId(session);
  }

  async #chatOf(session: string | null): Promise<ChatEntry | null> {
    const { routes, store } = this.#options;
    if (session === null || !(await store.get(session))) return null;
    const tip = await store.tip(session);
    for (const entry of await routes.all()) if ((await store.tip(entry.session_id)) === tip) return entry;
    return null;
  }
}

interface Happening {
  readonly slug: string;
  readonly card: Card;
  readonly event: CardEvent;
}

/** One event, one chat. */
interface Notice extends Happening {
  readonly subscription: Subscription;
  readonly link: { readonly entry: PlatformEntry; readonly account: string; wake(): void };
}

const NO_FILES: { readonly files: readonly Payload[]; readonly refused: readonly string[] } = {
  files: [],
  refused: [],
};
const MOST_TOLD = 4000;

/** Names a subscription in a cause; ids of chats may hold anything. */
function nameOf({ task_id, platform, chat_id, thread_id }: Subscription): string {
  const key = JSON.stringify([task_id, platform, chat_id, thread_id]);
  return createHash("sha256").update(key).digest("hex").slice(0, 16);
}

async function stampOf(path: string): Promise<string> {
  const facts = await stat(path).catch(() => null); // there is none
  return facts ? `${facts.ino}.${facts.mtimeMs}.${facts.size}` : "-";
}

async function isOld(path: string, clock: Clock): Promise<boolean> {
  const facts = await stat(path).catch(() => null); // there is none
  return facts === null || Math.abs(clock.now() - facts.mtimeMs) > QUIET_MS;
}

// Texts. What others wrote stands in quotes that it cannot close, on the line that we began.

/** One line of others that is neither a link nor a mention, and cannot end its quotes. */
function quoted(text: string, most: number): string {
  const line = plainTitle(text.replace(/[“”„«»"]/g, "'"), most);
  return `“${line.replace(/[[<]/g, "(").replace(/[\]>]/g, ")").replaceAll("@", "@\u2060")}”`;
}

const firstLine = (text: unknown) =>
  typeof text === "string"
    ? (text
        .split("\n")
        .find((line) => line.trim() !== "")
        ?.trim() ?? "")
    : "";

/** Null: nothing is said of it. */
export function noticeText(
  {
    slug,
    card,
    event,
    link,
  }: Pick<Notice, "slug" | "card" | "event"> & {
    readonly link: { readonly entry: Pick<PlatformEntry, "commandWord"> };
  },
  run: CardRun | null,
): string | null {
  const facts: Json = asRecord(parseJson(event.payload ?? "{}"));
  const why = [facts.reason, facts.error, run?.error, card.last_failure_error]
    .map(firstLine)
    .find((text) => text !== "");
  const title = quoted(card.title, MOST_SUMMARY);
  const because = why === undefined ? title : `${quoted(why, MOST_REASON)} — ${title}`;
  const says = (icon: string, what: string) =>
    `${icon} [${slug}]${card.assignee === null ? "" : ` @${/^[\w.-]{1,64}$/.test(card.assignee) ? card.assignee : quoted(card.assignee, 64)}`} Kanban ${card.id} ${what}`;
  const further = `${link.entry.commandWord?.("kanban") ?? "/kanban"} unblock ${card.id}`;
  switch (event.kind) {
    case "completed": {
      const summary = firstLine(facts.summary) || firstLine(run?.summary) || firstLine(card.result);
      const done = `${t("done")} — ${title}`;
      return says("✔", summary === "" ? done : `${done}\n${quoted(summary, MOST_SUMMARY)}`);
    }
    case "blocked":
      return says("⏸", `${t("blocked")}: ${because}\n${t("To continue it: {command}", { command: further })}`);
    case "gave_up":
      return says("✖", `${t("gave up")}: ${because}\n${t("To continue it: {command}", { command: further })}`);
    case "crashed":
      return says("✖", `${t("crashed")}: ${because}`);
    case "timed_out":
      return says("⏱", `${t("timed out")}: ${because}`);
    case "status":
      return says("🔄", `→ ${plainTitle(String(facts.status ?? card.status), 20)} — ${title}`);
    case "block_loop_detected":
      return says("🛑", `${t("was blocked again for the same kind of reason and is in triage")}: ${because}`);
    default:
      return null;
  }
}

const updateIdOf = (slug: string, { id, task_id: card }: CardEvent) => `kanban:${slug}:${id}:${card}`;

const IN_CHAT =
  "The chat has been told in one line. Continue what depended on it, or answer [SILENT] if there is nothing to do or to say.";
const ALONE =
  "Nobody waits for this turn: what you answer is read later, where this conversation is stored. Continue what depended on it, and say what came of it.";

/** For the model. */
function wakeText({ slug, card, event }: Happening, run: CardRun | null, next: string): string {
  const what: Readonly<Record<string, string>> = {
    completed: "is done",
    blocked: "is blocked",
    gave_up: "was given up after failures",
    crashed: "crashed and will be tried again",
    timed_out: "took too long and will be tried again",
  };
  const facts = { summary: run?.summary, result: card.result, error: run?.error };
  const said = [asRecord(parseJson(event.payload ?? "{}")), facts]
    .flatMap((one) => ["reason", "summary", "result", "error"].map((name) => one[name as keyof typeof one]))
    .filter((text): text is string => typeof text === "string" && text.trim() !== "");
  const about = fenced(`card:${card.id}`, [card.title, ...new Set(said)].join("\n\n").slice(0, MOST_TOLD));
  const head = `[Board ${slug}: card ${card.id}, which was created in this conversation, ${what[event.kind]}.`;
  return `${head} ${next} What follows was written by its worker.]\n\n${about}`;
}
