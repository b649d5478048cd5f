// The program as it is installed: bundled, split, its tools known by outline.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { promisify } from "node:util";
import { PNG } from "pngjs";
import { missingChromium, startSite } from "../support/engines/chromium.ts";
import { gatewayHome, until } from "../support/gateway-rig.ts";
import { tinyServer } from "../support/mcp/hub-rig.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { TelegramServer } from "../support/platforms/telegram-server.ts";
import {
  builtProgram,
  type RunOptions,
  repository,
  runHermes,
  sourceLauncher,
  startHermes,
} from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";

async function plant(folder: string, name: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, name), text);
}

describe("the built program", () => {
  let server: ModelServer;
  let place = "";
  const built = (): Pick<RunOptions, "launcher"> => ({ launcher: join(place, "bin", "hermes.mjs") });
  before(async () => {
    server = await ModelServer.start();
    place = await realpath(await mkdtemp(join(tmpdir(), "hermes-built-")));
    for (const name of ["bin", "package.json", "skills"]) {
      await cp(join(repository, name), join(place, name), { recursive: true });
    }
    await symlink(join(repository, "node_modules"), join(place, "node_modules"));
    // Its own copy: one test puts plugins beside it.
    const dist = join(place, "dist");
    if (builtProgram) await cp(join(builtProgram, "dist"), dist, { recursive: true });
    else await promisify(execFile)(process.execPath, [join(repository, "scripts", "build.mjs"), dist]);
  });
  beforeEach(() => void server.clear());
  after(async () => {
    await server.close();
    await rm(place, { recursive: true, force: true });
  });

  test("sends the same first request as the source", async () => {
    const bodies: unknown[] = [];
    for (const how of [{ launcher: sourceLauncher }, built()]) {
      await using home = await tempHome({ "config.yaml": modelConfig(server) });
      server.script({ text: "hi" });
      const { code, stderr } = await runHermes(["-z", "hello"], { home, ...how });
      assert.equal(code, 0, stderr);
      bodies.push(JSON.parse(server.last.raw.replaceAll(home.osHome, "/home/user")));
    }
    assert.deepEqual(bodies[1], bodies[0]);
  });

  test("knows the letters of every language, though its scripts are ASCII", async () => {
    for (const name of await readdir(join(place, "dist"))) {
      const bytes = name.endsWith(".cjs") ? await readFile(join(place, "dist", name)) : Buffer.alloc(0);
      assert.equal(
        bytes.findIndex((byte) => byte > 127),
        -1,
        name,
      );
    }
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script({ toolCalls: [{ name: "terminal", arguments: { command: "cat note" } }] }, { text: "ok" });
    await writeFile(join(home.project, "note"), "数据库密码：geheim-und-lang-7731\n");
    await runHermes(["-z", "go"], { home, ...built() });
    assert.ok(!server.last.raw.includes("geheim-und-lang"), "a password is masked, by whatever name");
  });

  test("loads a tool with its first call", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await writeFile(join(home.project, "note.txt"), "the secret word is heron\n");
    server.script(
      { toolCalls: [{ name: "read_file", arguments: { path: "note.txt" } }] },
      { toolCalls: [{ name: "terminal", arguments: { command: "cat note.txt | tr a-z A-Z" } }] },
      { toolCalls: [{ name: "todo", arguments: { todos: "no list" } }] },
      { toolCalls: [{ name: "write_file", arguments: { path: "birds.toml", content: "[heron\n" } }] },
      ({ raw }) => ({
        text: [/heron/, /HERON/, /Invalid arguments/, /invalid TOML/].every((wanted) => wanted.test(raw)) ? "all" : raw,
      }),
    );
    const { stdout, stderr } = await runHermes(["-z", "what is the word?"], { home, ...built() });
    assert.equal(stdout, "all\n", stderr);
  });

  test("finds a tool that is not in its list and calls it, packages and all", async () => {
    const site = await startSite({
      "/page": `<title>Harbour</title><article><h1>News</h1><p>The Heron leaves at noon. ${"Tides and ropes. ".repeat(30)}</p></article>`,
      "/large": `<title>Ships</title>${"<p>The <b>Egret</b> lies <a href='/pier'>here</a>.</p>".repeat(800)}`,
    });
    try {
      await using home = await tempHome({
        "config.yaml": `${modelConfig(server)}security: { allow_private_urls: true }\nweb: { extract_backend: local }\n`,
      });
      const call = (name: string, args: object) => ({
        toolCalls: [{ name: "tool_call", arguments: { name, arguments: args } as never }],
      });
      const browser = (await missingChromium()) === null;
      server.script(
        { toolCalls: [{ name: "tool_search", arguments: { query: "read a web page" } }] },
        call("web_extract", { urls: [`${site.url}/page`, `${site.url}/large`] }),
        ...(browser ? [call("browser_navigate", { url: `${site.url}/page` })] : []),
        { text: "done" },
      );
      const { stdout, stderr } = await runHermes(["-z", "go"], { home, ...built() });
      assert.equal(stdout, "done\n", stderr);
      const [found, page, opened] = server.last.body.messages
        .filter(({ role }: { role: string }) => role === "tool")
        .map(({ content }: { content: string }) => content);
      assert.match(found, /"name":"browser_navigate"/);
      assert.match(page, /The Heron leaves at noon/);
      assert.match(page, /The \*\*Egret\*\* lies \[here\]\(http/, "a large page is converted on a thread of its own");
      if (browser) assert.match(opened, /"success":true.*Harbour/s);
      else process.stderr.write("\n!!! SKIPPED: the built program's browser. No Chromium is installed.\n\n");
    } finally {
      await site.close();
    }
  });

  test("makes a picture smaller that the server finds too large", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await writeFile(join(home.project, "wide.png"), PNG.sync.write(new PNG({ width: 9000, height: 30 })));
    server.script({ fault: "status", status: 400, body: { error: { message: "image exceeds the maximum" } } });
    server.script({ text: "I see" });
    const { stdout, stderr } = await runHermes(["chat", "-q", "look", "--image", "wide.png"], { home, ...built() });
    assert.match(stdout, /I see/, stderr);
    assert.ok(server.last.raw.includes("data:image/jpeg;base64,"), stderr);
  });

  test("runs MCP servers, hooks, plugins, and a memory and an engine that came with it", async () => {
    const shipped = (at: string, name: string, text: string) => plant(join(place, "plugins", at), name, text);
    await shipped("t_tool", "plugin.yaml", "name: t_tool\nversion: 1.0.0\nkind: backend\n");
    await shipped(
      "t_tool",
      "index.ts",
      `export default (ctx: any) => {
        ctx.registerTool({ name: "t_shipped", description: "x", handler: () => "from the package" });
        ctx.registerHook("pre_tool_call", () => { Promise.reject(new Error("let go")); });
      };`,
    );
    await shipped(
      "memory/t_mem",
      "index.mjs",
      `export default () => ({ name: "t_mem", isAvailable: () => true, initialize() {}, prefetch: () => "the pilot is Ada" });`,
    );
    await shipped(
      "context_engine/t_eng",
      "index.mjs",
      `import { appendFileSync } from "node:fs";
      export default (model) => ({ name: "t_eng", lastPromptTokens: 0, lastCompletionTokens: 0, lastTotalTokens: 0, thresholdTokens: 1e9,
        contextLength: model.contextLength, compressionCount: 0, protectFirstN: 1, protectLastN: 1, shouldCompress: () => false,
        compress: async (messages) => messages, updateFromResponse: () => appendFileSync(process.env.HERMES_HOME + "/counted", "1") });`,
    );
    await using home = await tempHome();
    await plant(home.osHome, "hook.sh", `#!/bin/sh\necho '{"context":"it rains"}'\n`);
    await chmod(join(home.osHome, "hook.sh"), 0o755);
    const more = { tiny: tinyServer() };
    await home.write(
      "config.yaml",
      `${modelConfig(server)}memory: { provider: t_mem }\ncontext: { engine: t_eng }\nmcp_servers: ${JSON.stringify(more)}
hooks: { pre_llm_call: [{ command: ~/hook.sh }] }\n`,
    );
    server.script(
      { toolCalls: [{ name: "t_shipped", arguments: {} }] },
      { toolCalls: [{ name: "mcp_tiny_echo", arguments: { text: "hi" } }] },
      { text: "done" },
    );
    const run = await runHermes(["-z", "go"], { home, ...built(), env: { HERMES_ACCEPT_HOOKS: "1" } });
    assert.equal(run.stdout, "done\n", run.stderr);
    const { messages } = server.last.body as { messages: { role: string; content: string }[] };
    const asked = messages.find(({ role }) => role === "user")?.content ?? "";
    assert.match(asked, /the pilot is Ada[\s\S]*it rains/);
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    assert.equal(results[0], "from the package");
    assert.match(results[1] ?? "", /echo hi/);
    assert.equal(await readFile(home.at("counted"), "utf8"), "111");
    assert.match(await readFile(home.at("logs", "agent.log"), "utf8"), /plugin "t_tool" failed and is ignored/);
    const listed = await runHermes(["plugins", "list"], { home, ...built() });
    assert.match(listed.stdout, /✓ t_tool 1\.0\.0 \(bundled\): on/);
    assert.match(listed.stdout, /✓ memory\/t_mem \(bundled\): on; chosen by memory\.provider/);
    await rm(join(place, "plugins"), { recursive: true });
  });

  test("opens its other doors", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const { stdout } = await runHermes(["version"], { home, ...built() });
    assert.match(stdout, /^Runs: the build in dist\/$/m);
    const doors = [["config", "path"], ["sessions", "list"], ["tools", "list"], ["skills", "list"], ["doctor"]];
    for (const args of [["--version"], ...oneOf(doors, "a door of the built program")]) {
      const { code, stderr, stdout } = await runHermes(args, { home, ...built() });
      assert.equal(code, 0, `${args.join(" ")}: ${stderr}${stdout}`);
    }
  });

  test("opens for a gateway that waits nothing of what only other commands need, and keeps what it ran when it is killed", async () => {
    await using telegram = await TelegramServer.start();
    const [token, url] = [telegram.token, telegram.url];
    const env = { TELEGRAM_BOT_TOKEN: token, TELEGRAM_BASE_URL: url, TELEGRAM_ALLOWED_USERS: "1" };
    await using home = await gatewayHome(server, { env });
    const places = { NODE_COMPILE_CACHE: home.at("compiled"), HERMES_GATEWAY_LOCK_DIR: home.osHome };
    const gateway = startHermes(["gateway", "run"], { home, ...built(), env: places });
    let printed = "";
    gateway.stdout?.on("data", (text: string) => {
      printed += text;
    });
    await until("it is ready", () => printed.includes("[Gateway] ready: telegram") || gateway.exitCode !== null);
    gateway.kill("SIGKILL");
    assert.equal((await gateway.result).signal, "SIGKILL", printed);
    // What it ran is what it has kept compiled; the names stand in front.
    const [kept = ""] = await readdir(home.at("compiled", "hermes"));
    const head = (await readFile(home.at("compiled", "hermes", kept), "latin1")).slice(0, 4096);
    assert.deepEqual(head.match(/(?:cold|gateway)-code/g), ["gateway-code"]);
  });
});
