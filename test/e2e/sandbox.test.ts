// Everyday work in a sandbox, through the program, in a home as it is made: what people do all day must not need a yes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { access, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { NEW_CONFIG } from "../../src/home/config/schema.ts";
import { missingBubblewrap } from "../support/engines/bubblewrap.ts";
import { withEngine } from "../support/engines/require.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { oneOf, whole } from "../support/sample.ts";
import { talk } from "../support/talk.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

async function begin(t: TestContext, config = NEW_CONFIG) {
  const server = await ModelServer.start();
  t.after(() => server.close());
  const home = await tempHome({ "config.yaml": config + modelConfig(server) });
  t.after(() => home[Symbol.asyncDispose]());
  return { server, home };
}

interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

const command = (line: string, more = {}): Call => ({ name: "terminal", arguments: { command: line, ...more } });

/** One run of the program that makes these calls; their results. */
async function work(server: ModelServer, home: TempHome, calls: readonly Call[]) {
  server.clear();
  server.script(...calls.map((call) => ({ toolCalls: [call] })), { text: "done" });
  const { stdout, stderr } = await runHermes(["-z", "go"], { home, timeoutMs: 240_000 });
  assert.deepEqual([stdout, stderr], ["done\n", ""]);
  return server.requests.slice(1).map(({ body }) => JSON.parse(body.messages.at(-1).content));
}

const WHEEL = `import zipfile
with zipfile.ZipFile("hello_w-1.0-py3-none-any.whl", "w") as z:
    z.writestr("hello_w.py", "text = 'from the wheel'\\n")
    z.writestr("hello_w-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: hello-w\\nVersion: 1.0\\n")
    z.writestr("hello_w-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("hello_w-1.0.dist-info/RECORD", "")
`;

/** A folder with packages of its own, and its pip. Unpacking a pip takes three seconds; where there is one already it installs as well. */
const PIP =
  whole || spawnSync("python3", ["-c", "import pip"]).status !== 0
    ? "python3 -m venv .venv && .venv/bin/pip"
    : "python3 -m venv --without-pip --system-site-packages .venv && .venv/bin/python -m pip";

const BROKEN = '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2; exit 1\n';

test("with a sandbox that is wanted and cannot be made, status and doctor say that nothing starts, and nothing does", async () => {
  for (const [sandbox, status, doctor, code] of [
    [
      "on",
      /^Terminal +nothing starts: terminal\.sandbox is on, but .*Permission denied$/m,
      /✗ nothing starts: .*\n +→ .*hermes config set terminal\.sandbox off/,
      1,
    ],
    ["auto", /^Terminal +local, no sandbox: .*Permission denied$/m, /⚠ local, no sandbox: /, 0],
  ] as const) {
    await using home = await tempHome({ "config.yaml": `terminal:\n  sandbox: ${sandbox}\n` });
    await mkdir(join(home.osHome, "bin"));
    await writeFile(join(home.osHome, "bin", "bwrap"), BROKEN, { mode: 0o755 });
    const env = { PATH: `${join(home.osHome, "bin")}:${process.env.PATH}` };
    assert.match((await runHermes(["status"], { home, env })).stdout, status);
    const examined = await runHermes(["doctor"], { home, env });
    assert.match(examined.stdout, doctor);
    assert.deepEqual([examined.code, examined.stderr], [code, code === 0 ? "" : "hermes: 1 problem found.\n"]);
    assert.equal((await runHermes(["-z", "run date"], { home, env })).code, code);
  }
});

await withEngine("bubblewrap", missingBubblewrap, () => {
  test("repositories, packages, tests, scripts and servers work inside, and nothing is left in the home", async (t) => {
    const { server, home } = await begin(t);
    const at = (...parts: string[]) => join(home.project, ...parts);
    await mkdir(at("dep"));
    await writeFile(at("dep/package.json"), '{"name":"dep","version":"1.0.0","main":"i.js"}');
    await writeFile(at("dep/i.js"), "module.exports = 'from the package';\n");
    await writeFile(at("package.json"), '{"name":"app","version":"1.0.0"}');
    await writeFile(at("a.test.js"), "require('node:test').test('a', () => { if (!require('dep')) throw 1; });\n");
    await writeFile(at("use.js"), "console.log(require('dep'));\n");
    await writeFile(at("use.py"), "import hello_w\nprint(hello_w.text)\n");
    await writeFile(at("wheel.py"), WHEEL);
    const git = "git -c user.name=a -c user.email=a@b";
    const results = await work(server, home, [
      command(
        `git init -q . && git add -A && ${git} commit -qm one && git checkout -qb two && git log --oneline | wc -l`,
      ),
      command("npm install ./dep --offline --no-audit --no-fund --loglevel=error && node use.js"),
      command("node --test a.test.js | grep -c '^# pass 1\\|ℹ pass 1'"),
      command(
        `python3 wheel.py && ${PIP} install -q --disable-pip-version-check --no-index ./*.whl && .venv/bin/python use.py`,
        { timeout: 180 },
      ),
      command("python3 -m http.server 8123 --bind 127.0.0.1 --directory dep", { background: true }),
      command("for i in $(seq 100); do curl -sf http://127.0.0.1:8123/i.js && break; sleep 0.1; done"),
      { name: "write_file", arguments: { path: "notes/new.md", content: "# New\n" } },
      { name: "patch", arguments: { mode: "replace", path: "notes/new.md", old_string: "New", new_string: "Newer" } },
      {
        name: "execute_code",
        arguments: { code: "open('made.txt', 'w').write('x')\nprint(open('notes/new.md').read())" },
      },
    ]);
    const outputs = results.map((result) => result.output?.trim() ?? JSON.stringify(result));
    const [commits, npm, tests, pip, , page, , , script] = outputs;
    assert.deepEqual([commits, tests], ["1", "1"], outputs.join("\n"));
    assert.match(npm, /from the package$/);
    assert.match(pip, /from the wheel$/);
    assert.match(page, /from the package/);
    assert.equal(script, "# Newer", JSON.stringify(results.at(-1)));
    assert.equal(await readFile(at("made.txt"), "utf8"), "x");
    assert.deepEqual((await readdir(home.osHome)).sort(), [".hermes", "project"]);
  });

  test("leaving is refused where nobody can be asked, and done where the user allowed it beforehand", async (t) => {
    const { server, home } = await begin(t);
    const leave = command("touch ../outside.txt", { outside: true, reason: "the user wants it there" });
    const [refused] = await work(server, home, [leave]);
    assert.equal(refused.status, "blocked");
    assert.match(refused.error, /outside sandbox: touch.*command_allowlist/);
    assert.equal(await exists(join(home.osHome, "outside.txt")), false);
    const sent = server.requests[0]?.body;
    assert.match(
      sent.messages[0].content,
      /run in a sandbox: only the working directory and \/tmp are writable.*outside=true/,
    );
    await writeFile(
      home.at("config.yaml"),
      `${await readFile(home.at("config.yaml"), "utf8")}command_allowlist: ["outside sandbox: touch"]\n`,
    );
    const [done, other] = await work(server, home, [leave, command("ls ..", { outside: true, reason: "to look" })]);
    assert.deepEqual([done.exit_code, other.status], [0, "blocked"], JSON.stringify([done, other]));
    assert.equal(await exists(join(home.osHome, "outside.txt")), true);
  });

  test("without bwrap an automatic sandbox is none, and every door says so once", async (t) => {
    const { server, home } = await begin(t);
    const bin = join(home.osHome, "bin");
    await mkdir(bin);
    const { symlink } = await import("node:fs/promises");
    for (const name of ["bash", "sh", "env", "mkfifo", "git", "cat"])
      await symlink(`/usr/bin/${name}`, join(bin, name));
    server.script({ toolCalls: [command("touch ../outside.txt && echo here")] }, { text: "done" });
    const { stdout } = await runHermes(["-z", "go", "--json"], { home, env: { PATH: bin } });
    const answer = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
    assert.match(
      answer.warnings.join("\n"),
      /^No sandbox \(the program bwrap is not on PATH\): commands run with your full permissions/m,
    );
    assert.equal(await exists(join(home.osHome, "outside.txt")), true);
    const { tools } = server.requests[0]?.body ?? {};
    assert.doesNotMatch(JSON.stringify(tools), /sandbox/);
    const must = await begin(t, NEW_CONFIG.replace("auto", '"on"'));
    const failed = await runHermes(["-z", "go"], { home: must.home, env: { PATH: bin } });
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /bwrap is not on PATH.*apt install bubblewrap/);
    assert.equal(must.server.requests.length, 0);
  });

  test("a resumed conversation keeps its prompt and tools byte for byte, and gets others with another sandbox", async (t) => {
    const me = await talk(t, { config: "terminal:\n  sandbox: auto\n" });
    me.server.script({ text: "a" }, { text: "b" }, { text: "c" });
    await me.say("one");
    await me.resume();
    await me.say("two");
    const sent = () => me.server.requests.map(({ body }) => [body.messages[0].content, JSON.stringify(body.tools)]);
    const [first, second] = sent();
    assert.deepEqual(second, first);
    assert.match(first?.[0] ?? "", /run in a sandbox: only the working directory/);
    const config = join(me.homeDir, "config.yaml");
    await writeFile(config, (await readFile(config, "utf8")).replace("sandbox: auto", "sandbox: off"));
    await me.resume();
    await me.say("three");
    const third = sent()[2];
    assert.doesNotMatch(third?.[0] ?? "", /sandbox/);
    assert.doesNotMatch(third?.[1] ?? "", /Leave the sandbox/);
  });

  const homes: readonly (readonly [what: string, config: string, status: RegExp, doctor: RegExp])[] = [
    [
      "a new home",
      NEW_CONFIG,
      /^Terminal +local, sandboxed \(network on\)$/m,
      /✓ local, sandboxed \(network on\); schedules: network off/,
    ],
    [
      "an older home",
      "",
      /^Terminal +local, no sandbox: terminal\.sandbox is off$/m,
      /⚠ local, no sandbox: .*\n +→ hermes config set terminal\.sandbox auto/,
    ],
    [
      "a home that wants none",
      "terminal:\n  sandbox: off\n",
      /no sandbox: terminal\.sandbox is off/,
      /✓ local, no sandbox: .*as you chose/,
    ],
    [
      "a home with hosts",
      "terminal:\n  sandbox: on\n  sandbox_network: [a.example]\n",
      /sandboxed \(network a\.example\)/,
      /✓ local, sandboxed \(network a\.example\)/,
    ],
  ];
  test("who runs a command that meets a refused host is told which one, and by which setting", async () => {
    const config = "terminal:\n  sandbox: on\n  sandbox_network: [a.example]\n";
    await using home = await tempHome({ "config.yaml": config });
    const { stdout } = await runHermes(["-z", "run curl -sS https://b.example"], { home });
    assert.match(stdout, /exit code 56/);
    assert.match(stdout, /\nb\.example is not an allowed host .*terminal\.sandbox_network in config\.yaml: a\.example/);
  });

  for (const [what, config, status, doctor] of homes)
    test(`status and doctor say where commands run in ${what}`, async (t) => {
      const { home } = await begin(t, config);
      for (const [door, said] of oneOf(
        [
          ["status", status],
          ["doctor", doctor],
        ] as const,
        what,
      ))
        assert.match((await runHermes([door], { home })).stdout, said);
    });
});
