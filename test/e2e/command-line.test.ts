// Commands of the command line as a user types them, each in a process of its own.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { runHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { type TempHome, tempHome } from "../support/temp-home.ts";

const SECRET = "sk-or-v1-0123456789abcdefghij";

/** Runs one command; fails with what it said when its exit code is another. */
async function hermes(home: TempHome, code: number, ...args: string[]): Promise<{ out: string; err: string }> {
  const run = await runHermes(args, { home });
  assert.equal(run.code, code, `hermes ${args.join(" ")}\n${run.stdout}\n${run.stderr}`);
  return { out: run.stdout, err: run.stderr };
}

test("fallbacks are kept in config.yaml in their order, comments and keys stay as they were", async () => {
  await using home = await tempHome({
    "config.yaml":
      "# mine\nfallback_model:\n  provider: custom\n  model: own\n  base_url: http://127.0.0.1:9/v1\n  api_key: $\u007bMY_KEY}\n",
    ".env": "MY_KEY=very-secret-value-1\n",
  });
  await hermes(home, 0, "fallback", "add", "ollama:qwen3:8b", "--first");
  const { out } = await hermes(home, 0, "fallback", "list");
  assert.match(out, /^1\. ollama {2}qwen3:8b\n2\. custom {2}own {2}at http:\/\/127\.0\.0\.1:9\/v1\n$/);
  const text = await readFile(home.at("config.yaml"), "utf8");
  assert.match(text, /^# mine\n/);
  assert.match(text, /api_key: "?\$\{MY_KEY\}/);
  assert.doesNotMatch(text, /fallback_model|very-secret/);
  assert.match((await hermes(home, 1, "fallback", "remove", "7")).err, /no fallback "7"/);
  await hermes(home, 0, "fallback", "remove", "own");
  assert.match((await hermes(home, 1, "fallback", "clear")).err, /-y/);
  await hermes(home, 0, "fallback", "clear", "-y");
  assert.match((await hermes(home, 0, "fallback")).out, /No fallback configured/);
});

test("a dump tells about the installation and holds no secret", async () => {
  await using home = await tempHome({
    "config.yaml": `model:\n  default: some/model\n  api_key: ${SECRET}\nagent:\n  max_turns: 7\n`,
    ".env": `OPENROUTER_API_KEY=${SECRET}\n`,
  });
  const { out } = await hermes(home, 0, "dump");
  assert.match(out, /^--- hermes dump ---\n[\s\S]*\n--- end dump ---\n$/);
  assert.match(out, /OPENROUTER_API_KEY +set\n/);
  assert.match(out, /agent\.max_turns +7\n/);
  assert.doesNotMatch(out, /0123456789/);
  for (const args of oneOf(
    [
      ["dump", "--show-keys"],
      ["status", "--all"],
    ],
    "what tells about the installation",
  ))
    assert.doesNotMatch((await hermes(home, 0, ...args)).out, /0123456789/, args.join(" "));
});

test("help fits 80 columns, also where terms are long", async () => {
  await using home = await tempHome();
  for (const name of oneOf(["cron", "kanban"], "a long help")) {
    const { out } = await hermes(home, 0, name, "--help");
    assert.deepEqual(
      out.split("\n").filter((line) => line.length > 80),
      [],
      name,
    );
  }
});

test("a slash command behind -z is answered by the program; what needs a screen says so", async () => {
  await using home = await tempHome();
  await hermes(home, 0, "-z", "hello");
  const { out } = await hermes(home, 0, "-z", "/usage", "--continue");
  assert.match(out, /main +1 /);
  for (const name of oneOf(["/redraw", "/init"], "a command of the screen"))
    assert.match((await hermes(home, 2, "-z", name)).err, new RegExp(`${name} needs the interactive screen`));
  assert.match((await hermes(home, 1, "-z", "/skin")).err, /Skins are not available here/);
  const unknown = await hermes(home, 1, "chat", "-Q", "-q", "/nosuch");
  assert.match(unknown.err, /Unknown command \/nosuch/);
  assert.equal(unknown.out, "");
  assert.equal((await hermes(home, 0, "sessions", "list")).out.trimEnd().split("\n").length, 2);
});

test("-w works in a worktree that is gone afterwards, and is kept with what was done in it", async () => {
  await using home = await tempHome();
  const git = (...args: string[]) =>
    promisify(execFile)("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], { cwd: home.project });
  assert.match((await hermes(home, 1, "-w", "-z", "hello")).err, /-w needs a git repository/);
  await git("init", "-q");
  await git("commit", "-qm", "first", "--allow-empty");
  const { out } = await hermes(home, 0, "-w", "-z", "run git branch --show-current");
  assert.match(out, /hermes\/hermes-[0-9a-f]{8}/);
  assert.deepEqual(await readdir(join(home.project, ".worktrees")), []);
  const kept = await hermes(home, 0, "-w", "-z", "run touch made.txt");
  const [name] = await readdir(join(home.project, ".worktrees"));
  assert.match(kept.err, new RegExp(`kept, because it has changes that are not committed: .*${name}`));
  assert.ok((await readdir(join(home.project, ".worktrees", name ?? ""))).includes("made.txt"));
});

test("a batch that cannot begin leaves nothing behind", async () => {
  await using home = await tempHome();
  await hermes(home, 1, "batch", "--dataset_file", "nofile", "--run_name", "x");
  assert.deepEqual(await readdir(home.project), []);
});

test("a home moves to another place through backup and import", async () => {
  await using home = await tempHome({ ".env": `OPENROUTER_API_KEY=${SECRET}\n`, "config.yaml": "model: demo\n" });
  await hermes(home, 0, "-z", "hello", "--provider", "demo");
  const file = join(home.osHome, "moved.zip");
  assert.match((await hermes(home, 0, "backup", "-o", file)).out, /1 database/);
  // A slash at the end names a folder, also one that does not exist yet.
  assert.match((await hermes(home, 0, "backup", "-o", `${file}.d/`)).out, /\.d\/hermes-backup-\d{4}-.*\.zip/);
  await using other = await tempHome();
  const { out } = await hermes(other, 0, "import", file);
  assert.match(out, /✓ Restored \d+ files \(1 database\)/);
  assert.match((await hermes(other, 0, "sessions", "list")).out, /hello/);
  assert.match((await hermes(other, 1, "import", file)).err, /Not a terminal; pass --force/);
  await hermes(other, 0, "import", file, "--force");
  assert.ok((await readdir(other.at("state-snapshots"))).some((name) => name.endsWith("-before-import")));
});
