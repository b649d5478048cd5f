// A conversation that outgrows its window: it goes on in a child session, is listed as its tip, and continues there.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { RecordedRequest } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { validateChat } from "../support/wire-validators.ts";

const MARKER = "[CONTEXT COMPACTION — REFERENCE ONLY]";
const long = (n: number) => `question ${n}: ${"lorem ipsum dolor sit amet ".repeat(130)}`;

describe("a conversation in a small window", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const isSummary = ({ body }: RecordedRequest) => JSON.stringify(body.messages).includes("hand-over notes");
  const smallWindow = (tokens: number) =>
    modelConfig(server).replace("context_length: 128000", `context_length: ${tokens}`);
  const say = async (home: TempHome, text: string, ...args: string[]) => {
    const { stdout, stderr, code } = await runHermes(["-z", text, "--json", "--toolsets", "todo", ...args], { home });
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };

  test("goes on in a child session; the list shows the tip, --continue goes on there, the same bytes again", async () => {
    await using home = await tempHome({ "config.yaml": smallWindow(12_000) });
    server.otherwise((request) =>
      isSummary(request)
        ? { text: "## Active Task\nNone\n## Critical Context\nThe user is Ada." }
        : { text: `noted. ${"yes ".repeat(150)}` },
    );
    const ids: string[] = [];
    for (let n = 0; n < 14 && !server.requests.some(isSummary); n++) {
      ids.push((await say(home, long(n), ...(n > 0 ? ["--continue"] : []))).session_id);
    }
    const root = ids[0];
    const tip = ids.at(-1);
    assert.ok(server.requests.some(isSummary), "it was compressed at some point");
    assert.notEqual(tip, root);

    const next = await say(home, "Who am I?", "--continue");
    assert.equal(next.session_id, tip);
    validateChat(server.last.raw);
    const [sent, earlier] = [server.last, server.requests.at(-2)].map((request) => request?.body.messages ?? []);
    assert.equal(JSON.stringify(sent).split(MARKER).length, 2, "exactly one summary");
    assert.match(JSON.stringify(sent), /The user is Ada\./);
    assert.deepEqual(sent.slice(0, earlier.length), earlier);

    const listed = JSON.parse((await runHermes(["sessions", "list", "--json"], { home })).stdout);
    const rows = Array.isArray(listed) ? listed : listed.sessions;
    assert.deepEqual(
      rows.map((row: { id: string }) => row.id),
      [tip],
    );
    const resumed = await say(home, "and again", "--resume", String(root));
    assert.equal(resumed.session_id, tip, "the old id leads to the tip");
  });

  test("that is half full is not touched; the summary is on the bill as a task of its own", async () => {
    await using home = await tempHome({ "config.yaml": smallWindow(24_000) });
    server.otherwise((request) => (isSummary(request) ? { text: "NOTES" } : { text: "ok" }));
    for (let n = 0; n < 6; n++) await say(home, long(n), ...(n > 0 ? ["--continue"] : []));
    assert.equal(server.requests.filter(isSummary).length, 0);
    await home.write("config.yaml", smallWindow(8000));
    const { session_id } = await say(home, "more", "--continue");
    assert.equal(server.requests.filter(isSummary).length > 0, true);
    const usage = await runHermes(["usage", "--session", session_id, "--by", "purpose", "--json"], { home });
    assert.match(usage.stdout, /compression/);
  });

  test("whose server names a smaller window is remembered in the home", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server).replace(/ {2}context_length.*\n/, "") });
    server.script({
      fault: "status",
      status: 400,
      body: { error: { message: "This model's maximum context length is 16384 tokens" } },
    });
    await runHermes(["-z", "hi", "--json"], { home });
    server.clear();
    const { stdout } = await runHermes(["-z", "hi", "--json"], { home });
    assert.ok(stdout);
    const { readFile } = await import("node:fs/promises");
    assert.match(await readFile(home.at("context_length_cache.yaml"), "utf8"), /fake-model@.*: 16384/);
  });
});
