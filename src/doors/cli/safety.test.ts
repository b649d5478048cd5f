import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { Command } from "commander";
import { type Config, defaultConfig } from "../../home/config/schema.ts";
import { homePaths } from "../../home/paths.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { define, defineApprovals } from "./safety.ts";

interface Run {
  readonly stdin?: string;
  readonly settings?: (config: Config) => void;
  readonly alias?: true;
}

async function run(args: readonly string[], { stdin, settings, alias }: Run = {}) {
  const config = defaultConfig();
  settings?.(config);
  let out = "";
  const io = {
    out: (text: string) => {
      out += text;
    },
    stdin: Readable.from(stdin === undefined ? [] : [stdin]),
    stdinIsTerminal: stdin === undefined,
  };
  const home = {
    config: () => config,
    paths: homePaths("/home/me/.hermes", "/home/me/.hermes", "default"),
    env: (name: string) => (name === "HOME" ? "/home/me" : undefined),
  };
  const command = new Command("safety").exitOverride().configureOutput({ writeErr: () => undefined });
  (alias ? defineApprovals : define)(command, { io, home } as unknown as CliContext); // what this sub-command uses of it
  try {
    await command.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    return { out, code: error.exitCode, message: error.message };
  }
  return { out, code: 0, message: "" };
}

const codes: readonly (readonly [string, number])[] = [
  ["ls -la", 0],
  ["git push --force", 2],
  ["mkfs x", 3],
  ["sudo -S ls", 3],
];

test("the exit code tells: 0 runs, 2 is asked about, 3 is blocked", async () => {
  for (const [command, code] of codes) {
    assert.equal((await run(["check", command])).code, code, command);
    assert.equal((await run(["test", command], { alias: true })).code, code, command);
  }
});

test("words that a shell took apart are one command, put together as they were meant", async () => {
  const shown = async (...words: string[]) =>
    (await run(["check", "--", ...words])).out.split(": ").slice(1).join(": ");
  assert.equal(await shown("ls", "-la"), "ls -la\n");
  assert.equal(await shown("echo", "a; b", "it's"), "echo 'a; b' 'it'\\''s'\n");
  assert.equal((await run(["check", "--", "git", "push", "--force"])).code, 2);
  assert.equal(JSON.parse((await run(["check", "ls -la", "--json"])).out).verdict, "allow");
});

const unfinished = ["", "  ", "# nothing", 'echo "abc', "echo 'x", "echo $(ls", "( ls", "ls |", "ls &&", "ls \\"];
test("what is empty or left open is never allowed: exit 2 and what is wrong", async () => {
  for (const line of unfinished) {
    const { out, code, message } = await run(["check", "--", line]);
    assert.deepEqual([out, code], ["", 2], line);
    assert.match(message, /^Not checked: /, line);
  }
  assert.match((await run(["check"], { stdin: 'echo "abc\n' })).out, /^unfinished unclosed quote.*: echo "abc\n$/);
  for (const stdin of ["", "\n"]) {
    const { out, code, message } = await run(["check"], { stdin });
    assert.deepEqual([out, code], ["", 2]);
    assert.match(message, /stdin contains no command/);
  }
});

test("a person reads verdict, category and reason", async () => {
  assert.match((await run(["check", "mkfs x"])).out, /^block \[format filesystem \(mkfs\), hardline\] .*: mkfs x\n$/);
  assert.equal((await run(["check", "ls"])).out, "allow nothing dangerous found: ls\n");
});

test("--json gives one object per line, and a list on input always ends with 0", async () => {
  const { out, code } = await run(["check", "--json"], { stdin: "ls\n\ngit push --force\r\nmkfs x" });
  assert.equal(code, 0);
  const rows = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    rows.map(({ command, verdict, category }) => [command, verdict, category]),
    [
      ["ls", "allow", null],
      ["git push --force", "ask", "git force push (rewrites remote history)"],
      ["mkfs x", "block", "format filesystem (mkfs)"],
    ],
  );
  assert.deepEqual(Object.keys(rows[0]), ["command", "verdict", "category", "reason"]);
});

test("the settings of this home count", async () => {
  const deny = {
    settings: (config: Config) => {
      config.approvals.deny = ["ls*"];
    },
  };
  assert.equal((await run(["check", "ls -la"], deny)).code, 3);
  const off = {
    settings: (config: Config) => {
      config.approvals.mode = "off";
    },
  };
  assert.equal((await run(["check", "git push --force"], off)).code, 0);
  assert.equal((await run(["check", "mkfs x"], off)).code, 3);
  const list = {
    settings: (config: Config) => {
      config.command_allowlist = ["git push *"];
    },
  };
  assert.match((await run(["check", "git push --force"], list)).out, /^allow .*command_allowlist/);
});

test("in a container without folders of this machine everything runs", async () => {
  const inside = (volumes: string[]) => ({
    settings: (config: Config) => {
      Object.assign(config.terminal, { backend: "docker", docker_volumes: volumes });
    },
  });
  assert.match((await run(["check", "git push --force"], inside([]))).out, /^allow commands run in a container/);
  assert.equal((await run(["check", "git push --force"], inside(["/data:/data"]))).code, 2);
});

test("odd input is judged line by line: no end of line, bytes that are no text, a line too long to read, very many", async () => {
  const lines = ["ls\ufffd", `echo ${"x".repeat(200_000)}`, ...Array<string>(10_000).fill("echo hi")];
  const { out, code } = await run(["check", "--json"], { stdin: ["", "  ", ...lines].join("\r\n") });
  const verdicts = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).verdict);
  assert.deepEqual([code, verdicts.length, verdicts.slice(0, 3)], [0, 10_002, ["allow", "block", "allow"]]);
});

test("without a command and with nobody piping one in, it says what to do", async () => {
  const { code, message } = await run(["check"]);
  assert.equal(code, 1);
  assert.match(message, /hermes safety check ls -la/);
});
