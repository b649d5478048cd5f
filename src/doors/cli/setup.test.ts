import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { after, before, describe, type TestContext, test } from "node:test";
import { Command } from "commander";
import { ModelServer } from "../../../test/support/model-server/server.ts";
import { type TempHome, tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { createRedactor } from "../../safety/redact.ts";
import { type CliContext, ExitError } from "./context.ts";
import { define } from "./setup.ts";

/** Types the answers in order; a function is handed all that was shown so far. `null` is Ctrl+C. */
type Typed = string | null | ((shown: string) => string);

async function setUp(home: TempHome, ...answers: Typed[]) {
  let shown = "";
  const write = (text: string) => {
    shown += text;
  };
  const next = async (prompt: string) => {
    write(prompt);
    const answer = answers.shift();
    if (answer === undefined) throw new Error(`nothing left to type at: ${prompt}`);
    return typeof answer === "function" ? answer(shown) : answer;
  };
  const opened = await openHome({
    argv: [],
    env: { HERMES_HOME: home.dir, HOME: home.osHome },
    osHome: home.osHome,
    cwd: home.project,
    redactorFor: (settings) => createRedactor(settings),
  });
  const io = { out: write, err: write, stdinIsTerminal: true, question: next, secret: next };
  const command = new Command("setup").exitOverride();
  define(command, { home: opened, io } as unknown as CliContext); // what this sub-command uses of it
  try {
    await command.parseAsync([], { from: "user" });
    return { shown, code: 0 };
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    return { shown: `${shown}${error.message}\n`, code: error.exitCode };
  } finally {
    await opened.close();
  }
}

async function makeHome(t: TestContext, files?: Readonly<Record<string, string>>): Promise<TempHome> {
  const home = await tempHome(files);
  t.after(() => home[Symbol.asyncDispose]());
  return home;
}

/** The number in front of a choice. */
const numberOf = (label: string) => (shown: string) => {
  const line = shown.split("\n").findLast((row) => row.includes(label));
  return line?.match(/\d+/)?.[0] ?? assert.fail(`${label} is not offered`);
};
const CUSTOM = numberOf("another OpenAI-compatible server");
const OLLAMA = numberOf("ollama (on this machine)");
const configOf = (home: TempHome) => readFile(home.at("config.yaml"), "utf8");

describe("hermes setup", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
    server.models = ["small", "large"];
  });
  after(() => server.close());

  test("connects a server of one's own, with the models it has", async (t) => {
    const home = await makeHome(t);
    const { shown, code } = await setUp(home, CUSTOM, `${server.url}/`, "key-of-mine-123", "9", numberOf("large"));
    assert.equal(code, 0, shown);
    assert.match(shown, /There is no 9\./);
    assert.match(shown, /✓ large at /);
    assert.equal(
      await configOf(home),
      `_config_version: 24\nmodel:\n  provider: custom\n  base_url: ${server.url}\n  api_key: key-of-mine-123\n  default: large\n`,
    );
  });

  test("another provider does not inherit address, key and window of the one before", async (t) => {
    const home = await makeHome(t);
    const before = `# mine\nmodel:\n  provider: custom # here\n  base_url: ${server.url}\n  api_key: key-of-mine-123\n  context_length: 9\n  aliases: {s: small}\n`;
    await home.write("config.yaml", before);
    const { shown, code } = await setUp(home, OLLAMA, "qwen3:8b");
    assert.equal(code, 0, shown);
    assert.equal(
      await configOf(home),
      '# mine\nmodel:\n  provider: ollama # here\n  aliases: {s: small}\n  default: "qwen3:8b"\n',
    );
    const [copy = ""] = (await readdir(home.dir)).filter((name) => name.startsWith("config.yaml.bak."));
    assert.equal(await readFile(home.at(copy), "utf8"), before);
  });

  test("a key is not sent to a new address", async (t) => {
    const home = await makeHome(t);
    await home.write(
      "config.yaml",
      "model:\n  provider: custom\n  base_url: http://127.0.0.1:9/v1\n  api_key: key-of-mine-123\n",
    );
    await setUp(home, CUSTOM, server.url, "", numberOf("small"));
    assert.doesNotMatch(await configOf(home), /key-of-mine/);
  });

  test("the same provider keeps its address", async (t) => {
    const home = await makeHome(t);
    await home.write("config.yaml", "model:\n  provider: ollama\n  base_url: http://127.0.0.1:9/v1\n  default: a\n");
    await setUp(home, OLLAMA, "b");
    assert.equal(await configOf(home), "model:\n  provider: ollama\n  base_url: http://127.0.0.1:9/v1\n  default: b\n");
  });

  test("whoever leaves in the middle has saved nothing", async (t) => {
    const home = await makeHome(t);
    for (const answers of [[null], [CUSTOM, null], [CUSTOM, server.url, null], [CUSTOM, server.url, "k", null]]) {
      const { shown, code } = await setUp(home, ...answers);
      assert.equal(code, 1);
      assert.match(shown, /cancelled; nothing was saved\.\n$/);
    }
    assert.ok(!(await readdir(home.dir)).includes("config.yaml"));
  });

  test("a broken config.yaml is told before anything is asked", async (t) => {
    const home = await makeHome(t, { "config.yaml": "a: [\n" });
    const { shown, code } = await setUp(home);
    assert.match(shown, /config\.yaml is broken at line 2.*hermes config edit/s);
    assert.equal(code, 1);
  });
});
