import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readApiSettings, refusalToStart, startWarnings } from "./settings.ts";

type Options = Readonly<Record<string, unknown>>;
const read = (options: Options = {}, profile = "default") =>
  readApiSettings((key) => options[key], { paths: { profile } } as Parameters<typeof readApiSettings>[1]); // nothing else of it is read

describe("F272: who may use a server off this machine", () => {
  const cases: readonly (readonly [key: string | undefined, refused: RegExp | null])[] = [
    [undefined, /no key is set/],
    ["change-me-local-dev", /placeholder/],
    ["changeme", /placeholder/],
    ["CHANGE_THIS_KEY", /placeholder/],
    ["your-secret-key", /placeholder/],
    ["<your key here>", /placeholder/],
    ["xxxxxxxxxxxx", /placeholder/],
    ["password123", /placeholder/],
    ["api-key", /placeholder/],
    ["k7Rq2_a", /shorter than 8/],
    ["k7Rq2_ab", null],
    ["xxxxxxxxxxxy", null],
  ];
  for (const [key, refused] of cases)
    test(`${key ?? "nobody in particular"}: ${refused === null ? "starts" : "does not start"}`, () => {
      for (const host of ["0.0.0.0", "::", "192.168.1.5", "hermes.lan", "127.0.0.1.evil.example"]) {
        const said = refusalToStart(read({ host, key }));
        if (refused === null) assert.equal(said, null);
        else assert.match(said ?? "", refused);
      }
      for (const host of ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
        assert.equal(refusalToStart(read({ host, key })), null);
    });

  test("F276: what a person should know is said", () => {
    const said = (options: Options) => startWarnings(read(options)).join("\n");
    assert.equal(said({ key: "k7Rq2_ab" }), "");
    assert.match(said({}), /^no key is set: any local program can use this server$/);
    assert.match(said({ host: "0.0.0.0", key: "k7Rq2_ab" }), /can run commands on this host/);
    assert.match(said({ key: "k7Rq2_ab", cors_origins: "*" }), /every web page that has the key/);
    assert.match(said({ cors_origins: "*" }), /does nothing without a key/);
  });
});

test("the name that clients see is the configured one, else that of the profile, else hermes-agent", () => {
  assert.equal(read({ model_name: " mine " }, "work").modelName, "mine");
  assert.equal(read({}, "work").modelName, "work");
  for (const profile of ["default", "custom", ""]) assert.equal(read({}, profile).modelName, "hermes-agent");
});

test("models of clients count as an alias, or when that is switched on", () => {
  assert.deepEqual(
    read({ model_routes: { a: "m", b: { model: " n ", provider: "p" }, c: { provider: "p" }, d: 7 } }).routes,
    {
      ...{ a: { model: "m" }, b: { model: "n", provider: "p" } },
    },
  );
  assert.equal(read().directModels, false);
  assert.equal(read({ direct_model_requests: true }).directModels, true);
  assert.equal(read({ direct_model_requests: "perhaps" }).directModels, false);
});

test("what cannot be meant is an error by the name of the setting, or the default", () => {
  for (const port of ["eighty", -1, 65_536, 1.5]) assert.throws(() => read({ port }), /API_SERVER_PORT is not a port/);
  assert.deepEqual([read().port, read({ port: "0" }).port], [8642, 0]);
  assert.deepEqual([read({ max_turns: -1 }).maxTurns, read({ busy_seconds: "soon" }).busySeconds], [256, 30]);
  assert.deepEqual(read({ cors_origins: " https://a.example/ ,, http://b:3000" }).origins, [
    "https://a.example",
    "http://b:3000",
  ]);
  assert.deepEqual(read({ key: 12345678 }).key, "12345678");
});
