// `kill -9` at every step of a message, before every class of platform. HERMES_TEST_WHOLE=1 runs all cells and prints the table.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answerTurns, ModelServer, startGateway, until } from "./support/gateway-rig.ts";
import type { RecordedRequest } from "./support/model-server/script.ts";
import { rowsOf } from "./support/paper-home.ts";
import { CRASH_CLASSES, type CrashClass, type CrashPlace } from "./support/platforms/crash-places.ts";
import { sampleOf, whole } from "./support/sample.ts";
import type { TempHome } from "./support/temp-home.ts";

/** What was last asked of the model: the answer names it, whatever stands between. */
const asked = ({ body }: RecordedRequest) =>
  JSON.stringify(body.messages)
    .match(/alpha|omega/g)
    ?.at(-1);
const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard ${asked(request)}` }));
const has = (home: TempHome, sql: string) => rowsOf(home, sql).length > 0;

interface Scene {
  readonly model: ModelServer;
  readonly place: CrashPlace;
}

/** Prepares a step, and says how to see that it is reached; what that returns is undone after the kill. */
type Step = (scene: Scene) => () => Promise<(() => void) | undefined>;

const whenRow =
  (what: string, sql: string, prepare?: (scene: Scene) => void): Step =>
  (scene) => {
    prepare?.(scene);
    return async () => {
      await until(what, () => has(scene.place.home, sql));
      return undefined;
    };
  };

const STEPS: Readonly<Record<string, Step>> = {
  /** Nobody can write: it was handed out, and is nowhere yet. */
  received({ place }) {
    const store = new DatabaseSync(place.home.at("state.db"), { timeout: 10_000 });
    store.exec("PRAGMA busy_timeout = 3000; BEGIN IMMEDIATE");
    return async () => {
      await sleep(400);
      assert.equal(has(place.home, "SELECT 1 FROM inbox"), false);
      return () => store.close();
    };
  },
  stored: whenRow("a row", "SELECT 1 FROM inbox"),
  acknowledged:
    ({ place }) =>
    async () => {
      await until("an acknowledgement", () => place.isAcknowledged() && has(place.home, "SELECT 1 FROM inbox"));
      return undefined;
    },
  leased: whenRow("a holder", "SELECT 1 FROM lanes WHERE holder IS NOT NULL"),
  running({ model }) {
    const reached = Promise.withResolvers<undefined>();
    answerTurns(model, () => {
      reached.resolve(undefined);
      return new Promise(() => undefined);
    });
    return () => reached.promise;
  },
  "tool running"({ model, place: { home } }) {
    answerTurns(model, () => ({ toolCalls: [{ name: "terminal", arguments: { command: "touch begun; sleep 20" } }] }));
    return async () => {
      await until("the tool", () => existsSync(`${home.project}/begun`));
      return undefined;
    };
  },
  answered: whenRow("an answer", "SELECT 1 FROM inbox WHERE state = 'done'", ({ place }) => place.refuse()),
  sending: whenRow("a send", "SELECT 1 FROM outbox WHERE state = 'sending'", ({ place }) => place.loseAnswer()),
  sent({ place }) {
    place.loseAnswer();
    return async () => {
      await until("its arrival", async () => (await place.heard()).length > 0);
      return undefined;
    };
  },
  marked: whenRow("the mark", "SELECT 1 FROM outbox WHERE state = 'sent'"),
};

/** What became of the message that the gateway was killed with. */
async function killedAt(step: Step, kind: CrashClass): Promise<string> {
  const model = await ModelServer.start();
  echo(model);
  const place = await kind.open(model);
  try {
    const first = await startGateway(place.home);
    await place.started?.(first);
    const reached = step({ model, place });
    await place.say("alpha");
    const undo = await reached();
    await first.kill();
    undo?.();
    place.heal();
    echo(model);
    const second = await startGateway(place.home);
    await place.started?.(second);
    const heard = async (word: string) => (await place.heard()).filter((text) => text.includes(`heard ${word}`));
    await until("the answer", async () => (await heard("alpha")).length > 0);
    await place.say("omega");
    await until("the next answer", async () => (await heard("omega")).length > 0);
    await second.stop();
    const alphas = await heard("alpha");
    const plain = alphas.filter((text) => !text.includes("(recovered)")).length;
    const marked = alphas.length - plain;
    const all = JSON.stringify(await place.heard());
    assert.ok(plain <= 1 && marked <= 1 && (kind.maySayTwice || alphas.length === 1), `once: ${all}`);
    assert.equal((await heard("omega")).length, 1, all);
    assert.match((await place.heard()).at(-1) ?? "", /heard omega/, "in order");
    assert.deepEqual(
      rowsOf(place.home, "SELECT DISTINCT state FROM inbox").map(({ state }) => state),
      ["done"],
    );
    assert.deepEqual(rowsOf(place.home, "SELECT 1 FROM outbox WHERE state <> 'sent'"), []);
    return plain + marked === 1 ? (marked ? "once, marked" : "once") : "once, and once marked";
  } finally {
    await model.close();
    await place.release();
  }
}

describe("a gateway that is killed in front of a platform", () => {
  const table = new Map<string, Map<string, string>>();
  const cells = CRASH_CLASSES.flatMap((kind) => Object.keys(STEPS).map((name) => ({ kind, name })));
  for (const { kind, name } of sampleOf(cells, 14, "crash matrix"))
    test(`${kind.name}, when a message was ${name}: it is answered, once and in order`, async (t) => {
      const missing = (await kind.missing?.()) ?? null;
      if (missing !== null) {
        assert.notEqual(process.env.HERMES_REQUIRE_ENGINES, "1", missing);
        return t.skip(missing);
      }
      const outcome = await killedAt(STEPS[name] as Step, kind); // a name of the table
      const row = table.get(name) ?? new Map<string, string>();
      table.set(name, row.set(kind.name, outcome));
    });
  after(() => {
    if (!whole) return;
    const names = CRASH_CLASSES.map(({ name }) => name);
    const rows = Object.keys(STEPS).map((step) => [
      step,
      ...names.map((name) => table.get(step)?.get(name) ?? "FAILED"),
    ]);
    const lines = [["killed when", ...names], names.map(() => "---").concat("---"), ...rows];
    console.log(lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n"));
  });
});
