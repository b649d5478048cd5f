// Rules of the house that no linter knows: where the environment may be read, where blocking calls may stand, who may start programs,
// how long a file is, what it exports. An argument names another folder to look at.
import { globSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = process.argv[2] ? resolve(process.argv[2]) : dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Who may start programs, and why no decision of safety/ is needed there. Everything else runs commands through an environment, which
 * takes nothing without one. A new line here is a new way around the guard: give its reason, or use `ctx.guard` and `ctx.environment`.
 */
const spawners = {
  "src/sandbox/background-child.ts": "the environments: pseudo-terminals for what was decided about",
  "src/sandbox/namespace-holder.ts": "the environments: holds the namespaces of a sandbox",
  "src/sandbox/container.ts": "the environments: the container engine itself",
  "src/sandbox/scripts.ts":
    "the environments: fixed scripts for files of a place, and the shell that stays open for them",
  "src/sandbox/output.ts": "the environments: makes the pipes of output",
  "src/sandbox/processes.ts": "the environments: shells for what was decided about, and the list of processes",
  "src/sandbox/ssh.ts": "the environments: the connection that stays open",
  "src/home/npm-install.ts":
    "npm with fixed arguments, without a shell, for libraries the program names: browser driver, platforms",
  "src/checkpoints/git.ts": "git on the store of checkpoints, without a shell; paths arrive on standard input",
  "src/tools/execute-code/javascript.ts": "not this program: a script's runner, which runs inside the environment",
  "src/tools/files/ripgrep.ts": "ripgrep, without a shell; the pattern is one argument",
  "src/kanban/workers.ts":
    "hermes itself, in a process that outlives the one that started it, for a card; and ps, which says when a process began",
  "src/kanban/workspaces.ts": "git with fixed arguments, without a shell, for worktrees that cards name",
  "src/prompt/ports.ts": "git and version probes with fixed arguments, without a shell",
  "src/mcp/stdio-transport.ts": "MCP servers of the settings, each decided about by mcp/launch-check.ts",
  "src/skills/preprocess.ts": "shell lines of a skill, each decided about by safety/unattended.ts",
  "src/commands/dispatch.ts": "commands the user wrote into the settings",
  "src/plugins/install.ts": "git with fixed arguments, without a shell, for plugins the user installs",
  "src/plugins/shell-hooks/run.ts": "hooks the user consented to, word by word, without a shell",
  "src/doors/cli/config.ts": "the user's editor",
  "src/doors/cli/program.ts": "hermes itself again, under another profile or Node",
  "src/home/start-program.ts":
    "hermes itself, in a process that outlives the one that started it: fixed arguments of ours",
  "src/doors/gateway/services.ts":
    "systemctl and launchctl with fixed arguments, without a shell, and hermes itself in the background",
  "src/doors/terminal/clipboard.ts": "the clipboard programs of the system, and the user's editor",
};

const rules = [
  {
    name: "process.env is read in home/ (and handed in by main.ts, built.ts and library.ts) only",
    pattern: /\bprocess\.env\b/,
    allows: (path) => /^src\/(home\/|(?:main|built|library)\.ts$)/.test(path),
  },
  {
    name: "blocking *Sync calls stand in start-up code and the store only",
    pattern:
      /\b(readFile|writeFile|appendFile|exists|stat|lstat|readdir|mkdir|rm|rename|copyFile|open|exec|execFile|spawn)Sync\s*\(/,
    allows: (path) => /^src\/(home\/|sessions\/|main\.ts$)/.test(path),
  },
  {
    name: "programs are started by the files named in scripts/house-rules.mjs only; run commands through an environment",
    pattern: /["'`](?:(?:node:)?(?:child_process|cluster)|@lydell\/node-pty)["'`]/,
    allows: (path) => path in spawners,
  },
  {
    name: "only what the person at the screen typed is cleared without a decision, in agent/opened.ts",
    pattern: /\bclearTypedCommand\b/,
    allows: (path) => path === "src/safety/decision.ts" || path === "src/agent/opened.ts",
  },
  {
    name: "commands are cleared in safety/ only; ask the guard",
    pattern: /\bclearCommand\b/,
    allows: (path) => path.startsWith("src/safety/"),
  },
  { name: "no any-casts without a reason on the same line", pattern: /\bas any\b(?!.*\/\/)/, allows: () => false },
];

const MAX_LINES = 500;
/** Below this a file with a single user of its own room belongs to that user. */
const SMALL_LINES = 60;
/** The loop is a room one can read; what is not the loop lives in a room of its own. */
const MAX_LOOP_FILES = 50;

let broken = 0;
const report = (line) => {
  process.stdout.write(`${line}\n`);
  broken++;
};

const sources = new Map();
for (const file of globSync("src/**/*.ts", { cwd: root }).sort()) {
  if (file.endsWith(".test.ts")) continue;
  const path = relative(root, join(root, file)).replaceAll("\\", "/");
  sources.set(path, readFileSync(join(root, file), "utf8"));
}

const started = new Set();
for (const [path, text] of sources)
  text.split("\n").forEach((line, index) => {
    for (const rule of rules) {
      if (!rule.pattern.test(line) || /^\s*(\/\/|\*)/.test(line)) continue;
      if (path in spawners) started.add(path);
      if (!rule.allows(path)) report(`${path}:${index + 1}: ${rule.name}\n    ${line.trim()}`);
    }
  });
if (!process.argv[2])
  for (const path of Object.keys(spawners))
    if (!started.has(path))
      report(`${path}: starts no programs any more; take it off the list in scripts/house-rules.mjs`);

// The size of files. What only types need stays a contract; what is loaded when it is needed, or runs in a worker, has to be a file.

const importers = new Map();
const loaded = new Set();
for (const [path, text] of sources) {
  const target = (name) => posix.join(posix.dirname(path), name);
  for (const [, name] of text.matchAll(/^(?:import|export)\b(?:[^;"]*\bfrom)?\s*"(\.[^"]+)";/gm))
    importers.set(target(name), (importers.get(target(name)) ?? new Set()).add(path));
  for (const [, name] of text.matchAll(/(?:(?<!typeof )\bimport|\bnew URL)\(\s*"(\.[^"]+)"/g)) loaded.add(target(name));
}
const linesOf = (path) => sources.get(path).split("\n").length - 1;
const roomOf = (path) => path.split("/")[1];
const holdsOnlyTypes = (text) =>
  !/^(?:export )?(?:async |abstract )?(?:function|const|let|class)\b|^[\w.]+\(/m.test(text);
const isTool = (path) => /^src\/tools\/[^/]+$/.test(path);
const isGenerated = (text) => /^\/\/.*\bgenerated\b/i.test(text);

for (const [path, text] of sources) {
  const lines = linesOf(path);
  if (lines > MAX_LINES && !isGenerated(text))
    report(`${path}: has ${lines} lines; a file has at most ${MAX_LINES}: look for the second idea in it`);
  if (isTool(path) && !/^\s*register\(/m.test(text))
    report(`${path}: registers no tool; src/tools/ lists the tools, everything else lies below`);
  const [user, ...others] = importers.get(path) ?? [];
  const isPart = lines < SMALL_LINES && user && others.length === 0 && roomOf(user) === roomOf(path);
  if (!isPart || isTool(path) || loaded.has(path) || holdsOnlyTypes(text) || isGenerated(text)) continue;
  if (lines + linesOf(user) > MAX_LINES) continue;
  report(`${path}: has ${lines} lines and is imported by ${user} alone: it is part of that file`);
}

const loop = [...sources.keys()].filter((path) => roomOf(path) === "agent");
if (loop.length > MAX_LOOP_FILES)
  report(
    `src/agent: has ${loop.length} files; the loop has at most ${MAX_LOOP_FILES}: move what is not the loop to its room`,
  );

// What a file exports, somebody else names: product, tests, benchmarks or scripts. Each reader of a file is taken at its words.

/** What programs that embed Hermes import, and one that runs where a script runs and is imported there. */
const READ_ELSEWHERE = ["src/library.ts", "src/doors/library/contract.ts", "src/tools/execute-code/javascript.ts"];
/** And platforms, which are found by listing their folder. */
const isImportedUnnamed = (path) =>
  READ_ELSEWHERE.includes(path) || /^src\/doors\/gateway\/platforms\/\w+\/entry\.ts$/.test(path);
const wordsOfReaders = new Map();
for (const file of globSync("{src,test,bench,scripts}/**/*.{ts,mjs}", { cwd: root, exclude: ["**/node_modules"] })) {
  const text = readFileSync(join(root, file), "utf8");
  const words = text.match(/\w+/g) ?? [];
  for (const [, name] of text.matchAll(/"(\.\.?\/[^"]+\.ts)"/g)) {
    const path = posix.join(posix.dirname(file.replaceAll("\\", "/")), name);
    if (!wordsOfReaders.has(path)) wordsOfReaders.set(path, new Set());
    for (const word of words) wordsOfReaders.get(path).add(word);
  }
}
for (const [path, text] of sources)
  for (const [, name] of text.matchAll(
    /^export (?:abstract |async )*(?:function\*?|const|class|interface|type) (\w+)/gm,
  ))
    if (!wordsOfReaders.get(path)?.has(name) && !isImportedUnnamed(path))
      report(`${path}: exports ${name}, which nobody imports`);
process.exitCode = broken > 0 ? 1 : 0;
