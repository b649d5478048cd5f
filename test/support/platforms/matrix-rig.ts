// The real gateway with a homeserver on loopback: a direct chat, a room of three, and what tests look at in them.
import assert from "node:assert/strict";
import {
  answerTurns,
  type GatewayHomeOptions,
  gatewayHome,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  until,
} from "../gateway-rig.ts";
import type { TempHome } from "../temp-home.ts";
import { type MatrixEvent, MatrixServer } from "./matrix-server.ts";

export const ANN = "@ann:test";
export const BOB = "@bob:test";
export const EVE = "@eve:test";
const { BOT } = MatrixServer;

export interface World extends AsyncDisposable {
  readonly server: MatrixServer;
  readonly model: ModelServer;
  readonly home: TempHome;
  readonly dm: string;
  readonly team: string;
  gateway: RunningGateway;
  /** A message of the bot in a room that holds this part, in its last form. */
  written(part: string, room?: string): Promise<MatrixEvent>;
}

interface WorldOptions extends Partial<GatewayHomeOptions> {
  readonly extra?: string;
}

export async function world({ extra = "", ...options }: WorldOptions = {}): Promise<World> {
  const model = await ModelServer.start();
  const server = await MatrixServer.start();
  const dm = server.room({ [ANN]: "Ann" });
  const team = server.room({ [ANN]: "Ann", [BOB]: "Bob" }, { name: "Team" });
  server.say(dm, ANN, "from before the bot existed");
  echo(model);
  const settings = `sync_timeout: 1\nrequest_timeout: 2\n${extra}`.trim().replace(/^/gm, "      ");
  const home = await gatewayHome(model, {
    ...options,
    config: `platforms:\n  matrix:\n    extra:\n${settings}\n${options.config ?? ""}`,
    env: {
      ...{ MATRIX_HOMESERVER: server.url, MATRIX_ACCESS_TOKEN: MatrixServer.TOKEN },
      ...{ MATRIX_ALLOWED_USERS: `${ANN},${BOB}`, ...options.env },
    },
  });
  const self: World = {
    ...{ server, model, home, dm, team, gateway: await startGateway(home) },
    async written(part, room = dm) {
      const find = () => server.sent(room).find(({ content }) => String(content.body).includes(part));
      await until(`"${part}" is written`, () => find() !== undefined).catch((error: Error) => {
        throw new Error(
          `${error.message}; there: ${JSON.stringify(server.sent(room).map(({ content }) => content.body))}`,
        );
      });
      return find() ?? assert.fail();
    },
    async [Symbol.asyncDispose]() {
      await self.gateway.kill();
      await server.close();
      await model.close();
      await home[Symbol.asyncDispose]();
    },
  };
  return self;
}

export const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
export const mention = (body: string) => ({ msgtype: "m.text", body, "m.mentions": { user_ids: [BOT] } });
export const bodies = (server: MatrixServer, room: string) =>
  server.sent(room).map(({ content }) => String(content.body));
export const asked = (model: ModelServer, part: string) => model.requests.filter((one) => lastSaid(one).includes(part));
/** Answers a request only when the test says so. */
export function held(model: ModelServer, text: string) {
  const gate = Promise.withResolvers<void>();
  answerTurns(model, async () => {
    await gate.promise;
    return { text };
  });
  return gate;
}
