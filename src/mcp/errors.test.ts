import assert from "node:assert/strict";
import { test } from "node:test";
import { withoutSecrets } from "./errors.ts";
import { serverEnvironment } from "./link.ts";

const cases: readonly [text: string, shown: string][] = [
  ["Authorization: Bearer abc.def-123 refused", "Authorization: Bearer [REDACTED] refused"],
  ["GET /?api_key=12345&x=1", "GET /?api_key=[REDACTED]&x=1"],
  ["token=abc password=hunter2", "token=[REDACTED] password=[REDACTED]"],
  ["key ghp_abcdef123456 is bad", "key [REDACTED] is bad"],
  ["nothing secret", "nothing secret"],
];

for (const [text, shown] of cases) {
  test(`"${shown}" is what is left of an error`, () =>
    assert.equal(
      withoutSecrets(text, (same) => same),
      shown,
    ));
}

test("a server's process sees a few harmless variables and what it was given", () => {
  const parent = {
    PATH: "/bin",
    HOME: "/h",
    LANG: "C",
    XDG_DATA_HOME: "/d",
    OPENAI_API_KEY: "k",
    AWS_SECRET: "s",
    FOO: "1",
  };
  assert.deepEqual(serverEnvironment(parent, { TOKEN: "mine" }, "linux"), {
    PATH: "/bin",
    HOME: "/h",
    LANG: "C",
    XDG_DATA_HOME: "/d",
    TOKEN: "mine",
  });
});
