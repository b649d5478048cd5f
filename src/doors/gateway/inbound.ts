// What comes in: who wrote it is looked at first; only then it is stored, and only then the platform is told that it arrived.
import { said, t } from "../../home/language/words.ts";
import type { Logger } from "../../home/log.ts";
import { profileCommand } from "../../home/paths.ts";
import type { Clock } from "../../kit/clock.ts";
import { isRecord } from "../../kit/json.ts";
import type { InboxEvent, OutboxRow, WorkStore } from "../../sessions/work.ts";
import { accessRules, commandRights, forStranger, isAdmin, isAuthorised, mayAnswer } from "./access.ts";
import { type ChatSource, chatKeyOf, sessionKeyOf } from "./chat.ts";
import type { AdapterHost, ButtonPress, ChatMessage, PlatformEntry, SendResult } from "./contract.ts";
import { partOf } from "./delivery.ts";
import type { Pairing } from "./pairing.ts";
import type { Questions } from "./questions.ts";
import { targetOf } from "./reply.ts";
import type { Routes } from "./routes.ts";
import type { GatewaySettings } from "./settings.ts";

interface InboundOptions {
  readonly settings: GatewaySettings;
  readonly work: WorkStore;
  readonly routes: Routes;
  readonly pairing: Pairing;
  readonly questions: Questions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly files: Pick<AdapterHost, "keepFile" | "download">;
  knowsSticker(id: string): Promise<boolean>;
  loadPackage<T>(entry: PlatformEntry, name: string, load: () => Promise<T>): Promise<T>;
  deliverTo(target: string, text: string, cause: string): Promise<SendResult | { readonly duplicate: true }>;
  /** What plugins say to a message before anybody looks at who wrote it. */
  beforeDispatch(message: ChatMessage): Promise<Dispatch>;
  /** Something waits in the inbox. */
  arrived(platform: string): void;
  /** Says something to somebody who is no user of ours: at once or not at all. */
  reply(platform: string, message: ChatMessage, text: string): Promise<void>;
  /** What was sent did not arrive after all. */
  undelivered(row: OutboxRow, error: string): Promise<void>;
  entry(name: string): PlatformEntry;
}

/** `skip`: it is dropped; `allow`: its sender may write. */
export type Dispatch =
  | { readonly action: "pass" | "skip" | "allow" }
  | { readonly action: "rewrite"; readonly text: string };

type Writer = Pick<ChatMessage, "source" | "isBot" | "mentionsUs" | "allowedByRole">;

/** "please restart the gateway!": whole, and in a direct chat only. */
const RESTART = /^(?:please )?restart (?:the gateway|gateway|hermes|hermes gateway)[.!]{0,3}$/i;

function isMessage(value: unknown): value is ChatMessage {
  if (!isRecord(value) || !isRecord(value.source)) return false;
  const { text, updateId, source } = value;
  return (
    [text, updateId, source.platform, source.chat_type].every((part) => typeof part === "string") && updateId !== ""
  );
}

const EARLIEST = Date.UTC(2000, 0) / 1000;
const LATEST = Date.UTC(2100, 0) / 1000;

export class Inbound {
  readonly #options: InboundOptions;

  constructor(options: InboundOptions) {
    this.#options = options;
  }

  /** What the adapter of a bot is handed. */
  hostFor(entry: PlatformEntry, account: string): Omit<AdapterHost, "lost"> {
    const { settings, work, clock, log, files, routes } = this.#options;
    const { name: platform } = entry;
    return {
      ...{ clock, log: log.child(platform) },
      option: settings.option(platform),
      receive: (messages, cursor) => this.#receive(entry, account, messages, cursor),
      changed: (which, text) => this.#changed(platform, account, which, text),
      pressed: (press) => this.#pressed(press),
      allows: (sender) => this.isAllowed(sender),
      cursor: () => work.cursor(platform, account),
      knownChats: async () =>
        (await routes.all()).flatMap(({ origin }) => (origin?.platform === platform ? [origin] : [])),
      knowsSticker: (id) => this.#options.knowsSticker(id),
      keepFile: files.keepFile,
      download: files.download,
      package: (name, load) => this.#options.loadPackage(entry, name, load),
      deliverTo: (target, text, { updateId }) => this.#options.deliverTo(target, text, `send:${platform}:${updateId}`),
      undelivered: (key, error) =>
        void this.#bounced(platform, account, key, error).catch((failure) =>
          log.warn("that a message did not arrive could not be noted", failure),
        ),
      homePath: (name) => settings.home.paths.at(name),
    };
  }

  async #bounced(platform: string, account: string, key: string, error: string): Promise<void> {
    const { work, undelivered } = this.#options;
    const part = partOf(key);
    const row = part && (await work.bounced({ platform, account, ...part }, error));
    if (row) await undelivered(row, error);
  }

  /** Asked when a message comes in, and again when its turn begins. */
  async isAllowed({ source, isBot, mentionsUs, allowedByRole }: Writer): Promise<boolean> {
    const { pairing, settings } = this.#options;
    await settings.refresh();
    const rules = this.#rules(source);
    const sender = {
      source,
      ...(isBot ? { isBot } : {}),
      ...(mentionsUs ? { mentionsUs } : {}),
      ...(allowedByRole === undefined ? {} : { allowedByRole }),
    };
    // The list of pairings is read for those alone who need it: one that is damaged keeps nobody else out.
    if (isAuthorised({ ...sender, isPaired: false }, rules)) return true;
    const isPaired = source.user_id !== undefined && (await pairing.isPaired(source.platform, source.user_id));
    return isPaired && isAuthorised({ ...sender, isPaired }, rules);
  }

  isAdmin(source: ChatSource): boolean {
    return isAdmin(source.user_id, this.#rightsIn(source));
  }

  /** Whether somebody may answer what a turn asks: by a button or with words. */
  mayAnswer(who: ChatSource, asker: ChatSource): boolean {
    return mayAnswer(who, asker, this.#rightsIn(asker));
  }

  #rightsIn(source: ChatSource) {
    return commandRights(source, this.#options.settings.platform(source.platform).extra);
  }

  async #receive(
    entry: PlatformEntry,
    account: string,
    messages: readonly ChatMessage[],
    cursor: string | undefined,
  ): Promise<readonly boolean[]> {
    const { work, log, settings } = this.#options;
    const { name: platform } = entry;
    const events: InboxEvent[] = [];
    const strangers: ChatMessage[] = [];
    const at = new Map<ChatMessage, number>();
    for (const received of messages) {
      // A defect of an adapter; thrown, it would hold up what comes behind it for ever.
      if (!isMessage(received)) {
        log.error(
          `${platform}: what came in is not a message and is left out: ${JSON.stringify(received)?.slice(0, 200)}`,
        );
        continue;
      }
      const dispatch = await this.#options.beforeDispatch(received);
      if (dispatch.action === "skip") continue;
      const message = dispatch.action === "rewrite" ? { ...received, text: dispatch.text } : received;
      if (dispatch.action !== "allow" && !(await this.isAllowed(message))) {
        strangers.push(message);
        continue;
      }
      const { text, isCommand } = asTyped(message);
      // What was only overheard belongs to the chat: whoever asks next brings it along.
      const sessionKey = message.observed ? chatKeyOf(message.source) : sessionKeyOf(message.source, settings.sharing);
      const { updateId } = message;
      at.set(received, events.length);
      events.push({
        ...{ sessionKey, platform, account, updateId, kind: isCommand ? "command" : "user" },
        // Whoever a plugin lets in may still write when the turn begins.
        event: {
          ...message,
          text,
          sentAt: this.#timeOf(message),
          ...(dispatch.action === "allow" ? { allowedByRole: true } : {}),
        },
      });
    }
    const place = cursor === undefined ? undefined : { platform, account, cursor };
    const ids = events.length > 0 || place ? await work.accept(events, place) : [];
    if (ids.some((id) => id !== null)) this.#options.arrived(platform);
    for (const stranger of strangers)
      await this.#meet(stranger, account).catch((error) => log.warn("a stranger could not be answered", error));
    return messages.map((message) => {
      const index = at.get(message);
      return index !== undefined && ids[index] != null;
    });
  }

  /** The sender's clock may be anywhere; what is no time of this century was written now. */
  #timeOf({ sentAt }: ChatMessage): number {
    const isTime = Number.isFinite(sentAt) && sentAt > EARLIEST && sentAt < LATEST;
    return isTime ? sentAt : this.#options.clock.now() / 1000;
  }

  /** Nothing of a stranger is kept but a code, and that only as its hash, with where the news of an approval goes. */
  async #meet(message: ChatMessage, account: string): Promise<void> {
    const { pairing } = this.#options;
    const { source } = message;
    if (forStranger(source, this.#rules(source)) !== "pair" || source.user_id === undefined || message.isBot) return;
    const { chatId, threadId } = targetOf(message);
    const code = await pairing.request(source.platform, source.user_id, source.user_name ?? "", {
      ...{ account, chatId, threadId },
    });
    if (code === null) return;
    const text = [
      "I do not know you yet. The owner of this bot can approve you:",
      "",
      `Pairing code: ${code}`,
      profileCommand(this.#options.settings.home.paths, `pairing approve ${source.platform} ${code}`),
    ].join("\n");
    await this.#options.reply(source.platform, message, said(text));
  }

  /** A message whose turn has begun stays as it was read. */
  async #changed(
    platform: string,
    account: string,
    which: Parameters<AdapterHost["changed"]>[0],
    text: string | null,
  ): Promise<void> {
    const { work } = this.#options;
    const isMeant = ({ updateId, event }: InboxEvent) => {
      if (typeof which === "string") return updateId === which;
      const { messageId, source } = event as ChatMessage; // written by us
      return messageId === which.messageId && source.chat_id === which.chatId;
    };
    const rows = [...(await work.waiting()).values()].flat();
    const row = rows.find((one) => one.platform === platform && one.account === account && isMeant(one));
    if (!row) return;
    const { updateId } = row;
    if (text === null) await work.settle([row.id], "withdrawn", { unbegun: true });
    else await work.replaceEvent({ platform, account, updateId }, { ...(row.event as ChatMessage), text }); // written by us
  }

  async #pressed(press: ButtonPress): Promise<void> {
    const { questions } = this.#options;
    if (!(await this.isAllowed(press))) return press.answer(t("You may not answer this."));
    await press.answer(said(questions.press(press.questionId, press.choice, press.source)));
  }

  #rules(source: ChatSource) {
    const { settings } = this.#options;
    const { home } = settings;
    return accessRules(source.platform, {
      env: (name) => home.env(name),
      forStrangers: home.config().unauthorized_dm_behavior,
      extra: settings.platform(source.platform).extra,
      trustsTransport: this.#options.entry(source.platform).trustsTransport === true,
    });
  }

  /** Whom a message was written to, for those who answer it beside its turn. */
  readonly targetOf = targetOf;
}

/** Text as it was typed, with what a client makes of it undone: `/new@bot`, long dashes. */
function asTyped({ text, source, type }: ChatMessage): { readonly text: string; readonly isCommand: boolean } {
  if (source.chat_type === "dm" && RESTART.test(text.trim())) return { text: "/restart", isCommand: true };
  const match = /^\/([^\s/@]+)(?:@[^\s/]+)?(?=\s|$)/.exec(text);
  if (!match || type === "location") return { text, isCommand: false };
  const args = text.slice(match[0].length).replaceAll("—", "--").replaceAll("–", "-");
  return { text: `/${match[1]?.toLowerCase()}${args}`, isCommand: true };
}
