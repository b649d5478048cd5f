import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { play, rigAgent } from "../../../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../../test/support/model-target.ts";
import { manualClock, recordedLog } from "../../../test/support/session-store.ts";
import { defaultConfig } from "../../home/config/schema.ts";
import type { RootLogger } from "../../home/log.ts";
import { homePaths } from "../../home/paths.ts";
import { createAuxiliary } from "../auxiliary/client.ts";
import type { ModelError } from "../wire.ts";
import type { PoolEntry } from "./pool.ts";
import { CredentialPools, pooledKeys } from "./pools.ts";

const FIRST = "sk-or-first-0123456789";
const SECOND = "sk-or-second-0123456789";
const THIRD = "sk-or-third-0123456789";
const TARGET = aTarget("chat_completions", {
  provider: "openrouter",
  model: "m",
  baseUrl: "https://openrouter.ai/api/v1",
  apiKey: FIRST,
  keyHosts: ["openrouter.ai"],
});

async function homeWith(
  t: TestContext,
  entries: readonly Partial<PoolEntry>[],
  { env = {}, strategy }: { env?: Record<string, string>; strategy?: string } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), "hermes-pool-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "auth.json");
  const file = { version: 1, credential_pool: { openrouter: entries, xai: [{ id: "ffffff" }] } };
  if (entries.length > 0) await writeFile(path, JSON.stringify(file));
  const home = {
    paths: homePaths(folder, folder, "default"),
    config: () => ({ ...defaultConfig(), credential_pool_strategies: strategy ? { openrouter: strategy } : {} }),
    env: (name: string) => env[name],
    log: recordedLog() as unknown as RootLogger, // writes lines; closing a file is nothing it has to do
  };
  const clock = manualClock();
  const read = async (): Promise<PoolEntry[]> => JSON.parse(await readFile(path, "utf8")).credential_pool.openrouter;
  return { home, clock, path, read, pools: new CredentialPools(home, clock) };
}

async function talk(t: TestContext, entries: readonly Partial<PoolEntry>[], steps: ScriptedStep[], env = {}) {
  const place = await homeWith(t, entries, { env });
  const gate = new ScriptedGate(...steps);
  const agent = rigAgent({
    gate,
    model: { target: TARGET },
    ports: { keys: place.pools, clock: place.clock },
  });
  const keys = () => gate.requests.map(({ target }) => target.apiKey);
  return { ...place, gate, agent, keys };
}
const key = (id: string, access_token: string, priority = 0): Partial<PoolEntry> => ({ id, access_token, priority });
const three = [key("aaaaaa", FIRST), key("bbbbbb", SECOND, 1), key("cccccc", THIRD, 2)];
const refused = (status: number, message: string, more: Partial<ModelError> = {}): ScriptedStep => ({
  error: { status, message, ...more },
});

test("a plan whose limit is reached, as the body says, gives way to the next key at once", async (t) => {
  const body = { error: { type: "usage_limit_reached", message: "The limit was hit" } };
  const { agent, keys } = await talk(t, three, [refused(429, "The limit was hit", { body }), { text: "ok" }]);
  assert.equal((await play(agent, "hi")).outcome.finalText, "ok");
  assert.deepEqual(keys(), [FIRST, SECOND]);
});

test("a rate limit is waited out once, then the next key takes over and the spent one rests an hour", async (t) => {
  const limit = refused(429, "rate limit");
  const { agent, keys, read, clock, path, pools } = await talk(t, three, [limit, limit, { text: "ok" }]);
  const { outcome, events } = await play(agent, "hi");
  assert.equal(outcome.finalText, "ok");
  assert.deepEqual(keys(), [FIRST, FIRST, SECOND]);
  assert.ok(events.some((event) => event.type === "status" && /next key of openrouter/.test(event.message)));
  const [first, second] = await read();
  assert.equal(first?.last_status, "exhausted");
  assert.equal(first?.last_error_code, 429);
  assert.equal(second?.request_count, 1);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal(await pools.others({ ...TARGET, apiKey: SECOND }), 1);
  clock.ms += 3_601_000;
  assert.equal(await pools.others({ ...TARGET, apiKey: SECOND }), 2);
});

test("an empty account and a used-up plan change the key at once", async (t) => {
  for (const step of [
    refused(402, "insufficient credits"),
    refused(429, "limit", { body: { error: { message: "usage_limit_reached" } } }),
    refused(401, "invalid api key"),
  ]) {
    const { agent, keys } = await talk(t, three, [step, { text: "ok" }]);
    await play(agent, "hi");
    assert.deepEqual(keys(), [FIRST, SECOND]);
  }
});

test("an overloaded server and a limit further up are not the key's fault", async (t) => {
  for (const step of [
    refused(503, "overloaded"),
    refused(429, "x", { body: { error: { message: "Provider returned error" } } }),
    refused(403, "forbidden for this account"),
  ]) {
    const { agent, keys } = await talk(t, three, [step, { text: "ok" }]);
    await play(agent, "hi");
    assert.deepEqual([...new Set(keys())], [FIRST]);
  }
});

test("when every key is spent the failure is told, and a time the provider named is kept", async (t) => {
  const empty = (reset: number) => refused(402, "insufficient credits", { body: { error: { resets_at: reset } } });
  const { agent, keys, read } = await talk(t, three, [empty(4e12), empty(4e12), empty(4e12)]);
  const { outcome } = await play(agent, "hi");
  assert.equal(outcome.failed, true);
  assert.deepEqual(keys(), [FIRST, SECOND, THIRD]);
  assert.deepEqual(
    (await read()).map((entry) => entry.last_error_reset_at),
    [4e9, 4e9, 4e9],
  );
});

test("keys whose rest is over at once do not go round for ever", async (t) => {
  const soon = refused(402, "insufficient credits; retry after 0 s");
  const { agent, keys } = await talk(t, three, [soon, soon, soon, soon, soon]);
  assert.equal((await play(agent, "hi")).outcome.failed, true);
  assert.deepEqual(keys(), [FIRST, SECOND, THIRD]);
});

test("a key that stands in a variable is kept by name and fingerprint; its value never reaches the file", async (t) => {
  const entries = [key("bbbbbb", SECOND, 1)];
  const env = { OPENROUTER_API_KEY: FIRST };
  const { agent, keys, path, pools, home } = await talk(t, entries, [refused(402, "no credits"), { text: "ok" }], env);
  await play(agent, "hi");
  assert.deepEqual(keys(), [FIRST, SECOND]);
  const text = await readFile(path, "utf8");
  assert.ok(!text.includes(FIRST), text);
  assert.match(text, /"source": "env:OPENROUTER_API_KEY"/);
  assert.match(text, /"version": 1/);
  assert.match(text, /"ffffff"/, "pools of other providers stay");
  assert.equal(await pools.others({ ...TARGET, apiKey: SECOND }), 0, "the spent one rests");
  env.OPENROUTER_API_KEY = THIRD;
  assert.equal(home.env("OPENROUTER_API_KEY"), THIRD);
  assert.equal(await pools.others({ ...TARGET, apiKey: SECOND }), 1, "another key behind the same name is fresh");
});

test("a pool never leads a key to a host it was not made for", async (t) => {
  const elsewhere = { ...TARGET, baseUrl: "http://127.0.0.1:9/v1" };
  const { pools } = await homeWith(t, three);
  assert.equal(await pools.others(elsewhere), 0);
  const paired = await homeWith(t, [
    key("aaaaaa", FIRST),
    { ...key("bbbbbb", SECOND, 1), base_url: "http://127.0.0.1:9/v1" },
  ]);
  assert.equal(await paired.pools.others(elsewhere), 1, "unless the entry names that host itself");
});

test("the first key of a session comes from the pool when nothing else names one", async (t) => {
  const { home, clock } = await homeWith(t, [
    { ...three[0], last_status: "exhausted", last_status_at: 1e12 },
    ...three.slice(1),
  ]);
  const pooled = await pooledKeys(home, clock);
  assert.deepEqual(pooled?.("openrouter"), { key: SECOND, baseUrl: undefined });
  assert.equal(pooled?.("anthropic"), null);
  const none = await homeWith(t, []);
  assert.equal(await pooledKeys(none.home, none.clock), undefined);
});

test("the least used key comes first where the settings say so", async (t) => {
  const entries = [
    { ...three[0], request_count: 5 },
    { ...three[1], request_count: 2 },
  ];
  const { home, clock } = await homeWith(t, entries, { strategy: "least_used" });
  assert.equal((await pooledKeys(home, clock))?.("openrouter")?.key, SECOND);
});

test("a broken auth.json costs the pool, not the turn", async (t) => {
  const { agent, path, keys } = await talk(t, three, [refused(402, "no credits")]);
  await writeFile(path, "{ broken");
  const { outcome } = await play(agent, "hi");
  assert.equal(outcome.failed, true);
  assert.match(outcome.finalText ?? "", /credit/i);
  assert.deepEqual(keys(), [FIRST]);
  assert.equal(await readFile(path, "utf8"), "{ broken");
});

test("two conversations that use one key up at the same time end on different sides of the same file", async (t) => {
  const { home, clock, read, pools } = await homeWith(t, three);
  const failure = {
    error: { message: "no credits", status: 402 },
    classified: {
      reason: "billing",
      retryable: false,
      shouldCompress: false,
      shouldRotateCredential: true,
      shouldFallback: true,
      statusCode: 402,
      message: "no credits",
    },
    worthRetrying: false,
    worthMoving: true,
  } as const;
  const other = new CredentialPools(home, clock);
  const moved = await Promise.all([
    pools.rotate(TARGET, failure),
    other.rotate({ ...TARGET, apiKey: SECOND }, failure),
  ]);
  const spent = (await read()).filter((entry) => entry.last_status === "exhausted").map(({ id }) => id);
  assert.deepEqual(spent, ["aaaaaa", "bbbbbb"]);
  assert.ok(moved.some((target) => target?.apiKey === THIRD));
});

test("a side call changes the key too, and the conversation goes on with the new one", async (t) => {
  const { pools, clock } = await homeWith(t, three);
  const gate = new ScriptedGate(refused(402, "no credits"), { text: "a title" });
  const asked: string[] = [];
  const aux = createAuxiliary({
    gate,
    clock,
    log: recordedLog(),
    config: () => defaultConfig(),
    main: () => TARGET,
    keys: pools,
    onNewKey: (before, after) => asked.push(before.apiKey, after.apiKey),
  });
  const messages = [{ role: "user", content: "name it" }] as const;
  const { signal } = new AbortController();
  const answer = await aux.callAux({ task: "title_generation", messages, signal, sessionId: null });
  assert.equal(answer.text, "a title");
  assert.deepEqual(asked, [FIRST, SECOND]);
});

for (const strategy of ["round_robin", "least_used"]) {
  test(`${strategy}: each process takes the next key, and the first one again after the last`, async (t) => {
    const { home, clock, pools } = await homeWith(t, three, { strategy });
    const taken: (string | undefined)[] = [];
    for (let run = 0; run < 4; run++) {
      const pooled = await pooledKeys(home, clock);
      const key = pooled?.("openrouter")?.key ?? "";
      taken.push(key);
      clock.ms += 1000;
      const agent = rigAgent({
        gate: new ScriptedGate({ text: "a" }, { text: "b" }),
        model: { target: { ...TARGET, apiKey: key } },
        ports: { keys: pools, clock },
      });
      await play(agent, "hi");
      await play(agent, "and");
    }
    assert.deepEqual(taken, [FIRST, SECOND, THIRD, FIRST]);
  });
}
