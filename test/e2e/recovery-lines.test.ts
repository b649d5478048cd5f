// Whatever goes wrong on the way to a model and is got over: the user reads one line about it, at the command line and on the screen.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { PNG } from "pngjs";
import { imageSize } from "../../src/llm/pictures/fit.ts";
import type { RecordedRequest, Step } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const refusal = (status: number, message: string, headers: Record<string, string> = {}): Step => ({
  fault: "status",
  status,
  body: { error: { message } },
  headers,
});

interface Case {
  readonly what: string;
  readonly steps: readonly Step[];
  readonly line: RegExp;
  readonly config?: (server: ModelServer, other: ModelServer) => string;
  readonly picture?: true;
}

const chain = (_: ModelServer, other: ModelServer) =>
  `fallback_providers:\n  - provider: custom\n    model: other-model\n    base_url: ${other.url}\n`;

const CASES: readonly Case[] = [
  {
    what: "a pause before the next attempt",
    steps: [refusal(503, "overloaded", { "retry-after": "0" })],
    line: /^↻ HTTP 503: overloaded — retrying in 0 s \(attempt 2 of 3\)$/gm,
  },
  { what: "a connection that broke", steps: [{ fault: "reset" }], line: /^↻ .*— reconnecting$/gm },
  {
    what: "an answer that broke off",
    steps: [{ fault: "cut", after: 3, answer: { text: "half of an answer that is long enough" } }],
    line: /^↻ connection lost; asking again$/gm,
  },
  {
    what: "an answer cut at its limit",
    steps: [{ text: "one half,", finish: "length" }],
    line: /^↻ the answer was cut off at the output limit; asking again$/gm,
  },
  {
    what: "an output cap that is too high",
    steps: [refusal(400, "max_tokens is too large: 200 tokens available")],
    line: /^↻ .*— retrying with an answer limit of 136 tokens$/gm,
  },
  {
    what: "a stand-in",
    steps: [refusal(402, "insufficient credits")],
    line: /^⚠ .*402.* — continuing with other-model \(custom\)\.$/gm,
    config: chain,
  },
  {
    what: "a refusal",
    steps: [{ text: "I will not.", finish: "content_filter" }],
    line: /^⚠ .*it refused the request — continuing with other-model \(custom\)\.$/gm,
    config: chain,
  },
  {
    what: "a picture that is too large",
    steps: [refusal(400, "image exceeds 5 MB maximum")],
    line: /^⚠ The server finds the pictures too large.*$/gm,
    picture: true,
  },
  {
    what: "a parameter that is not taken",
    steps: [refusal(400, "Unsupported parameter: 'stream_options'")],
    line: /^⚠ This model does not take the parameter stream_options.*$/gm,
  },
];

function pictureSize({ raw }: RecordedRequest) {
  const [, base64 = ""] = /"data:image\/\w+;base64,([^"]+)"/.exec(raw) ?? [];
  return imageSize(Buffer.from(base64, "base64"));
}

describe("recovery", () => {
  let server: ModelServer;
  let other: ModelServer;
  before(async () => {
    [server, other] = await Promise.all([ModelServer.start(), ModelServer.start()]);
  });
  beforeEach(() => void [server.clear(), other.clear()]);
  after(() => Promise.all([server.close(), other.close()]));

  // Of each way to recover one: the same request again, another model, another request.
  const stoodIn = CASES.filter(({ config }) => config !== undefined);
  const changed = CASES.filter(({ line, config }) => line.source.startsWith("^⚠") && config === undefined);
  const repeated = CASES.filter((one) => !stoodIn.includes(one) && !changed.includes(one));
  const drawn = [
    ...oneOf(repeated, "a request again"),
    ...oneOf(stoodIn, "another model"),
    ...oneOf(changed, "another request"),
  ];
  for (const { what, steps, line, config, picture } of drawn) {
    test(`${what} is one line beside the answer`, async () => {
      await using home = await tempHome({ "config.yaml": modelConfig(server) + (config?.(server, other) ?? "") });
      await writeFile(join(home.project, "dot.png"), Buffer.from(PIXEL, "base64"));
      for (const place of [server, other]) place.otherwise({ text: "here it is" });
      server.script(...steps);
      const args = picture ? ["--image", "dot.png"] : [];
      const { code, stdout, stderr } = await runHermes(["chat", "-q", "hello", ...args], { home });
      assert.equal(code, 0, stderr);
      assert.match(stdout, /here it is/);
      assert.equal(stderr.match(line)?.length, 1, stderr);
    });
  }

  test("a picture that is too large goes out again as a smaller copy", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await writeFile(join(home.project, "wide.png"), PNG.sync.write(new PNG({ width: 9000, height: 30 })));
    server.script(refusal(400, "image dimensions exceed max allowed size: 8000 pixels")).otherwise({ text: "I see" });
    const { stdout, stderr } = await runHermes(["chat", "-q", "look", "--image", "wide.png"], { home });
    assert.match(stdout, /I see/);
    assert.equal(stderr.match(/^⚠ .*pictures over 4 MB or 8000 pixels are made smaller.*$/gm)?.length, 1, stderr);
    assert.deepEqual(server.requests.slice(0, 2).map(pictureSize), [
      { width: 9000, height: 30 },
      { width: 8000, height: 27 },
    ]);
  });

  test("the screen keeps such a line too, once", { skip: tmuxMissing() }, async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.otherwise({ text: "here it is" });
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("fake-model");
    server.script(refusal(503, "overloaded", { "retry-after": "0" }));
    await screen.say("hello");
    const text = await screen.waitFor("here it is");
    assert.equal(text.match(/↻ HTTP 503: overloaded — retrying/g)?.length, 1, text);
  });
});
