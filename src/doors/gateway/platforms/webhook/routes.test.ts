import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Logger } from "../../../../home/log.ts";
import { entry } from "./entry.ts";
import { configuredRoutes, readRoute } from "./routes.ts";
import { Routes, routeRow, subscribe, unsubscribe } from "./subscriptions.ts";
import { destinationOf } from "./targets.ts";

const nothing = () => undefined;
const quiet: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => quiet };

const settings =
  (extra: Record<string, unknown>, variables: Record<string, string> = {}) =>
  (key: string, variable?: string) =>
    (variable === undefined ? undefined : variables[variable]) ?? extra[key];

async function file(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hermes-routes-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "webhook_subscriptions.json");
}

const checks: readonly (readonly [string, Record<string, unknown>, RegExp | null])[] = [
  ["no routes", {}, null],
  ["a route with a secret", { routes: { a: { secret: "s" } } }, null],
  ["a route that takes the common secret", { secret: "s", routes: { a: { secret: "" } } }, null],
  ["a route without any secret", { routes: { a: {} } }, /route a .* no secret.*WEBHOOK_SECRET/],
  ["a route without authentication on loopback", { routes: { a: { secret: "INSECURE_NO_AUTH" } } }, null],
  [
    "a route without authentication for other machines",
    { host: "0.0.0.0", routes: { a: { secret: "INSECURE_NO_AUTH" } } },
    /it checks no signature, which is only for 127\.0\.0\.1, and 0\.0\.0\.0 can be reached from other machines/,
  ],
  [
    "no authentication by the common secret, for others",
    { host: "::", secret: "INSECURE_NO_AUTH", routes: { a: {} } },
    /only for/,
  ],
  ["a secret for other machines", { host: "0.0.0.0", secret: "s", routes: { a: {} } }, null],
  ["deliver_only into the log", { secret: "s", routes: { a: { deliver_only: true } } }, /deliver_only needs a target/],
  ["deliver_only to a chat", { secret: "s", routes: { a: { deliver_only: true, deliver: "telegram" } } }, null],
  ["an operator that is none", { secret: "s", routes: { a: { filters: { x: { like: 1 } } } } }, /"like" is not one of/],
  ["a script", { secret: "s", routes: { a: { script: "x.py" } } }, /"script" is not supported/],
  ["a name with a slash", { secret: "s", routes: { "a/b": {} } }, /its name/],
  ["routes as a list", { routes: [1] }, /must be a table/],
  ["a route that is a word", { secret: "s", routes: { a: "b" } }, /route a must be a table/],
  ["a port that is none", { port: "x" }, /WEBHOOK_PORT is not a port/],
  ["GitHub without TLS", { github_api_url: "http://api.example.com" }, /github_api_url must be/],
  ["GitHub on loopback", { github_api_url: "http://127.0.0.1:1" }, null],
];

for (const [name, extra, problem] of checks)
  test(`${name}: ${problem ? "refused" : "accepted"} at the start`, () => {
    const found = entry.check?.(settings(extra)) ?? null;
    if (problem === null) assert.equal(found, null);
    else assert.match(found ?? "", problem);
  });

test("webhooks are on by their variable or setting, and off without", () => {
  assert.equal(entry.identity(settings({})), null);
  assert.equal(entry.identity(settings({}, { WEBHOOK_ENABLED: "true" })), "127.0.0.1:8644");
  assert.equal(entry.identity(settings({ enabled: true, port: 0 })), "127.0.0.1:0");
  assert.equal(entry.identity(settings({ enabled: true }, { WEBHOOK_ENABLED: "false" })), null);
});

const payload = { repository: { full_name: "octo/hello" }, pull_request: { number: 7 }, chat: "12", thread: "3", n: 9 };

const destinations: readonly (readonly [object, unknown])[] = [
  [{}, { type: "log" }],
  [{ deliver: "log" }, { type: "log" }],
  [{ deliver: "origin" }, { type: "log" }],
  [{ deliver: "telegram" }, { type: "other", target: "telegram" }],
  [{ deliver: "telegram:5" }, { type: "other", target: "telegram:5" }],
  [
    { deliver: "telegram", deliver_extra: { chat_id: "-100" } },
    { type: "other", target: "telegram:-100" },
  ],
  [
    { deliver: "telegram", deliver_extra: { chat_id: "{chat}", thread_id: "{thread}" } },
    { type: "other", target: "telegram:12:3" },
  ],
  [{ deliver: "github_comment" }, { type: "own", target: { chatId: "github_comment:octo/hello#7" } }],
  [
    { deliver: "github_comment", deliver_extra: { repo: "a/b", pr_number: "{n}" } },
    { type: "own", target: { chatId: "github_comment:a/b#9" } },
  ],
];

for (const [route, destination] of destinations)
  test(`${JSON.stringify(route)} delivers to ${JSON.stringify(destination)}`, () => {
    assert.deepEqual(destinationOf(readRoute("r", route, "config", "s"), payload, "e"), destination);
  });

test("a target that the payload does not name is none, and one that leaves its place is none", () => {
  const to = (deliver: string, extra: object, of: object = payload) =>
    destinationOf(readRoute("r", { deliver, deliver_extra: extra }, "config", "s"), { ...of }, "e").type;
  assert.equal(to("telegram", { chat_id: "{missing}" }), "none");
  assert.equal(to("github_comment", {}, {}), "none");
  assert.equal(to("github_comment", { repo: "../../user", pr_number: "1" }), "none");
  assert.equal(to("github_comment", { repo: "{x}", pr_number: "1" }, { x: "a/b/../../c" }), "none");
  assert.equal(to("github_comment", { repo: "a/b", pr_number: "1/../2" }), "none");
});

test("subscribed routes are found as soon as the file has changed, and the settings win", async (t) => {
  const path = await file(t);
  const routes = new Routes(settings({ secret: "common", routes: { fixed: { prompt: "mine" } } }), path, quiet);
  assert.equal(await routes.find("extra"), null);
  await writeFile(path, JSON.stringify({ extra: { events: ["push"] }, fixed: { prompt: "theirs" } }));
  assert.deepEqual((await routes.find("extra"))?.events, ["push"]);
  assert.equal((await routes.find("extra"))?.secret, "common");
  assert.equal((await routes.find("fixed"))?.prompt, "mine");
  assert.deepEqual(
    (await routes.all()).map(({ name, source }) => `${name} ${source}`),
    ["fixed config", "extra subscribed"],
  );
  await rm(path);
  assert.equal(await routes.find("extra"), null);
});

test("a file that is broken leaves the routes of before, and says so once", async (t) => {
  const path = await file(t);
  const warnings: string[] = [];
  const routes = new Routes(settings({}), path, { ...quiet, warn: (line) => void warnings.push(line) });
  await writeFile(path, JSON.stringify({ a: { secret: "s" } }));
  assert.notEqual(await routes.find("a"), null);
  await writeFile(path, '{"a": ');
  for (let i = 0; i < 3; i++) assert.notEqual(await routes.find("a"), null);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /not a table of webhook routes in JSON; fix it or delete it/);
});

test("names of the language itself are no routes", async (t) => {
  const routes = new Routes(settings({ routes: {} }), await file(t), quiet);
  for (const name of ["__proto__", "constructor", "toString", ""]) assert.equal(await routes.find(name), null);
});

const now = Date.UTC(2026, 0, 2);

test("a subscription is written with a secret of its own, readable by nobody else", async (t) => {
  const path = await file(t);
  const route = await subscribe(path, { name: "ci", events: ["push"], deliver: "telegram" }, { now, taken: [] });
  assert.match(route.secret, /^[\w-]{32}$/);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const again = new Routes(settings({}), path, quiet);
  assert.deepEqual(await again.find("ci"), route);
  assert.equal(JSON.parse(await readFile(path, "utf8")).ci.created_at, "2026-01-02T00:00:00.000Z");
});

test("a subscription that could not run is refused with the reason, and nothing is written", async (t) => {
  const path = await file(t);
  await assert.rejects(subscribe(path, { name: "a b" }, { now, taken: [] }), /its name may only have/);
  await assert.rejects(subscribe(path, { name: "a", deliver_only: true }, { now, taken: [] }), /deliver_only needs/);
  await assert.rejects(subscribe(path, { name: "a" }, { now, taken: ["a"] }), /is in the settings/);
  await assert.rejects(stat(path));
});

test("subscriptions at the same time are all kept, and one is removed by its name", async (t) => {
  const path = await file(t);
  const names = ["a", "b", "c", "d"];
  await Promise.all(names.map((name) => subscribe(path, { name }, { now, taken: [] })));
  assert.deepEqual(Object.keys(JSON.parse(await readFile(path, "utf8"))).sort(), names);
  assert.equal(await unsubscribe(path, "b"), true);
  assert.equal(await unsubscribe(path, "b"), false);
  assert.deepEqual(Object.keys(JSON.parse(await readFile(path, "utf8"))).sort(), ["a", "c", "d"]);
});

test("the list shows where a route is, not its secret", () => {
  const [route] = configuredRoutes(settings({ routes: { gh: { secret: "hidden", events: ["push"] } } }));
  assert.ok(route);
  assert.deepEqual(routeRow(route, "http://127.0.0.1:8644"), {
    name: "gh",
    url: "http://127.0.0.1:8644/webhooks/gh",
    events: ["push"],
    deliver: "log",
    enabled: true,
    source: "config",
  });
});
