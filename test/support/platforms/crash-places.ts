// One platform of each class that a gateway can be killed in front of: polled (Telegram), a socket (Slack), a webhook (WhatsApp), IMAP (e-mail).
import { gatewayHome, type ModelServer, type RunningGateway } from "../gateway-rig.ts";
import { rowsOf } from "../paper-home.ts";
import type { TempHome } from "../temp-home.ts";
import { MAIL_PASSWORD, mailServers, missingMailServers } from "./mail-servers.ts";
import { BOT, SlackServer } from "./slack-server.ts";
import { TelegramServer } from "./telegram-server.ts";
import { WhatsappServer } from "./whatsapp-server.ts";

/** A chat of one person on one platform. */
export interface CrashPlace {
  readonly home: TempHome;
  /** After each start of the gateway. */
  started?(gateway: RunningGateway): Promise<void>;
  /** The person writes; whatever the platform repeats, it repeats by itself. */
  say(text: string): Promise<void>;
  /** The platform was told that we have the message. */
  isAcknowledged(): boolean;
  /** What the person can read from us, oldest first. */
  heard(): Promise<readonly string[]>;
  /** The next sends find nobody who takes them. */
  refuse(): void;
  /** The next send arrives, and nobody says so. */
  loseAnswer(): void;
  /** The platform is well again. */
  heal(): void;
  release(): Promise<void>;
}

export interface CrashClass {
  readonly name: string;
  /** Neither a handle nor a look into the chat tells whether a message arrived, so it is repeated, and says so. */
  readonly maySayTwice: boolean;
  missing?(): Promise<string | null>;
  open(model: ModelServer): Promise<CrashPlace>;
}

const CONFIG = "display:\n  busy_input_mode: queue\n";
/** Enough that the answer is still unsent when the gateway is killed, few enough that the next one gets through. */
const REFUSALS = 4;

const quick = (platform: string, lines: readonly string[]) =>
  `platforms:\n  ${platform}:\n    extra:\n${lines.map((line) => `      ${line}\n`).join("")}${CONFIG}`;

const telegram: CrashClass = {
  name: "polling (Telegram)",
  maySayTwice: true,
  async open(model) {
    const server = await TelegramServer.start();
    const ada = server.person("Ada");
    const home = await gatewayHome(model, {
      env: {
        ...{ TELEGRAM_BOT_TOKEN: server.token, TELEGRAM_BASE_URL: server.url },
        TELEGRAM_ALLOWED_USERS: String(ada.id),
      },
      config: quick("telegram", ["poll_timeout: 1", "network_retry: 0.05"]),
    });
    const chat = server.dm(ada);
    return {
      home,
      say: async (text) => void chat.write(ada, text),
      isAcknowledged: () => server.pending === 0,
      heard: async () => chat.fromBot.map(({ text }) => text),
      refuse: () => server.breakNext("sendMessage", { kind: "html", code: 502 }, REFUSALS),
      loseAnswer: () => server.breakNext("sendMessage", { kind: "silence" }),
      heal: () => server.healed(),
      async release() {
        await server[Symbol.asyncDispose]();
        await home[Symbol.asyncDispose]();
      },
    };
  },
};

const slack: CrashClass = {
  name: "socket (Slack)",
  maySayTwice: false,
  async open(model) {
    const server = await SlackServer.start();
    const home = await gatewayHome(model, {
      env: {
        ...{ SLACK_BOT_TOKEN: BOT.token, SLACK_APP_TOKEN: BOT.app, SLACK_API_URL: server.url },
        SLACK_ALLOWED_USERS: "U0000ANN00",
      },
      // One conversation: each message above would be another.
      config: quick("slack", ["reply_in_thread: false"]),
    });
    const direct = "D0000ANN00";
    return {
      home,
      say: async (text) => void server.say(direct, text),
      isAcknowledged: () => server.acknowledged.length > 0,
      heard: async () => server.written(direct).map(({ text }) => text),
      refuse: () => server.fail("chat.postMessage", ...Array.from({ length: REFUSALS }, () => ({ status: 503 }))),
      loseAnswer: () => server.fail("chat.postMessage", { lost: "silence" }),
      heal: () => server.healed(),
      async release() {
        await server.close();
        await home[Symbol.asyncDispose]();
      },
    };
  },
};

const whatsapp: CrashClass = {
  name: "webhook (WhatsApp)",
  maySayTwice: true,
  async open(model) {
    const server = await WhatsappServer.start();
    const ann = "15551230001";
    const home = await gatewayHome(model, {
      env: { ...server.env, WHATSAPP_CLOUD_ALLOWED_USERS: `+${ann}` },
      config: CONFIG,
    });
    const isText = (call: { readonly path: string; readonly json: object }) =>
      call.path.endsWith("/messages") && "to" in call.json;
    let taken = 0;
    return {
      home,
      async started(gateway) {
        const line = await gateway.waitFor(/^\[WhatsApp\] connected as .*, listening on/);
        server.webhook = /listening on (http:\S+)/.exec(line)?.[1] ?? "";
      },
      // Told until it is taken, by this gateway or the next.
      async say(text) {
        void server.say(ann, text).then(() => {
          taken += 1;
        });
      },
      isAcknowledged: () => taken > 0,
      heard: async () => server.textsTo(ann),
      refuse: () => server.faults.push({ on: isText, what: { status: 503 }, times: REFUSALS }),
      loseAnswer: () => server.faults.push({ on: isText, what: "hang" }),
      heal: () => void server.faults.splice(0),
      async release() {
        await server.close();
        await home[Symbol.asyncDispose]();
      },
    };
  },
};

const email: CrashClass = {
  name: "IMAP (e-mail)",
  maySayTwice: false,
  missing: missingMailServers,
  async open(model) {
    const mail = await mailServers();
    await mail.keepSentMail();
    const home = await gatewayHome(model, {
      env: {
        ...{ EMAIL_ADDRESS: "bot@mail.test", EMAIL_PASSWORD: MAIL_PASSWORD, EMAIL_ALLOWED_USERS: "alice@mail.test" },
        ...{ EMAIL_IMAP_HOST: "127.0.0.1", EMAIL_IMAP_PORT: String(mail.imapPort), EMAIL_IMAP_SECURITY: "none" },
        ...{ EMAIL_SMTP_HOST: "127.0.0.1", EMAIL_SMTP_PORT: String(mail.smtpPort), EMAIL_SMTP_SECURITY: "none" },
        EMAIL_POLL_INTERVAL: "600",
      },
      config: CONFIG,
    });
    let said = 0;
    return {
      home,
      async say(text) {
        const [messageId, before] = [`<said-${++said}@mail.test>`, `<said-${said - 1}@mail.test>`];
        const reply = said > 1 ? { inReplyTo: before, references: before } : {};
        const from = { from: "alice@mail.test", envelopeFrom: "alice@mail.test" };
        await mail.send({ ...from, to: "bot@mail.test", subject: "One thread", text, messageId, ...reply });
      },
      // There is nobody to tell: what counts is how far we have read.
      isAcknowledged: () => rowsOf(home, "SELECT 1 FROM inbox").length > 0,
      heard: async () => (await mail.inbox("alice")).map(({ text = "" }) => text.trim()),
      refuse: () => mail.refuseMail(true),
      loseAnswer: mail.loseNextReceipt,
      heal: () => mail.refuseMail(false),
      async release() {
        await mail.release();
        await home[Symbol.asyncDispose]();
      },
    };
  },
};

export const CRASH_CLASSES: readonly CrashClass[] = [telegram, slack, whatsapp, email];
