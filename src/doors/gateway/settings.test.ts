import assert from "node:assert/strict";
import { test } from "node:test";
import { tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { builtinPlatforms } from "./registry.ts";
import { GatewaySettings } from "./settings.ts";

async function settingsOf(files: Readonly<Record<string, string>>, work: (settings: GatewaySettings) => unknown) {
  const temp = await tempHome(files);
  const home = await openHome({ argv: [], env: { HERMES_HOME: temp.dir }, osHome: temp.osHome, cwd: temp.project });
  await work(await GatewaySettings.open(home));
  await home.close();
  await temp[Symbol.asyncDispose]();
}

test("blocks of the original's config.yaml are options; `platforms` wins over them, they win over gateway.json", () =>
  settingsOf(
    {
      "config.yaml":
        "telegram:\n  require_mention: true\n  free_response_chats: '1,2'\n  reactions: true\n  home_channel: {chat_id: '9'}\n" +
        "discord: {enabled: false, allowed_channels: [7]}\n" +
        "platforms:\n  telegram: {extra: {free_response_chats: [3]}}\n",
      "gateway.json": JSON.stringify({
        platforms: { telegram: { extra: { require_mention: false, guest_mode: true } } },
      }),
    },
    async (settings) => {
      const option = settings.option("telegram");
      assert.equal(option("require_mention", "TELEGRAM_REQUIRE_MENTION"), true);
      assert.deepEqual(option("free_response_chats"), [3]);
      assert.equal(option("guest_mode"), true);
      assert.equal(settings.platform("discord").enabled, false);
      assert.deepEqual(settings.option("discord")("allowed_channels"), [7]);
      const telegram = (await builtinPlatforms()).find(({ name }) => name === "telegram") ?? assert.fail();
      assert.equal(settings.homeChannel(telegram)?.target.chatId, "9");
    },
  ));

test("an option that nobody reads is named as it is written", () =>
  settingsOf(
    { "config.yaml": "telegram: {require_mentoin: true}\nplatforms: {telegram: {extra: {no_such: 1}}}\n" },
    async (settings) => {
      const telegram = (await builtinPlatforms()).find(({ name }) => name === "telegram") ?? assert.fail();
      assert.deepEqual(settings.unknownOptions(telegram), [
        "platforms.telegram.extra.no_such",
        "telegram.require_mentoin",
      ]);
    },
  ));

const ENABLED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "platforms.whatsapp": { "config.yaml": "platforms: {whatsapp: {enabled: true}}\n" },
  "a block of its own": { "config.yaml": "whatsapp: {enabled: true}\n" },
  "its variable": { ".env": "WHATSAPP_ENABLED=true\n" },
  "gateway.json": { "gateway.json": JSON.stringify({ platforms: { whatsapp: { enabled: true } } }) },
};
for (const [how, files] of Object.entries(ENABLED))
  test(`the original's WhatsApp bridge, enabled by ${how}, is told where it went`, () =>
    settingsOf(files, (settings) => {
      const [line, ...more] = settings.unknownPlatforms(["whatsapp_cloud", "telegram"]);
      assert.match(line ?? "", /^whatsapp is enabled, but its bridge is not part.*gateway setup whatsapp_cloud/);
      assert.deepEqual(more, []);
      assert.deepEqual(settings.unknownPlatforms(["whatsapp"]), [], "a plugin brings it");
    }));

test("a platform that nobody has is named when it is enabled, and only then", () =>
  settingsOf(
    { "config.yaml": "platforms: {ntfy: {enabled: true}, teams: {enabled: false}, api_server: {enabled: true}}\n" },
    (settings) =>
      assert.deepEqual(settings.unknownPlatforms(["api_server"]), [
        "ntfy is enabled, but there is no such platform here; a plugin can add one",
      ]),
  ));

const PAUSES: readonly [config: string, env: string, seconds: number][] = [
  ["", "", 0],
  ["human_delay: {mode: natural, min_ms: 1}\n", "", 1.65],
  ["human_delay: {mode: custom, min_ms: 100, max_ms: 300}\n", "", 0.2],
  ["human_delay: {mode: custom, min_ms: 100, max_ms: 300}\n", "HERMES_HUMAN_DELAY_MODE=off\n", 0],
  ["", "HERMES_HUMAN_DELAY_MODE=natural\n", 1.65],
];
for (const [config, env, seconds] of PAUSES)
  test(`with ${JSON.stringify(config + env)} a pause is ${seconds} s in the middle`, () =>
    settingsOf({ "config.yaml": config, ".env": env }, (settings) =>
      assert.equal(settings.humanPause({ random: () => 0.5 }), seconds),
    ));
