import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { DingTalkServer } from "../../../test/support/platforms/dingtalk-server.ts";
import { DiscordServer } from "../../../test/support/platforms/discord-server.ts";
import { FeishuServer } from "../../../test/support/platforms/feishu-server.ts";
import { GithubServer } from "../../../test/support/platforms/github-server.ts";
import { HomeAssistantServer } from "../../../test/support/platforms/homeassistant-server.ts";
import { accountServer, ircServer, missingIrcServer } from "../../../test/support/platforms/irc-server.ts";
import { MAIL_PASSWORD, mailServers, missingMailServers } from "../../../test/support/platforms/mail-servers.ts";
import { MatrixServer } from "../../../test/support/platforms/matrix-server.ts";
import { MattermostServer, BOT as MM } from "../../../test/support/platforms/mattermost-server.ts";
import { SignalServer } from "../../../test/support/platforms/signal-server.ts";
import { BOT as SLACK, SlackServer } from "../../../test/support/platforms/slack-server.ts";
import { TwilioServer } from "../../../test/support/platforms/twilio-server.ts";
import { WeComServer } from "../../../test/support/platforms/wecom-server.ts";
import { WhatsappServer } from "../../../test/support/platforms/whatsapp-server.ts";
import { missingXmppServer, XMPP_PASSWORD, xmppServer } from "../../../test/support/platforms/xmpp-server.ts";
import { recordedLog } from "../../../test/support/session-store.ts";
import { systemClock } from "../../kit/clock.ts";
import type { AdapterHost } from "./contract.ts";
import { builtinPlatforms } from "./registry.ts";

type Env = Readonly<Record<string, string>>;
interface Asked {
  readonly platform: string;
  /** Starts a look-alike and names what sets the platform up with it. */
  start(t: TestContext): Promise<Env>;
  readonly who: string;
  /** The variables that hold a secret, each of which may be wrong, and what is said then. */
  readonly wrong: Readonly<Record<string, RegExp>>;
  /** What there is of the settings when nobody answers. */
  readonly gone: Env;
  /** Why its server is not there. */
  readonly missing?: () => Promise<string | null>;
  /** What is left behind by all these questions; null: nothing. */
  readonly rest?: () => unknown;
}

/** Starts a server of its own; ends it with the test. */
async function released<T extends { release(): Promise<unknown> }>(t: TestContext, server: Promise<T>): Promise<T> {
  const started = await server;
  t.after(() => started.release());
  return started;
}

async function closing<T extends { close(): unknown }>(t: TestContext, server: Promise<T>): Promise<T> {
  const started = await server;
  t.after(() => started.close());
  return started;
}

const IRC: Env = { IRC_SERVER: "127.0.0.1", IRC_USE_TLS: "false" };
let homeserver: MatrixServer | null = null;

const PLATFORMS: readonly Asked[] = [
  {
    platform: "discord",
    start: async (t) => {
      const { token, apiUrl } = await DiscordServer.start(t);
      return { DISCORD_BOT_TOKEN: token, DISCORD_API_URL: apiUrl };
    },
    who: "hermes",
    wrong: { DISCORD_BOT_TOKEN: /Discord does not accept DISCORD_BOT_TOKEN.*401: Unauthorized/ },
    gone: { DISCORD_API_URL: "http://127.0.0.1:9" },
  },
  {
    platform: "slack",
    start: async (t) => {
      const { url } = await closing(t, SlackServer.start());
      return { SLACK_BOT_TOKEN: SLACK.token, SLACK_APP_TOKEN: SLACK.app, SLACK_API_URL: url };
    },
    who: "@hermes in",
    wrong: {
      SLACK_BOT_TOKEN: /Slack does not accept SLACK_BOT_TOKEN: invalid_auth/,
      SLACK_APP_TOKEN: /Slack does not accept SLACK_APP_TOKEN.*: (?:invalid_auth|not_allowed_token_type)/,
    },
    gone: { SLACK_API_URL: "http://127.0.0.1:9" },
  },
  {
    platform: "mattermost",
    start: async (t) => ({
      MATTERMOST_URL: (await closing(t, MattermostServer.start())).web.url,
      MATTERMOST_TOKEN: MM.token,
    }),
    who: "@hermes",
    wrong: { MATTERMOST_TOKEN: /Mattermost does not accept MATTERMOST_TOKEN/ },
    gone: { MATTERMOST_URL: "http://127.0.0.1:9" },
  },
  {
    platform: "matrix",
    start: async (t) => ({
      MATRIX_HOMESERVER: (await closing(t, MatrixServer.start())).url,
      MATRIX_ACCESS_TOKEN: MatrixServer.TOKEN,
    }),
    who: "@hermes:test",
    wrong: { MATRIX_ACCESS_TOKEN: /The homeserver does not accept MATRIX_ACCESS_TOKEN/ },
    gone: { MATRIX_HOMESERVER: "http://127.0.0.1:9" },
  },
  {
    platform: "homeassistant",
    start: async (t) => ({
      HASS_URL: (await closing(t, HomeAssistantServer.start())).url,
      HASS_TOKEN: HomeAssistantServer.TOKEN,
    }),
    who: "Home",
    wrong: { HASS_TOKEN: /Home Assistant does not accept HASS_TOKEN/ },
    gone: { HASS_URL: "http://127.0.0.1:9" },
  },
  {
    platform: "whatsapp_cloud",
    start: async (t) => (await closing(t, WhatsappServer.start())).env,
    who: "+1 555-000-2222",
    wrong: { WHATSAPP_CLOUD_ACCESS_TOKEN: /WhatsApp does not accept WHATSAPP_CLOUD_ACCESS_TOKEN/ },
    gone: { WHATSAPP_CLOUD_API_URL: "http://127.0.0.1:9" },
  },
  {
    platform: "sms",
    start: async (t) => (await closing(t, TwilioServer.start())).env,
    who: "AC00000000000000000000000000000001",
    wrong: { TWILIO_AUTH_TOKEN: /Twilio does not accept TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN: Authenticate/ },
    gone: { TWILIO_API_URL: "http://127.0.0.1:9" },
  },
  {
    platform: "feishu",
    start: async (t) => ({
      FEISHU_DOMAIN: (await closing(t, FeishuServer.start())).url,
      FEISHU_APP_ID: FeishuServer.APP,
      FEISHU_APP_SECRET: FeishuServer.SECRET,
    }),
    who: FeishuServer.APP,
    wrong: { FEISHU_APP_SECRET: /Feishu does not accept FEISHU_APP_ID and FEISHU_APP_SECRET/ },
    gone: { FEISHU_DOMAIN: "http://127.0.0.1:9" },
  },
  {
    platform: "dingtalk",
    start: async (t) => ({
      DINGTALK_API_URL: (await closing(t, DingTalkServer.start())).url,
      DINGTALK_CLIENT_ID: DingTalkServer.ID,
      DINGTALK_CLIENT_SECRET: DingTalkServer.SECRET,
    }),
    who: DingTalkServer.ID,
    wrong: { DINGTALK_CLIENT_SECRET: /DingTalk does not accept DINGTALK_CLIENT_ID and DINGTALK_CLIENT_SECRET/ },
    gone: { DINGTALK_API_URL: "http://127.0.0.1:9" },
  },
  {
    platform: "signal",
    start: async (t) => ({
      SIGNAL_HTTP_URL: (await closing(t, SignalServer.start())).url,
      SIGNAL_ACCOUNT: SignalServer.ACCOUNT,
    }),
    who: SignalServer.ACCOUNT,
    wrong: {},
    gone: { SIGNAL_HTTP_URL: "http://127.0.0.1:9" },
  },
  {
    platform: "matrix",
    start: async (t) => {
      homeserver = await closing(t, MatrixServer.start());
      const { PASSWORD } = MatrixServer;
      return { MATRIX_HOMESERVER: homeserver.url, MATRIX_USER_ID: "hermes", MATRIX_PASSWORD: PASSWORD };
    },
    who: "@hermes:test",
    wrong: { MATRIX_PASSWORD: /does not accept MATRIX_USER_ID with MATRIX_PASSWORD: Invalid username or password/ },
    gone: { MATRIX_HOMESERVER: "http://127.0.0.1:9" },
    rest: () => homeserver?.passing.size || null,
  },
  {
    platform: "wecom",
    start: async (t) => ({
      WECOM_WEBSOCKET_URL: (await closing(t, WeComServer.start())).url,
      WECOM_BOT_ID: WeComServer.BOT,
      WECOM_SECRET: WeComServer.SECRET,
    }),
    who: WeComServer.BOT,
    wrong: { WECOM_SECRET: /WeCom does not accept this bot: .*set WECOM_BOT_ID and WECOM_SECRET/ },
    gone: { WECOM_WEBSOCKET_URL: "ws://127.0.0.1:9" },
  },
  {
    platform: "webhook",
    start: async (t) => {
      const { url, token } = await closing(t, GithubServer.start([]));
      return { WEBHOOK_ENABLED: "true", WEBHOOK_PORT: "0", github_api_url: url, GITHUB_TOKEN: token };
    },
    who: "http://127.0.0.1:",
    wrong: { GITHUB_TOKEN: /GitHub does not accept GITHUB_TOKEN: Bad credentials/ },
    gone: { github_api_url: "http://127.0.0.1:9" },
  },
  {
    platform: "irc",
    start: async (t) => {
      const account = { name: "helper", password: "a nick password", sasl: true };
      const { port } = await released(t, accountServer(account));
      return { ...IRC, IRC_PORT: String(port), IRC_NICKNAME: "helper", IRC_NICKSERV_PASSWORD: account.password };
    },
    who: "helper on 127.0.0.1, logged in",
    wrong: { IRC_NICKSERV_PASSWORD: /refused the password of helper; check IRC_NICKSERV_PASSWORD/ },
    gone: { IRC_PORT: "9" },
  },
  {
    platform: "irc",
    missing: missingIrcServer,
    start: async (t) => {
      const { port } = await released(t, ircServer({ password: "a-server-password" }));
      return { ...IRC, IRC_PORT: String(port), IRC_SERVER_PASSWORD: "a-server-password" };
    },
    who: "hermes-bot on 127.0.0.1",
    wrong: { IRC_SERVER_PASSWORD: /refused the password of the server.*check IRC_SERVER_PASSWORD/ },
    gone: { IRC_PORT: "9" },
  },
  {
    platform: "xmpp",
    missing: missingXmppServer,
    start: async (t) => {
      const { service } = await released(t, xmppServer());
      return { XMPP_JID: "bot@xmpp.test", XMPP_PASSWORD, XMPP_SERVICE: service };
    },
    who: "bot@xmpp.test",
    wrong: { XMPP_PASSWORD: /refused the login of bot@xmpp\.test; check XMPP_JID and XMPP_PASSWORD/ },
    gone: { XMPP_SERVICE: "xmpp://127.0.0.1:9" },
  },
  {
    platform: "email",
    missing: missingMailServers,
    start: async (t) => {
      const { imapPort, smtpPort } = await released(t, mailServers());
      return {
        ...{ EMAIL_ADDRESS: "bot@mail.test", EMAIL_PASSWORD: MAIL_PASSWORD },
        ...{ EMAIL_IMAP_HOST: "127.0.0.1", EMAIL_IMAP_PORT: String(imapPort), EMAIL_IMAP_SECURITY: "none" },
        ...{ EMAIL_SMTP_HOST: "127.0.0.1", EMAIL_SMTP_PORT: String(smtpPort), EMAIL_SMTP_SECURITY: "none" },
      };
    },
    who: "bot@mail.test",
    wrong: { EMAIL_PASSWORD: /refused the login of bot@mail\.test; check EMAIL_ADDRESS and EMAIL_PASSWORD/ },
    gone: { EMAIL_SMTP_PORT: "9" },
  },
];

for (const { platform, start, who, wrong, gone, missing, rest } of PLATFORMS)
  test(`${platform} (${Object.keys(wrong).join(", ")}) says who the bot is, or that it does not know it`, async (t) => {
    const absent = await missing?.();
    if (absent && process.env.HERMES_REQUIRE_ENGINES !== "1") return t.skip(absent);
    const env = await start(t);
    const entry = (await builtinPlatforms()).find(({ name }) => name === platform) ?? assert.fail();
    const ask = (variables: Env) => {
      const option: AdapterHost["option"] = (key, variable) => variables[variable ?? key];
      const load: AdapterHost["package"] = (_, get) => get();
      const none = { cursor: async () => null, receive: async () => [], knownChats: async () => [] };
      const host = { option, package: load, clock: systemClock, log: recordedLog(), ...none };
      return entry.verify?.(host as unknown as AdapterHost) ?? assert.fail("it cannot be asked"); // what these look at
    };
    const said = String(await ask(env));
    assert.ok(said.startsWith(who), said);
    for (const [variable, message] of Object.entries(wrong))
      await assert.rejects(ask({ ...env, [variable]: "wrong-0123456789" }), {
        code: "auth",
        retryable: false,
        message,
      });
    await assert.rejects(ask({ ...env, ...gone }), { code: /^(?:unreachable|connection)$/, retryable: true });
    assert.equal(rest?.() ?? null, null);
  });

test("a port that cannot be listened on is told with its setting", async () => {
  const entry = (await builtinPlatforms()).find(({ name }) => name === "webhook") ?? assert.fail();
  const variables: Env = { WEBHOOK_ENABLED: "true", WEBHOOK_HOST: "192.0.2.1", WEBHOOK_PORT: "0" };
  const host = { option: (_: string, variable = "") => variables[variable], log: recordedLog() };
  await assert.rejects(entry.verify?.(host as unknown as AdapterHost) ?? assert.fail(), {
    retryable: false,
    message: /cannot listen on 192\.0\.2\.1:0 \(WEBHOOK_PORT and WEBHOOK_HOST\)/,
  });
});
