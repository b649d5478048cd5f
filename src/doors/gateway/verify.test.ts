import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { DingTalkServer } from "../../../test/support/platforms/dingtalk-server.ts";
import { DiscordServer } from "../../../test/support/platforms/discord-server.ts";
import { FeishuServer } from "../../../test/support/platforms/feishu-server.ts";
import { HomeAssistantServer } from "../../../test/support/platforms/homeassistant-server.ts";
import { MatrixServer } from "../../../test/support/platforms/matrix-server.ts";
import { MattermostServer, BOT as MM } from "../../../test/support/platforms/mattermost-server.ts";
import { SignalServer } from "../../../test/support/platforms/signal-server.ts";
import { BOT as SLACK, SlackServer } from "../../../test/support/platforms/slack-server.ts";
import { TwilioServer } from "../../../test/support/platforms/twilio-server.ts";
import { WhatsappServer } from "../../../test/support/platforms/whatsapp-server.ts";
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
  /** The variable with the address. */
  readonly address: string;
}

async function closing<T extends { close(): unknown }>(t: TestContext, server: Promise<T>): Promise<T> {
  const started = await server;
  t.after(() => started.close());
  return started;
}

const PLATFORMS: readonly Asked[] = [
  {
    platform: "discord",
    start: async (t) => {
      const { token, apiUrl } = await DiscordServer.start(t);
      return { DISCORD_BOT_TOKEN: token, DISCORD_API_URL: apiUrl };
    },
    who: "hermes",
    wrong: { DISCORD_BOT_TOKEN: /Discord does not accept DISCORD_BOT_TOKEN.*401: Unauthorized/ },
    address: "DISCORD_API_URL",
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
    address: "SLACK_API_URL",
  },
  {
    platform: "mattermost",
    start: async (t) => ({
      MATTERMOST_URL: (await closing(t, MattermostServer.start())).web.url,
      MATTERMOST_TOKEN: MM.token,
    }),
    who: "@hermes",
    wrong: { MATTERMOST_TOKEN: /Mattermost does not accept MATTERMOST_TOKEN/ },
    address: "MATTERMOST_URL",
  },
  {
    platform: "matrix",
    start: async (t) => ({
      MATRIX_HOMESERVER: (await closing(t, MatrixServer.start())).url,
      MATRIX_ACCESS_TOKEN: MatrixServer.TOKEN,
    }),
    who: "@hermes:test",
    wrong: { MATRIX_ACCESS_TOKEN: /The homeserver does not accept MATRIX_ACCESS_TOKEN/ },
    address: "MATRIX_HOMESERVER",
  },
  {
    platform: "homeassistant",
    start: async (t) => ({
      HASS_URL: (await closing(t, HomeAssistantServer.start())).url,
      HASS_TOKEN: HomeAssistantServer.TOKEN,
    }),
    who: "Home",
    wrong: { HASS_TOKEN: /Home Assistant does not accept HASS_TOKEN/ },
    address: "HASS_URL",
  },
  {
    platform: "whatsapp_cloud",
    start: async (t) => (await closing(t, WhatsappServer.start())).env,
    who: "+1 555-000-2222",
    wrong: { WHATSAPP_CLOUD_ACCESS_TOKEN: /WhatsApp does not accept WHATSAPP_CLOUD_ACCESS_TOKEN/ },
    address: "WHATSAPP_CLOUD_API_URL",
  },
  {
    platform: "sms",
    start: async (t) => (await closing(t, TwilioServer.start())).env,
    who: "AC00000000000000000000000000000001",
    wrong: { TWILIO_AUTH_TOKEN: /Twilio does not accept TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN: Authenticate/ },
    address: "TWILIO_API_URL",
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
    address: "FEISHU_DOMAIN",
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
    address: "DINGTALK_API_URL",
  },
  {
    platform: "signal",
    start: async (t) => ({
      SIGNAL_HTTP_URL: (await closing(t, SignalServer.start())).url,
      SIGNAL_ACCOUNT: SignalServer.ACCOUNT,
    }),
    who: SignalServer.ACCOUNT,
    wrong: {},
    address: "SIGNAL_HTTP_URL",
  },
];

for (const { platform, start, who, wrong, address } of PLATFORMS)
  test(`${platform} says who the bot is, or that it does not know it`, async (t) => {
    const env = await start(t);
    const entry = (await builtinPlatforms()).find(({ name }) => name === platform) ?? assert.fail();
    const ask = (variables: Env) => {
      const option: AdapterHost["option"] = (_, variable) => variables[variable ?? ""];
      return entry.verify?.({ option } as AdapterHost) ?? assert.fail("it cannot be asked"); // what these look at
    };
    assert.ok((await ask(env))?.startsWith(who), String(await ask(env)));
    for (const [variable, message] of Object.entries(wrong))
      await assert.rejects(ask({ ...env, [variable]: "wrong-0123456789" }), {
        code: "auth",
        retryable: false,
        message,
      });
    await assert.rejects(ask({ ...env, [address]: "http://127.0.0.1:9" }), { code: "unreachable", retryable: true });
  });
