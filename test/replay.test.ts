// Everything undetermined enters through a port: the same model stream, tool results, clock, chance and files give the same requests and rows.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { openAgent } from "../src/agent/open.ts";
import { openHome } from "../src/home/open.ts";
import type { Clock } from "../src/kit/clock.ts";
import { openSessionStore } from "../src/sessions/open.ts";
import { play } from "./support/agent/agent-rig.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { manualClock } from "./support/session-store.ts";
import { modelConfig } from "./support/temp-home.ts";

const usage = { input: 10, output: 5 };

test("a conversation played twice from the same inputs sends the same bytes and leaves the same rows", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  const place = await realpath(await mkdtemp(join(tmpdir(), "hermes-replay-")));
  t.after(() => rm(place, { recursive: true, force: true }));
  const first = await playOnce(server, place);
  const second = await playOnce(server, place);
  assert.ok(first.requests.length >= 5, "calls, a failure, a result, an answer, another turn");
  first.requests.forEach((request, index) => {
    assert.ok(request === second.requests[index], `request ${index} differs`);
  });
  assert.ok(Object.values(first.rows).every((rows) => rows.length > 0));
  assert.deepEqual(second.rows, first.rows);
  assert.deepEqual(second.events, first.events);
});

/** Pauses pass at once and move the time; the limits of a request, which are long, never come. */
function replayClock(): Clock {
  const clock = manualClock();
  const forEver = (signal?: AbortSignal) =>
    new Promise<void>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason), { once: true }));
  const { now, random } = clock;
  return { now, random, sleep: (ms, signal) => (ms < 600_000 ? clock.sleep(ms, signal) : forEver(signal)) };
}

/** One life in a place that is made anew each time. */
async function playOnce(server: ModelServer, place: string) {
  await rm(place, { recursive: true, force: true });
  const dir = join(place, ".hermes");
  const project = join(place, "project");
  await mkdir(dir, { recursive: true });
  await mkdir(project);
  await writeFile(join(dir, "config.yaml"), modelConfig(server));
  await writeFile(join(project, "AGENTS.md"), "Speak softly.\n");
  await writeFile(join(project, "note.txt"), "forty-two\n");
  server
    .clear()
    .script(
      { text: "Reading.", toolCalls: [{ id: "call_a", name: "read_file", arguments: { path: "note.txt" } }], usage },
      { fault: "status", status: 503 },
      { toolCalls: [{ id: "call_b", name: "search_files", arguments: { pattern: "forty", path: "." } }], usage },
      { text: "It says forty-two.", usage },
      { text: "Bye.", usage },
    );
  const clock = replayClock();
  const home = await openHome({
    argv: [],
    env: { HERMES_HOME: dir, HOME: place, PATH: process.env.PATH ?? "" },
    osHome: place,
    cwd: project,
  });
  const store = await openSessionStore({ path: home.paths.stateDb, journalMode: "auto", log: home.log, clock });
  const opened = await openAgent({
    home,
    clock,
    store: async () => store,
    cwd: project,
    platform: "cli",
    source: "cli",
    interactive: false,
  });
  const events = [
    ...(await play(opened.agent, "what does the note say?")).events,
    ...(await play(opened.agent, "thanks")).events,
  ].map(({ type }) => type);
  await opened.close("cli_close");
  await store.close();
  await home.close();
  const requests = server.requests.map(({ path, raw, headers }) => `${path} ${headers.authorization} ${raw}`);
  const database = new DatabaseSync(join(dir, "state.db"), { readOnly: true, timeout: 10_000 });
  const rows = Object.fromEntries(
    ["sessions", "messages", "model_calls"].map((table) => [table, database.prepare(`SELECT * FROM ${table}`).all()]),
  );
  database.close();
  return { requests, rows, events };
}
