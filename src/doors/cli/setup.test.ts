import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { Command } from "commander";
import { type TempHome, tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { createRedactor } from "../../safety/redact.ts";
import type { ScreenQuestion } from "../choice-list.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { setUpModel } from "../setup-model.ts";
import { define, defineModel } from "./setup.ts";
import { define as defineStatus } from "./status.ts";

/** What is typed, or in a list the beginning of the row that is taken. `null` is Ctrl+C, which also raises its signal. */
type Answer = string | null;

const ESC = "\u001b";

const KEY = "key-of-mine-123";

async function openTemp(home: TempHome, env: Readonly<Record<string, string>> = {}) {
  return openHome({
    argv: [],
    env: { HERMES_HOME: home.dir, HOME: home.osHome, ...env },
    osHome: home.osHome,
    cwd: home.project,
    redactorFor: (settings) => createRedactor(settings),
  });
}

function scripted(answers: readonly Answer[]) {
  const left = [...answers];
  let shown = "";
  const write = (text: string) => {
    shown += text;
  };
  const next = async (prompt: string) => {
    write(`${prompt}\n`);
    const answer = left.shift();
    if (answer === undefined) throw new Error(`nothing left to answer at: ${prompt}\n${shown}`);
    return answer;
  };
  return {
    out: write,
    err: write,
    stdinIsTerminal: true,
    stdoutIsTerminal: true,
    columns: 80,
    question: next,
    secret: next,
    async choose<T>({ title, choices, onInterrupt }: ScreenQuestion<T>): Promise<readonly T[] | null> {
      const rows = choices.map(({ label, hint }) => [label, hint].flat().join("  "));
      const answer = await next(`${title}\n${rows.join("\n")}`);
      if (answer === null) onInterrupt?.();
      if (answer === null || answer === ESC) return null;
      const chosen = choices.find(({ label }) => label.startsWith(answer));
      assert.ok(chosen, `${answer} is not offered:\n${rows.join("\n")}`);
      return [chosen.value];
    },
    get shown() {
      return shown;
    },
    get left() {
      return left;
    },
  };
}

interface Run {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly define?: typeof define;
  readonly terminal?: boolean;
}

async function setUp(home: TempHome, answers: readonly Answer[], run: Run = {}) {
  const opened = await openTemp(home, run.env);
  const io = scripted(answers);
  const command = new Command("setup").exitOverride();
  const streams = run.terminal === false ? Object.assign(io, { stdinIsTerminal: false }) : io;
  (run.define ?? define)(command, { home: opened, io: streams } as unknown as CliContext); // what this sub-command uses of it
  const listeners = process.listenerCount("SIGINT");
  try {
    await command.parseAsync([...(run.args ?? ["model"])], { from: "user" });
    return { shown: io.shown, code: 0, left: io.left };
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    return { shown: `${io.shown}${error.message}\n`, code: error.exitCode, left: io.left };
  } finally {
    assert.equal(process.listenerCount("SIGINT"), listeners);
    await opened.close();
  }
}

async function makeHome(t: TestContext, files?: Readonly<Record<string, string>>): Promise<TempHome> {
  const home = await tempHome(files);
  t.after(() => home[Symbol.asyncDispose]());
  return home;
}

/** Lists its models to whoever has the key; without a key of its own, to anybody. */
async function modelList(t: TestContext, options: { readonly key?: string; readonly status?: number } = {}) {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ url, headers }, response) => {
    asked.push(headers.authorization);
    const known = url?.startsWith("/v1/") ?? false;
    const refused = options.key !== undefined && headers.authorization !== `Bearer ${options.key}`;
    response.writeHead(known ? (refused ? 401 : (options.status ?? 200)) : 404, { "content-type": "application/json" });
    response.end(JSON.stringify({ data: [{ id: "small" }, { id: "large", context_length: 200_000 }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.closeAllConnections());
  t.after(() => void server.close());
  const port = (server.address() as AddressInfo).port;
  return {
    origin: `http://127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/v1`,
    port,
    /** The keys that came, in order. */
    asked,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

const CUSTOM = "Another OpenAI-compatible server";
const configOf = (home: TempHome) => readFile(home.at("config.yaml"), "utf8");
const envOf = (home: TempHome) => readFile(home.at(".env"), "utf8").catch(() => "");

describe("hermes setup model", () => {
  test("connects a server of one's own; its key goes to .env and config.yaml names the variable", async (t) => {
    const { origin, port } = await modelList(t, { key: KEY });
    const home = await makeHome(t);
    // The address is given without /v1, as people do.
    const { shown, code } = await setUp(home, [CUSTOM, origin, KEY, "large"]);
    assert.equal(code, 0, shown);
    assert.match(
      shown,
      /✓ The server accepts the key\.\n[\s\S]*✓ large at 127[\s\S]*Ready: large[\s\S]*\n {2}hermes +start a conversation/,
    );
    // One name from the first question to the last line.
    assert.equal([...shown.matchAll(new RegExp(`large at 127\\.0\\.0\\.1:${port}`, "g"))].length, 2, shown);
    const name = `127-0-0-1-${port}`;
    const variable = `CUSTOM_127_0_0_1_${port}_API_KEY`;
    assert.equal(
      await configOf(home),
      `_config_version: 24\nproviders:\n  "${name}":\n    api: ${origin}/v1\n    key_env: ${variable}\nmodel:\n  provider: "${name}"\n  default: large\n`,
    );
    assert.equal(await envOf(home), `${variable}=${KEY}\n`);
  });

  test("a key that the server refuses is asked for again, and nothing is kept of it", async (t) => {
    const { url } = await modelList(t, { key: KEY });
    const before = `model:\n  provider: custom\n  base_url: ${url}\n  default: works\n`;
    const home = await makeHome(t, { "config.yaml": before });
    const skipped = await setUp(home, [CUSTOM, url, "wrong-key", "Skip", null]);
    assert.match(skipped.shown, /The server did not accept this key \(HTTP 401\)\.\nEnter the key again/);
    assert.match(skipped.shown, /Setup cancelled; nothing was saved\.\n$/);
    assert.equal(skipped.code, 1);
    assert.equal(await configOf(home), before);
    assert.equal(await envOf(home), "");
    const again = await setUp(home, [CUSTOM, url, "wrong-key", "Enter the key again", KEY, "small"]);
    assert.equal(again.code, 0, again.shown);
    assert.doesNotMatch(await envOf(home), /wrong/);
    assert.match(
      again.shown,
      /The server requires a key\.\nAPI key for \S+ \(not shown; Enter = choose another provider\)/,
    );
  });

  test("a built-in provider: its key is checked where it would be used, and may be kept anyway", async (t) => {
    const { url } = await modelList(t, { key: KEY });
    const home = await makeHome(t, {
      ".env": `DEEPSEEK_BASE_URL=${url}\n`,
      "config.yaml": "model:\n  provider: deepseek\n  api_key: old-key-12345\n",
    });
    const kept = await setUp(home, ["DeepSeek", "Enter another key", "wrong-key-1", "Keep it anyway", "deepseek"]);
    assert.equal(kept.code, 0, kept.shown);
    assert.match(await envOf(home), /^DEEPSEEK_API_KEY=wrong-key-1$/m);
    // A key in config.yaml would win over the new one.
    assert.doesNotMatch(await configOf(home), /api_key/);
    const found = await setUp(home, [
      "DeepSeek",
      "Use DEEPSEEK_API_KEY from ~/.hermes/.env",
      "Enter the key again",
      KEY,
      "small",
    ]);
    assert.equal(found.code, 0, found.shown);
    assert.match(found.shown, /DeepSeek {2}key found: DEEPSEEK_API_KEY/);
    assert.match(await envOf(home), new RegExp(`^DEEPSEEK_API_KEY=${KEY}$`, "m"));
    assert.match(await configOf(home), /provider: deepseek\n {2}default: small\n/);
  });

  test("a server that is not running is told in a sentence, with how to start it", async (t) => {
    const { origin, url, close } = await modelList(t);
    await close();
    const home = await makeHome(t, { "config.yaml": `model:\n  provider: ollama\n  base_url: ${url}\n  default: a\n` });
    const { shown, code } = await setUp(home, ["A server on this machine", "Ollama", "Keep it anyway", "qwen3:8b"]);
    assert.equal(code, 0, shown);
    assert.ok(shown.includes(`Nothing is running at ${origin}.\nStart it with: ollama serve\n`), shown);
    // The same provider keeps its address.
    assert.equal(await configOf(home), `model:\n  provider: ollama\n  base_url: ${url}\n  default: "qwen3:8b"\n`);
  });

  test("a server of this machine that runs is offered first", async (t) => {
    const { url } = await modelList(t);
    // What a template left behind is no key, and puts its provider nowhere.
    const home = await makeHome(t, { ".env": "DEEPSEEK_API_KEY=your-api-key-here\n" });
    const opened = await openTemp(home);
    t.after(() => opened.close());
    const io = scripted([null]);
    await assert.rejects(
      setUpModel({ home: opened, fetch, servers: { vllm: url }, surface: surfaceFor(io) }),
      /SetupCancelled/,
    );
    assert.match(io.shown, /^Which provider\?\nvLLM {2}running here, 2 models\nOpenRouter/);
  });

  test("a server of one's own is asked with its own key, under a name that no provider has", async (t) => {
    const { origin, asked } = await modelList(t, { key: KEY });
    const old = "old-key-of-another-server";
    const home = await makeHome(t, {
      "config.yaml": `model:\n  provider: custom\n  base_url: http://127.0.0.1:9/v1\n  api_key: ${old}\n  default: a\n`,
      ".env": "DEEPSEEK_API_KEY=key-of-deepseek-1\n",
    });
    const opened = await openTemp(home);
    t.after(() => opened.close());
    const away = "https://models.deepseek.example";
    const nearby: typeof fetch = (input, init) => fetch(String(input).replace(away, origin), init);
    const io = scripted([CUSTOM, `${away}/v1`, KEY, "small"]);
    await setUpModel({ home: opened, fetch: nearby, servers: {}, surface: surfaceFor(io) });
    assert.match(await envOf(home), /^DEEPSEEK_API_KEY=key-of-deepseek-1$/m);
    assert.match(await envOf(home), new RegExp(`^CUSTOM_\\w+_API_KEY=${KEY}$`, "m"));
    assert.doesNotMatch(asked.join(), /old-key|key-of-deepseek/);
  });

  test("another provider does not inherit address, key and window of the one before; a copy of the file stays", async (t) => {
    const { url } = await modelList(t);
    const home = await makeHome(t);
    const before = `# mine\nmodel:\n  provider: deepseek # here\n  base_url: https://example.invalid/v1\n  api_key: ${KEY}\n  context_length: 9\n  aliases: {s: small}\n`;
    await home.write("config.yaml", before);
    const { shown, code } = await setUp(home, [CUSTOM, url, "small"]);
    assert.equal(code, 0, shown);
    assert.equal(
      await configOf(home),
      `# mine\nmodel:\n  provider: custom # here\n  base_url: ${url}\n  aliases: {s: small}\n  default: small\n`,
    );
    const [copy = ""] = (await readdir(home.dir)).filter((name) => name.startsWith("config.yaml.bak."));
    assert.equal(await readFile(home.at(copy), "utf8"), before);
  });

  test("whoever leaves in the middle has saved nothing", async (t) => {
    const { url } = await modelList(t, { key: KEY });
    const home = await makeHome(t);
    for (const answers of [[null], [CUSTOM, null], [CUSTOM, url, null], [CUSTOM, url, KEY, null]]) {
      const { shown, code } = await setUp(home, answers);
      assert.equal(code, 1);
      assert.match(shown, /Setup cancelled; nothing was saved\.\n$/);
    }
    assert.equal(await envOf(home), "");
    assert.ok(!(await readdir(home.dir)).includes("config.yaml"));
  });

  test("what is no address and no key is asked for again", async (t) => {
    const { url } = await modelList(t, { key: KEY });
    const home = await makeHome(t);
    const { shown, code } = await setUp(home, [CUSTOM, "ftp://x", url, "ключ", KEY, "small"]);
    assert.equal(code, 0, shown);
    assert.match(shown, /"ftp:\/\/x" is not a URL/);
    assert.match(shown, /contains characters that keys never contain/);
  });

  test("a broken config.yaml is told before anything is asked", async (t) => {
    const home = await makeHome(t, { "config.yaml": "a: [\n" });
    const { shown, code } = await setUp(home, []);
    assert.match(shown, /config\.yaml is broken at line 2.*hermes config edit/s);
    assert.equal(code, 1);
  });
});

const surfaceFor = (io: ReturnType<typeof scripted>) => ({
  signal: new AbortController().signal,
  say: (text: string) => io.out(`${text}\n`),
  warn: (text: string) => io.err(`${text}\n`),
  async pick<T>(question: Pick<ScreenQuestion<T>, "title" | "choices">): Promise<T> {
    const taken = await io.choose({ ...question, hint: "" });
    if (taken === null) throw Object.assign(new Error("SetupCancelled"), { name: "SetupCancelled" });
    return taken[0] as T; // one was chosen
  },
  ask: async (prompt: string) => (await io.question(prompt)) ?? "",
});

describe("hermes setup", () => {
  test("a home with a model has a menu of sections; each is saved when it is done", async (t) => {
    const { url } = await modelList(t);
    const home = await makeHome(t, {
      "config.yaml": `model:\n  provider: custom\n  base_url: ${url}\n  default: small\n`,
    });
    const run = { args: [] };
    const agent = ["Agent", "0", "40", "off", "60%"];
    const { shown, code } = await setUp(home, [...agent, "Terminal", "On this machine", null], run);
    assert.equal(code, 1);
    assert.match(shown, /0 is not valid here/);
    assert.match(shown, /✓ Up to 40 steps a turn, tool calls: off, compression at 60 %\./);
    assert.match(shown, /Setup cancelled; saved: agent, terminal\.\n$/);
    const text = await configOf(home);
    assert.match(text, /max_turns: 40/);
    assert.match(text, /tool_progress: "off"/);
    assert.match(text, /threshold: 0\.6/);
    assert.match(text, /sandbox: "off"/);
  });

  test("--quick asks only for what is missing", async (t) => {
    const { url } = await modelList(t);
    const home = await makeHome(t);
    const first = await setUp(home, [CUSTOM, url, "small"], { args: ["--quick"] });
    assert.equal(first.code, 0, first.shown);
    const second = await setUp(home, [], { args: ["--quick"] });
    assert.match(second.shown, /^Nothing is missing\.\n\nReady: small at 127\.0\.0\.1:\d+, /);
  });

  test("--reset asks, keeps the old file and the keys, and leaves a file as in a new home", async (t) => {
    const before = "agent:\n  max_turns: 3\nodd.key: 1\n";
    const home = await makeHome(t, { "config.yaml": before, ".env": "OPENROUTER_API_KEY=sk-or-1234\n" });
    const no = await setUp(home, ["n"], { args: ["--reset", "--non-interactive"] });
    assert.deepEqual([no.code, await configOf(home)], [1, before]);
    const yes = await setUp(home, ["y"], { args: ["--reset", "--non-interactive"] });
    assert.equal(yes.code, 0, yes.shown);
    assert.equal(await configOf(home), "_config_version: 24\nterminal:\n  sandbox: auto\n");
    assert.equal(await envOf(home), "OPENROUTER_API_KEY=sk-or-1234\n");
    const [copy = ""] = (await readdir(home.dir)).filter((name) => name.startsWith("config.yaml.bak."));
    assert.equal(await readFile(home.at(copy), "utf8"), before);
  });

  test("Ctrl+C at the question of --reset changes nothing; after it, what was restored is told", async (t) => {
    const before = "agent:\n  max_turns: 3\n";
    const home = await makeHome(t, { "config.yaml": before });
    const no = await setUp(home, [null], { args: ["--reset"] });
    assert.match(no.shown, /\? Keys,\nconversations and memory are kept\. \[y\/N\] \nNothing was changed\.\n$/);
    assert.deepEqual([no.code, await configOf(home)], [1, before]);
    const left = await setUp(home, ["y", null], { args: ["--reset"] });
    assert.match(left.shown, /Setup cancelled; saved: default settings\.\n$/);
    assert.equal(left.code, 1);
  });

  test("Esc skips a step and ends the menu; Ctrl+C leaves everything", async (t) => {
    const { url } = await modelList(t);
    const fresh = await makeHome(t);
    const whole = ["Everything", CUSTOM, url, "small", ESC, ESC, ESC, ESC, "40", "off", "0.6"];
    const all = await setUp(fresh, whole, { args: [] });
    assert.equal(all.code, 0, all.shown);
    assert.match(
      all.shown,
      /Skipped: tts\.\n[\s\S]*Skipped: terminal\.\n[\s\S]*Skipped: gateway\.\n[\s\S]*Skipped: tools\.\n/,
    );
    assert.match(await configOf(fresh), /default: small[\s\S]*max_turns: 40/);
    const menu = await setUp(fresh, ["Terminal", ESC, "Tools", ESC, ESC], { args: [] });
    assert.equal(menu.code, 0, menu.shown);
    const left = await setUp(fresh, ["Tools", null], { args: [] });
    assert.equal(left.code, 1);
    assert.match(left.shown, /Setup cancelled; nothing was saved\.\n$/);
    const alone = await setUp(fresh, [null], { args: ["tools"] });
    assert.deepEqual([alone.code, /Setup cancelled; nothing was saved\.\n$/.test(alone.shown)], [1, true]);
  });

  test("speech: a service with its key, or a server whose key config.yaml only names", async (t) => {
    const home = await makeHome(t);
    const service = await setUp(home, ["ElevenLabs", "", "el-key-1234"], { args: ["tts"] });
    assert.equal(service.code, 0, service.shown);
    assert.match(await configOf(home), /tts:\n {2}provider: elevenlabs\n/);
    assert.match(await envOf(home), /^ELEVENLABS_API_KEY=el-key-1234$/m);
    const own = await setUp(home, ["A server", "ftp://x", "http://127.0.0.1:8880/v1", KEY], { args: ["tts"] });
    assert.equal(own.code, 0, own.shown);
    const text = await configOf(home);
    assert.match(text, /base_url: http:\/\/127\.0\.0\.1:8880\/v1\n/);
    assert.match(text, /api_key: "\$\{TTS_API_KEY\}"\n/);
    assert.doesNotMatch(text, /elevenlabs|key-of-mine/);
    assert.match(await envOf(home), new RegExp(`^TTS_API_KEY=${KEY}$`, "m"));
    await setUp(home, ["None"], { args: ["tts"] });
    assert.doesNotMatch(await configOf(home), /base_url|api_key/);
  });

  test("without a terminal the commands are printed; a section that was asked for and cannot work exits 1", async (t) => {
    const home = await makeHome(t);
    const plain = await setUp(home, [], { args: [], terminal: false });
    assert.deepEqual([plain.code, /hermes config set OPENROUTER_API_KEY/.test(plain.shown)], [0, true]);
    assert.equal((await setUp(home, [], { args: ["model"], terminal: false })).code, 1);
    assert.equal((await setUp(home, [], { args: ["nosuch"] })).code, 2);
    const model = await setUp(home, [], { args: [], terminal: false, define: defineModel });
    assert.match(model.shown, /hermes model needs a terminal/);
  });
});

test("a terminal that cannot move its cursor gets numbered lists, which a part of a name narrows", async (t) => {
  const { url } = await modelList(t);
  const home = await makeHome(t);
  const answers = ["99", "kimi", "openai", "2", url, "larg"];
  const { shown, code } = await setUp(home, answers, { env: { TERM: "dumb" } });
  assert.equal(code, 0, shown);
  assert.match(shown, / 1\. OpenRouter\n[\s\S]* more: type part of the name\n/);
  assert.match(shown, /There is no 99\.[\s\S]* 1\. Kimi \(Moonshot\)\n {2}2\. Kimi \(Moonshot, China\)\n/);
  assert.match(await configOf(home), /default: large/);
});

test("hermes status names where the key of the model comes from", async (t) => {
  const { url } = await modelList(t, { key: KEY });
  const home = await makeHome(t);
  await setUp(home, [CUSTOM, url, KEY, "small"]);
  const opened = await openTemp(home);
  const io = scripted([]);
  const command = new Command("status").exitOverride();
  const store = async () => ({ stats: async () => ({ sessions: 0, messages: 0 }) });
  defineStatus(command, { home: opened, io, store } as unknown as CliContext); // what this sub-command uses of it
  await command.parseAsync([], { from: "user" });
  assert.match(io.shown, /^Key +CUSTOM_127_0_0_1_\d+_API_KEY from ~\/\.hermes\/\.env, key-\.\.\.-123$/m);
  await opened.close();
});
