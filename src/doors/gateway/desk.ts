// Who works on which chat. What waits in the inbox is the only list there is: this looks at it, starts what may start, and decides what a
// message means for a turn that runs already.
import { said } from "../../home/language/words.ts";
import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { StoreError } from "../../sessions/store.ts";
import type { InboxRow } from "../../sessions/work.ts";
import { chatKeyOf } from "./chat.ts";
import type { Payload } from "./delivery.ts";
import { type QueuedMessage, targetOf } from "./reply.ts";
import type { CommandDesk } from "./surface.ts";
import { goalsLast, MOST_OBSERVED, messageIn, together, windowOf } from "./together.ts";
import { ChatTurn, type Interruption, MOST_ATTEMPTS, type TurnPorts } from "./turn.ts";

const ACK_MS = 30_000;
const LONGEST_CHAIN = 3;
const RETRY_MS = 2000;
const LONGEST_RETRY_MS = RETRY_MS * 2 ** 6;
const SET_BACK_MS = 60_000;
const MOST_REMEMBERED = 256;

/** What a message of ours has from the last one that somebody wrote: who may read it, and how the conversation is opened. */
export type OwnMessage = Pick<
  QueuedMessage,
  "source" | "isBot" | "mentionsUs" | "allowedByRole" | "skills" | "channelPrompt" | "replyIn" | "deliver"
>;

interface Pause {
  readonly until: number;
  readonly failures: number;
}

export class Desk {
  readonly #ports: TurnPorts;
  readonly #changed: () => void;
  /** Chats that wait until a turn of another one ends. */
  #line = 0;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #turns = new Map<string, { readonly turn: ChatTurn; readonly over: Promise<void> }>();
  /** Commands at work; those that change a conversation hold back its turns. */
  readonly #commands = new Map<string, Set<Promise<void>>>();
  /** What waits, by chat, as far as it is known here; the store has the last word whenever something begins. */
  #waiting = new Map<string, readonly InboxRow[]>();
  /** When the last turn of a chat ended in which more waits: from then on it stands in line, behind chats that waited meanwhile. */
  readonly #served = new Map<string, number>();
  /** The newest row that is known here. */
  #newest = 0;
  #wholeAt = 0;
  readonly #told = new Set<number>();
  /** Texts that came while a turn of their chat ran, and that it goes on in spite of. */
  readonly #meanwhile = new Set<number>();
  /** How often the turn of a row broke before it began. */
  readonly #broken = new Map<number, number>();
  readonly #paused = new Map<string, Pause>();
  readonly #acknowledged = new Map<string, number>();
  readonly #interrupts = new Map<string, number>();
  /** Who wrote last in a chat and under which instructions: what we tell its conversation goes the same way. */
  readonly #lastIn = new Map<string, OwnMessage>();
  #surface: CommandDesk | null = null;
  /** The last two: no turn begins any more. */
  #state: "closed" | "open" | "shutdown" | "restart" = "closed";
  #looking: Promise<void> | null = null;
  #again = false;
  #alarm: { readonly at: number; readonly timer: NodeJS.Timeout } | null = null;

  /** `changed`: a turn began or ended, or another number of chats waits for one. */
  constructor(ports: TurnPorts, changed: () => void) {
    this.#ports = ports;
    this.#changed = changed;
    this.#clock = ports.clock;
    this.#log = ports.log;
  }

  /** From here on what waits is worked on. */
  open(surface: CommandDesk): void {
    this.#surface = surface;
    this.#state = "open";
    this.look();
  }

  get running(): readonly ChatTurn[] {
    return [...this.#turns.values()].map(({ turn }) => turn);
  }

  get inLine(): number {
    return this.#line;
  }

  turnOf(key: string): ChatTurn | null {
    return this.#turns.get(key)?.turn ?? null;
  }

  /** In the name of whoever the last turn of the chat was for; null when there was none lately. */
  lastIn(key: string): OwnMessage | null {
    return this.#lastIn.get(key) ?? null;
  }

  /** Resolves when the turn of the chat, if there is one, is over. */
  async ended(key: string): Promise<void> {
    await this.#turns.get(key)?.over;
  }

  /** Something may have changed in the inbox. Before it is open nobody could run a command that is seen: what came by then waits. */
  look(): void {
    if (this.#state === "closed") return;
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = this.#lookOnce()
      .catch((error) => {
        this.#log.error("the inbox could not be looked at; again in a moment", error);
        this.#wakeAt(this.#clock.now() + RETRY_MS);
      })
      .finally(() => {
        this.#looking = null;
        if (!this.#again) return;
        this.#again = false;
        this.look();
      });
  }

  /** No turn begins any more. Resolves when those that run are over, or have been cut off after `ms`. Answers how many were. */
  async drain(ms: number, why: Extract<Interruption, "shutdown" | "restart">): Promise<number> {
    this.#state = why;
    if (this.#alarm) clearTimeout(this.#alarm.timer);
    const over = () => Promise.all([...this.#turns.values()].map((one) => one.over));
    const inTime = new AbortController();
    await Promise.race([over(), this.#clock.sleep(ms, inTime.signal).catch(() => undefined)]);
    inTime.abort();
    const cut = [...this.#turns.values()].filter(({ turn }) => !turn.isFinished);
    for (const { turn } of cut) turn.interrupt(why);
    const late = new AbortController();
    await Promise.race([over(), this.#clock.sleep(CUT_MS, late.signal).catch(() => undefined)]);
    late.abort();
    await Promise.all([...this.#commands.values()].flatMap((commands) => [...commands]));
    return cut.length;
  }

  // --- looking

  async #lookOnce(): Promise<void> {
    await this.#learn();
    if (this.#state !== "open") return;
    const most = Math.max(1, this.#ports.settings.home.config().gateway.max_concurrent_turns);
    let line = 0;
    for (const [key, rows] of this.#inOrder()) {
      try {
        const group = this.#ready(key, rows);
        if (group === null) continue;
        if (this.#turns.size < most) await this.#begin(key, group);
        else await this.#tellToWait(group, ++line);
      } catch (error) {
        this.#log.error(`what waits in ${key} cannot be worked on now; other chats go on`, error);
        this.#ended(key, "later");
      }
    }
    if (line !== this.#line) {
      this.#line = line;
      this.#changed();
    }
  }

  /** Who waited longest comes first: a chat in which much is written gets one turn, and then others do. */
  #inOrder(): readonly (readonly [string, readonly InboxRow[]])[] {
    for (const key of this.#served.keys()) if (!this.#waiting.has(key)) this.#served.delete(key);
    const since = (key: string, rows: readonly InboxRow[]) =>
      Math.max(this.#served.get(key) ?? 0, (rows[0]?.receivedAt ?? 0) * 1000);
    return [...this.#waiting]
      .map(([key, rows]) => ({ entry: [key, rows] as const, at: since(key, rows) }))
      .sort((one, other) => one.at - other.at)
      .map(({ entry }) => entry);
  }

  /** Takes in what is new; now and then everything, for what others did to it. */
  async #learn(): Promise<void> {
    const { work } = this.#ports;
    const now = this.#clock.now();
    const isWhole = Math.abs(now - this.#wholeAt) > WHOLE_MS;
    const found = await work.waiting(isWhole ? { limit: MOST_CHATS } : { after: this.#newest, limit: MOST_CHATS });
    const fresh = [...found].flatMap(([key, rows]) =>
      rows.filter(({ id }) => id > this.#newest).map((row) => ({ key, row })),
    );
    if (isWhole) {
      this.#wholeAt = now;
      this.#waiting = new Map(found);
      const present = new Set([...found.values()].flat().map(({ id }) => id));
      for (const ids of [this.#told, this.#meanwhile]) for (const id of ids) if (!present.has(id)) ids.delete(id);
    } else for (const { key, row } of fresh) this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), row]);
    this.#newest = Math.max(this.#newest, ...fresh.map(({ row }) => row.id));
    for (const { key, row } of fresh)
      await this.#greet(key, row).catch((error) => this.#log.error(`a new message of ${key} was not looked at`, error));
  }

  /** What of a chat still waits, as the store has it now. */
  async #refresh(key: string): Promise<readonly InboxRow[]> {
    const known = this.#waiting.get(key) ?? [];
    const rows = await this.#ports.work.stillWaiting(known.map(({ id }) => id));
    const looked = new Set(known.map(({ id }) => id));
    const meanwhile = (this.#waiting.get(key) ?? []).filter(({ id }) => !looked.has(id));
    const ordered = [...rows, ...meanwhile].sort(goalsLast);
    if (ordered.length > 0) this.#waiting.set(key, ordered);
    else this.#waiting.delete(key);
    return ordered;
  }

  /** A message may have been changed or taken back since it was looked at. */
  async #begin(key: string, group: readonly InboxRow[]): Promise<void> {
    const rows = await this.#refresh(key);
    const ids = new Set(group.map(({ id }) => id));
    const present = rows.filter(({ id }) => ids.has(id));
    const asked = present.filter((row) => !messageIn(row).observed);
    const [first] = asked;
    if (!first || this.#turns.has(key)) return;
    const own = present.filter((row) => messageIn(row).observed);
    const others = chatKeyOf(messageIn(first).source) === key ? [] : await this.#overheard(first);
    if (!this.#turns.has(key)) this.#start(key, [...asked, ...own, ...others]);
  }

  /** What was overheard in the chat of a row, before or with its turn. */
  async #overheard(row: InboxRow): Promise<readonly InboxRow[]> {
    const rows = await this.#refresh(chatKeyOf(messageIn(row).source));
    return rows
      .filter((one) => messageIn(one).observed && (one.messageId === null || one.messageId === row.messageId))
      .slice(-MOST_OBSERVED);
  }

  /** A row that is new here. */
  async #greet(key: string, row: InboxRow): Promise<void> {
    const message = row.event as QueuedMessage; // written by us
    const { questions, work } = this.#ports;
    if (!this.#ports.serves(row.platform)) return;
    const present = this.#turns.get(key)?.turn ?? null;
    if (row.kind === "user" && questions.waits(key) && !message.observed && !message.queued) {
      const mayWrite = await this.#ports.isAllowed(message);
      if (mayWrite && questions.takeText(key, message.text, message.source) === "taken") {
        if (present && !present.isFinished) present.join(row);
        else await work.settle([row.id], "merged");
        return;
      }
    }
    if (row.kind === "command") return this.#runCommand(key, row, message);
    if (row.kind !== "user" || message.observed || message.queued) return;
    if (this.#state === "shutdown" || this.#state === "restart")
      return this.#acknowledge(key, row, message, this.#state);
    if (!present || present.isFinished) return;
    await this.#meetBusy(key, row, message, present);
  }

  async #meetBusy(key: string, row: InboxRow, message: QueuedMessage, turn: ChatTurn): Promise<void> {
    const { settings } = this.#ports;
    const mode = settings.home.config().display.busy_input_mode;
    const { entry } = this.#ports.bot(message.source.platform);
    const grace = entry.followUpSeconds?.(settings.option(entry.name)) ?? 0;
    const isFollowUp = this.#clock.now() - turn.startedAt < grace * 1000;
    if (message.files?.length) return;
    this.#meanwhile.add(row.id);
    if (isFollowUp) return;
    if (mode === "steer" && turn.steer(row, message.text)) return this.#acknowledge(key, row, message, "steered");
    if (mode !== "interrupt") return this.#acknowledge(key, row, message, "queued");
    const chain = this.#interrupts.get(key) ?? 0;
    if ((turn.conversation?.agent.activeChildren ?? 0) > 0) return this.#acknowledge(key, row, message, "children");
    if (chain >= LONGEST_CHAIN) return this.#acknowledge(key, row, message, "queued");
    this.#interrupts.set(key, chain + 1);
    this.#meanwhile.delete(row.id);
    turn.interrupt("newer");
    await this.#acknowledge(key, row, message, "interrupted");
  }

  /** The rows of the next turn of a chat; null when there is none, or it is not time yet. */
  #ready(key: string, rows: readonly InboxRow[]): readonly InboxRow[] | null {
    if (this.#turns.has(key) || (this.#commands.get(key)?.size ?? 0) > 0) return null;
    // Nobody could be answered there: it waits until the platform is set up again.
    if (!rows.some(({ platform }) => this.#ports.serves(platform))) return null;
    const pause = this.#paused.get(key);
    const left = (pause?.until ?? 0) - this.#clock.now();
    // More is left of a wait than it ever was where the clock was set back.
    if (pause && left > 0 && left <= LONGEST_RETRY_MS) {
      this.#wakeAt(pause.until);
      return null;
    }
    const open = rows.filter(({ kind }) => kind !== "command").toSorted(goalsLast);
    const begun = open.find((row) => row.messageId !== null && !messageIn(row).observed);
    if (begun) return open.filter(({ messageId }) => messageId === begun.messageId);
    // What was overheard waits for a person.
    const people = open.filter(({ kind, event }) => kind !== "goal" && !(event as QueuedMessage).observed);
    if (people.length === 0) return open.find(({ kind }) => kind === "goal") ? open.slice(-1) : null;
    const said = open.filter(({ kind }) => kind !== "goal");
    const { timers } = this.#ports.settings;
    const bearing = { meanwhile: this.#meanwhile, batch: timers.batch, bot: (name: string) => this.#ports.bot(name) };
    const group = together(said, bearing);
    const last = group.at(-1);
    if (last === undefined || messageIn(last).observed) return null;
    if (group.length < said.length || last.kind !== "user") return group;
    const window = windowOf(last, bearing) * 1000;
    const until = last.receivedAt * 1000 + window;
    const wait = until - this.#clock.now();
    if (wait <= 0 || wait > window + SET_BACK_MS) return group;
    this.#wakeAt(until);
    return null;
  }

  // --- working

  #start(key: string, rows: readonly InboxRow[]): void {
    this.#remember(key, rows);
    const turn = new ChatTurn(key, rows, this.#ports);
    const over = turn
      .run()
      .then((how) => {
        this.#ended(key, how);
        if (how === "ended") this.#ports.goals.turnEnded(turn.ended);
      })
      .catch((error) => this.#broke(key, turn, error))
      .finally(async () => {
        this.#turns.delete(key);
        this.#served.set(key, this.#clock.now());
        this.#changed();
        await this.#refresh(key).catch((error) => this.#log.warn("what waits could not be looked at", error));
        this.look();
      });
    this.#turns.set(key, { turn, over });
    this.#changed();
  }

  #remember(key: string, rows: readonly InboxRow[]): void {
    const message = rows.map(messageIn).findLast(({ observed }) => !observed);
    if (!message) return;
    const { source, isBot, mentionsUs, allowedByRole, skills, channelPrompt, replyIn, deliver } = message;
    this.#lastIn.delete(key);
    this.#lastIn.set(key, { source, isBot, mentionsUs, allowedByRole, skills, channelPrompt, replyIn, deliver });
    const [oldest] = this.#lastIn.keys();
    if (oldest !== undefined && this.#lastIn.size > MOST_REMEMBERED) this.#lastIn.delete(oldest);
  }

  /** Before the model was asked. A store that cannot be written is nobody's fault: it is waited for. */
  async #broke(key: string, turn: ChatTurn, error: unknown): Promise<void> {
    const first = turn.rows[0]?.id ?? 0;
    const times = error instanceof StoreError ? 0 : (this.#broken.get(first) ?? 0) + 1;
    this.#log.error(`a turn of ${key} broke before it began`, error);
    if (times > 0) this.#broken.set(first, times);
    if (times < MOST_ATTEMPTS) return this.#ended(key, "later");
    await turn.giveUp(messageOf(error)).then(
      () => {
        this.#broken.delete(first);
        this.#ended(key, "ended");
      },
      (failure: unknown) => {
        this.#log.error(`a message of ${key} could not be given up; it is tried again`, failure);
        this.#ended(key, "later");
      },
    );
  }

  #ended(key: string, how: "ended" | "later"): void {
    if (how === "ended") {
      this.#paused.delete(key);
      if (!this.#turns.get(key)?.turn.wasReplaced) this.#interrupts.delete(key);
      return;
    }
    const failures = (this.#paused.get(key)?.failures ?? 0) + 1;
    this.#paused.set(key, {
      failures,
      until: this.#clock.now() + Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** (failures - 1)),
    });
  }

  #runCommand(key: string, row: InboxRow, message: QueuedMessage): void {
    const surface = this.#surface;
    if (!surface) return;
    const running = this.#commands.get(key) ?? new Set();
    this.#commands.set(key, running);
    const work = surface
      .run(key, row, message)
      .catch((error) => this.#log.error(`a command of ${key} failed in an unforeseen way`, error))
      .finally(async () => {
        running.delete(work);
        if (running.size === 0) this.#commands.delete(key);
        await this.#refresh(key).catch((error) => this.#log.warn("what waits could not be looked at", error));
        this.look();
      });
    running.add(work);
  }

  // --- words

  async #tellToWait(group: readonly InboxRow[], place: number): Promise<void> {
    const [first] = group;
    if (!first || this.#told.has(first.id)) return;
    this.#told.add(first.id);
    await this.#say(first, `notice:wait:${first.id}`, `Other chats come first; you are number ${place} in line.`);
  }

  /** At most every half a minute for each chat. */
  async #acknowledge(key: string, row: InboxRow, message: QueuedMessage, how: keyof typeof ACKS): Promise<void> {
    const { settings } = this.#ports;
    const { home } = settings;
    if (!home.config().display.busy_ack_enabled) return;
    const now = this.#clock.now();
    if (now - (this.#acknowledged.get(key) ?? Number.NEGATIVE_INFINITY) < ACK_MS) return;
    this.#acknowledged.set(key, now);
    const { entry } = this.#ports.bot(message.source.platform);
    const turn = this.turnOf(key);
    const detail = turn && settings.display(entry, "busy_ack_detail") ? this.#detail(turn) : "";
    const seen = home.config().onboarding.seen as Readonly<Record<string, unknown>>; // a record of the settings
    const isFirst = how !== "shutdown" && how !== "restart" && seen.busy_input_prompt !== true;
    await this.#say(row, `notice:busy:${row.id}`, `${ACKS[how]}${detail}${isFirst ? `\n\n${MODES}` : ""}`);
    if (isFirst)
      await home
        .setConfigKey(["onboarding", "seen", "busy_input_prompt"], true)
        .catch((error) => this.#log.debug("that the hint was shown could not be noted", error));
  }

  #detail(turn: ChatTurn): string {
    const activity = turn.conversation?.agent.activity();
    if (!activity) return "";
    const seconds = Math.round((this.#clock.now() - turn.startedAt) / 1000);
    const { apiCallCount: step, maxIterations: most, currentTool: tool } = activity;
    return ` (${seconds} s, step ${step} of ${most}${tool ? `, ${tool}` : ""})`;
  }

  async #say(row: InboxRow, cause: string, text: string): Promise<void> {
    const message = messageIn(row);
    const { entry, account } = this.#ports.bot(message.source.platform);
    const payload: Payload = { type: "text", text: said(text), passing: true };
    const target = targetOf(message);
    await this.#ports.work.promise([{ cause, part: 0, platform: entry.name, account, target, payload }]);
    this.#ports.wake(entry.name);
  }

  /** The first of several chats that wait counts. */
  #wakeAt(ms: number): void {
    if (this.#alarm && this.#alarm.at <= ms) return;
    if (this.#alarm) clearTimeout(this.#alarm.timer);
    const ring = () => {
      this.#alarm = null;
      this.look();
    };
    this.#alarm = { at: ms, timer: setTimeout(ring, Math.max(5, ms - this.#clock.now())).unref() };
  }
}

const CUT_MS = 5000;
/** How often everything that waits is read again. */
const WHOLE_MS = 2000;
const MOST_CHATS = 10_000;
const ACKS = {
  interrupted: "Stopping to read your new message.",
  queued: "Got it. I will answer when this turn is done.",
  children: "Got it. Sub-agents are working; I will answer when this turn is done.",
  steered: "Got it. I will take it into account.",
  restart: "I am about to restart. Your message is saved and will be answered afterwards.",
  shutdown: "I am about to go offline. Your message is saved and will be answered when I am back.",
} as const;

const MODES =
  "You can choose what a message does while I work: set display.busy_input_mode to interrupt, queue or steer. /stop ends the turn, /queue and /steer work in every mode.";
