// The real gateway between a Telegram on loopback and a scripted model.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import {
  answerTurns,
  type GatewayHomeOptions,
  gatewayHome,
  ModelServer,
  type RunningGateway,
  startGateway,
} from "../gateway-rig.ts";
import type { RecordedRequest } from "../model-server/script.ts";
import type { TempHome } from "../temp-home.ts";
import { TelegramServer } from "./telegram-server.ts";
import type { Person } from "./telegram-world.ts";

export interface TelegramWorld extends AsyncDisposable {
  readonly telegram: TelegramServer;
  readonly model: ModelServer;
  readonly home: TempHome;
  gateway: RunningGateway;
  /** Two people who may write. */
  readonly ada: Person;
  readonly bob: Person;
  /** Options of `platforms.telegram.extra`, as somebody writes them into the file of a running gateway. */
  withOptions(lines: string): Promise<void>;
  /** The turns that the model was asked for: what was said last in each. */
  asked(): readonly string[];
  /** Everything that the model was sent with the last of them. */
  lastSent(): string;
}

interface WorldOptions extends Partial<GatewayHomeOptions> {
  /** Lines of `platforms.telegram.extra` that stay. */
  readonly extra?: string;
  readonly prepare?: (telegram: TelegramServer, ada: Person) => void;
  /** Null: the gateway is not started. */
  readonly ready?: RegExp;
}

/** What was said last in a request, without its pictures. */
export function saidIn(request: RecordedRequest): string {
  const content: unknown = request.body.messages.at(-1)?.content;
  if (!Array.isArray(content)) return String(content);
  return content.flatMap(({ text }: { text?: string }) => (text === undefined ? [] : [text])).join("\n");
}

export const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard: ${saidIn(request)}` }));

export async function telegramWorld({
  extra = "",
  prepare,
  ready,
  config = "",
  env,
  ...more
}: WorldOptions = {}): Promise<TelegramWorld> {
  const model = await ModelServer.start();
  const telegram = await TelegramServer.start();
  const ada = telegram.person("Ada");
  const bob = telegram.person("Bob");
  prepare?.(telegram, ada);
  echo(model);
  const quick = "poll_timeout: 2\nrequest_timeout: 1.5\nconflict_retry: 0.05\nnetwork_retry: 0.05";
  const indented = (lines: string) => lines.trim().replace(/^/gm, "      ");
  const platforms = (lines: string) =>
    `platforms:\n  telegram:\n    extra:\n${indented(`${quick}\n${extra}\n${lines}`)}\n`;
  const home = await gatewayHome(model, {
    ...more,
    config: `${config}memory:\n  nudge_interval: 0\n${platforms("")}`,
    env: {
      TELEGRAM_BOT_TOKEN: telegram.token,
      TELEGRAM_BASE_URL: telegram.url,
      TELEGRAM_ALLOWED_USERS: `${ada.id},${bob.id}`,
      ...env,
    },
  });
  const written = await readFile(home.at("config.yaml"), "utf8");
  const start = () =>
    startGateway(home, ready ? { ready } : {}).catch(async (error) => {
      await telegram[Symbol.asyncDispose]();
      await model.close();
      throw error;
    });
  const turns = () => model.requests.filter(({ body }) => body.tools?.length);
  const self: TelegramWorld = {
    ...{ telegram, model, home, ada, bob, gateway: await start() },
    withOptions: (lines) => writeFile(home.at("config.yaml"), written.replace(platforms(""), platforms(lines))),
    asked: () => turns().map(saidIn),
    lastSent: () => JSON.stringify(turns().at(-1)?.body.messages),
    async [Symbol.asyncDispose]() {
      await self.gateway.kill();
      await telegram[Symbol.asyncDispose]();
      await model.close();
      await home[Symbol.asyncDispose]();
      assert.deepEqual(telegram.problems, [], "every call keeps the rules of the Bot API");
      assert.equal(telegram.dropped, 0, "no update is thrown away");
    },
  };
  return self;
}
