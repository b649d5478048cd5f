// Several keys of one provider, from the command line to the request.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { tempHome } from "../support/temp-home.ts";

describe("hermes auth", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());

  test("keys are added, used, changed when one is spent, shown without their value, re-enabled and removed", async () => {
    await using home = await tempHome({
      "config.yaml": `model:\n  default: fake-model\n  provider: lmstudio\n  base_url: ${server.url}\n  context_length: 128000\n`,
    });
    const auth = (args: readonly string[], stdin?: string) =>
      runHermes(["auth", ...args], { home, ...(stdin === undefined ? {} : { stdin }) });
    assert.match((await auth(["list"])).stdout, /No keys saved/);
    assert.match((await auth(["remove", "lmstudio", "x"])).stderr, /no keys saved/);
    const added = await auth(["add", "lm-studio", "--label", "mine"], "lm-first-0123456789\n");
    assert.equal(added.code, 0, added.stderr);
    assert.match(added.stdout, /^✓ [0-9a-f]{6} saved for lmstudio\.\n$/);
    assert.equal((await auth(["add", "lmstudio"], "lm-second-0123456789")).code, 0);
    assert.match((await auth(["add", "lmstudio"], "lm-second-0123456789")).stderr, /already saved/);
    assert.match((await auth(["add", "lmstudio"], "changeme")).stderr, /not a key/);
    assert.match((await auth(["add", "lmstudio"], "lm-first-01234\nlm-second-5678")).stderr, /not a key.*one line/);
    assert.match((await auth(["add", "nobody"], "lm-x-0123456789")).stderr, /Unknown provider "nobody"/);
    assert.equal((await stat(home.at("auth.json"))).mode & 0o777, 0o600);

    server.script({ fault: "status", status: 402, body: { error: { message: "insufficient credits" } } });
    server.otherwise({ text: "hello" });
    assert.equal((await runHermes(["-z", "hi"], { home })).stdout.trim(), "hello");
    assert.deepEqual(
      server.requests.slice(0, 2).map(({ headers }) => headers.authorization),
      ["Bearer lm-first-0123456789", "Bearer lm-second-0123456789"],
    );
    const { stdout } = await auth(["list", "lmstudio"]);
    assert.match(
      stdout,
      /lmstudio +[0-9a-f]{6} +key +\.\.\.6789 +paused until \d\d:\d\d \(402\) +mine\n.* ready +key 2\n/,
    );
    assert.ok(!stdout.includes("0123456789"));
    assert.match((await auth(["reset", "lmstudio"])).stdout, /1 re-enabled/);
    assert.match((await auth(["reset", "lmstudio"])).stdout, /No key is paused/);
    assert.match((await auth(["remove", "lmstudio", "nope"])).stderr, /has no key "nope"/);
    assert.equal((await auth(["remove", "lmstudio", "mine"])).code, 0);
    const kept = JSON.parse(await readFile(home.at("auth.json"), "utf8")).credential_pool.lmstudio;
    assert.deepEqual(
      kept.map((entry: { label: string }) => entry.label),
      ["key 2"],
    );
  });

  test("a file that is broken is named, not taken for none, and not written over; a logout keeps the keys", async () => {
    await using home = await tempHome({ "auth.json": "{ broken" });
    const broken = await runHermes(["auth", "add", "xai"], { home, stdin: "xai-0123456789" });
    assert.equal(broken.code, 1);
    assert.match(broken.stderr, /auth\.json cannot be read/);
    const listed = await runHermes(["auth", "list"], { home });
    assert.deepEqual([listed.code, listed.stdout], [1, ""]);
    assert.match(listed.stderr, /auth\.json cannot be read \(it is not JSON\)/);
    assert.match((await runHermes(["doctor"], { home })).stdout, /✗ .*auth\.json cannot be read/);
    assert.equal(await readFile(home.at("auth.json"), "utf8"), "{ broken");
    const login = { id: "aaaaaa", auth_type: "oauth", access_token: "t-0123456789" };
    const key = { id: "bbbbbb", auth_type: "api_key", access_token: "k-0123456789" };
    const file = { active_provider: "nous", credential_pool: { nous: [login, key] }, other: 1 };
    await writeFile(home.at("auth.json"), JSON.stringify(file));
    assert.equal((await runHermes(["auth", "logout", "nous"], { home })).code, 0);
    assert.deepEqual(JSON.parse(await readFile(home.at("auth.json"), "utf8")), {
      other: 1,
      credential_pool: { nous: [key] },
    });
  });
});
