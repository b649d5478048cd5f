// A day's work in a home as it is made, on a real terminal: clone, install, test, commit, serve, look, write elsewhere. Only what leaves the
// sandbox or opens a page of this machine is asked about. docs/guide/safety.md tells the same walk.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { NEW_CONFIG } from "../../src/home/config/schema.ts";
import { missingBubblewrap, plant } from "../support/engines/bubblewrap.ts";
import { missingChromium } from "../support/engines/chromium.ts";
import { withEngine } from "../support/engines/require.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const run = promisify(execFile);

const WHEEL = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("hello_w.py", "text = 'from the wheel'\\n")
    z.writestr("hello_w-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: hello-w\\nVersion: 1.0\\n")
    z.writestr("hello_w-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("hello_w-1.0.dist-info/RECORD", "")
`;

/** A repository, a registry for npm and an index for pip, as folders behind one server on loopback. */
async function startWorld(t: TestContext, root: string) {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://world").pathname;
    const file = path.endsWith("/") ? `${path}index.html` : path;
    const body = await readFile(join(root, decodeURIComponent(file))).catch(() => null); // asked for and not there
    const type = file.endsWith(".html") ? "text/html" : file.startsWith("/npm/tiny") ? "application/json" : "";
    response.writeHead(body === null ? 404 : 200, { "content-type": type || "application/octet-stream" });
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tarball = `${url}/npm/files/tiny-greeting-1.0.0.tgz`;
  const version = { name: "tiny-greeting", version: "1.0.0", main: "i.js", dist: { tarball } };
  const packument = { name: "tiny-greeting", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } };
  await plant(root, {
    "package/package.json": '{"name":"tiny-greeting","version":"1.0.0","main":"i.js"}',
    "package/i.js": "module.exports = (name) => 'hello ' + name;\n",
    "npm/tiny-greeting": JSON.stringify(packument),
    "py/simple/hello-w/index.html": '<a href="hello_w-1.0-py3-none-any.whl">hello_w-1.0-py3-none-any.whl</a>',
    "wheel.py": WHEEL,
    "app/package.json": JSON.stringify({
      ...{ name: "app", version: "1.0.0", scripts: { test: "node --test", dev: "node server.js" } },
      dependencies: { "tiny-greeting": "^1.0.0" },
    }),
    "app/.npmrc": `registry=${url}/npm/\n`,
    "app/.gitignore": "node_modules\n.venv\n",
    "app/requirements.txt": `--index-url ${url}/py/simple\nhello-w\n`,
    "app/use.py": "import hello_w\nprint(hello_w.text)\n",
    "app/a.test.js":
      "require('node:test').test('greets', () => require('node:assert').equal(require('tiny-greeting')('a'), 'hello a'));\n",
    "app/server.js": `require("node:http").createServer((_, response) => {
  response.setHeader("content-type", "text/html");
  response.end("<title>App</title><h1>" + require("tiny-greeting")("world") + "</h1>");
}).listen(process.env.PORT, "127.0.0.1", () => console.log("ready"));\n`,
  });
  await mkdir(join(root, "npm/files"));
  await run("tar", ["czf", "npm/files/tiny-greeting-1.0.0.tgz", "package"], { cwd: root });
  await run("python3", ["wheel.py", "py/simple/hello-w/hello_w-1.0-py3-none-any.whl"], { cwd: root });
  const git = "git -c user.name=Other -c user.email=other@example.com";
  await run(
    "sh",
    [
      "-c",
      `cd app && git init -qb main && git add -A && ${git} commit -qm First && cd .. && git clone -q --bare app app.git && git -C app.git update-server-info`,
    ],
    { cwd: root },
  );
  return url;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

const command = (line: string, more = {}): Call => ({ name: "terminal", arguments: { command: line, ...more } });

const engines = async () => (await missingBubblewrap()) ?? (await missingChromium());
await withEngine("bubblewrap and Chromium", engines, () => {
  test("a day's work in the sandbox asks twice: before a page of this machine and before a file elsewhere", {
    skip: tmuxMissing(),
  }, async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    const home = await tempHome({ "config.yaml": `${NEW_CONFIG}${modelConfig(server)}` });
    t.after(() => home[Symbol.asyncDispose]());
    await writeFile(join(home.osHome, ".gitconfig"), "[user]\n\tname = Me\n\temail = me@example.com\n");
    const world = await startWorld(t, join(home.osHome, "world"));
    const [port, app] = [await freePort(), join(home.project, "app")];
    const notes = join(home.osHome, "notes.md");
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("❯");

    let turn = 0;
    /** One turn of the conversation that makes these calls; `meanwhile` answers what is asked. Resolves to the results. */
    const work = async (calls: readonly Call[], meanwhile = async () => undefined as unknown) => {
      const end = `Turn ${++turn} ended.`;
      server.clear();
      server.script(...calls.map((call) => ({ toolCalls: [call] })), { text: end });
      await screen.say("go on");
      await meanwhile();
      await screen.waitFor(end);
      // The title is asked for behind the first answer: it must not take an answer that belongs to the next turn.
      while (turn === 1 && server.requests.length < calls.length + 2) await pause(20);
      const last = server.requests.findLast(({ body }) => body.messages.at(-1).role === "tool");
      const results: string[] = last?.body.messages
        .filter(({ role }: { role: string }) => role === "tool")
        .map(({ content }: { content: string }) => content);
      return results.slice(-calls.length);
    };

    const [cloned = "", installed = "", tested = ""] = await work([
      command(`git clone ${world}/app.git app && ls app`, { timeout: 60 }),
      command("npm install", { workdir: app }),
      command("npm test", { workdir: app }),
    ]);
    assert.match(cloned, /server\.js/);
    assert.match(installed, /added 1 package/);
    assert.doesNotMatch(installed, /npm warn/i);
    assert.match(tested, /pass 1/);

    const [pip = ""] = await work([
      command(
        "python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check -r requirements.txt && .venv/bin/python use.py",
        { workdir: app, timeout: 180 },
      ),
    ]);
    assert.match(pip, /from the wheel/);

    const [committed = ""] = await work([
      command("echo done > NOTES && git add -A && git commit -qm Work && git log -1 --format='%an: %s'", {
        workdir: app,
      }),
    ]);
    assert.match(committed, /Me: Work/);
    assert.match((await run("git", ["log", "-1", "--format=%s"], { cwd: app })).stdout, /^Work$/m);
    assert.doesNotMatch(await screen.text({ history: true }), /do not \w+ it/, "nothing was asked so far");

    const wait = `for i in $(seq 100); do curl -sf http://localhost:${port}/ && break; sleep 0.1; done`;
    const [, served = "", seen = ""] = await work(
      [
        command(`PORT=${port} npm run dev`, { workdir: app, background: true }),
        command(wait),
        { name: "tool_call", arguments: { name: "browser_navigate", arguments: { url: `localhost:${port}` } } },
      ],
      async () => {
        const question = await screen.waitFor("don't open it", { history: false });
        assert.match(question, new RegExp(`open localhost:${port} in the browser`));
        await screen.press("1");
      },
    );
    assert.match(served, /hello world/);
    assert.match(seen, /heading \\"hello world\\"/);

    const [written = ""] = await work(
      [{ name: "write_file", arguments: { path: notes, content: "from the agent\n" } }],
      async () => {
        assert.match(await screen.waitFor("don't write it", { history: false }), /Write outside the sandbox\?/);
        await screen.press("1");
      },
    );
    assert.doesNotMatch(written, /error|BLOCKED/);
    assert.equal(await readFile(notes, "utf8"), "from the agent\n");

    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
    await assert.rejects(fetch(`http://localhost:${port}/`), "the server ended with the conversation");
  });
});
