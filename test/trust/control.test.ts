// Control sequences of models, servers, files and plugins on a real terminal, through every door that prints. The rows are data; what
// counts is the bytes that reached the terminal.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { environmentFor, launcher, runHermes } from "../support/run-hermes.ts";
import { sampleOf } from "../support/sample.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";
import { tellFigure } from "../support/trust-figures.ts";

interface Row {
  readonly id: string;
  readonly row: string;
  readonly why: string;
}

const rows: readonly Row[] = (await readFile(new URL("../fixtures/trust/control.jsonl", import.meta.url), "utf8"))
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Row);

const INVISIBLE = /[\u202a-\u202e\u2066-\u2069]/;
/** Each row behind its name. Sequences that never end are ended by a later row; so the rows stand in two texts, last row first in one. */
const text = (some: readonly Row[] = rows) => some.map(({ id, row }) => `${id}:${row}`).join("\n");
const both = (some: readonly Row[] = rows) => `${text(some)}\n${text(some.toReversed())}`;
/** Text with turned direction is withheld from a prompt before anybody prints it. */
const shown = rows.filter(({ row }) => !INVISIBLE.test(row));
const oneLine = (some: readonly Row[] = rows) => both(some).replaceAll("\n", " ");

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
const FOREIGN = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n|\r)/g;

/** Every byte that a terminal got from the program. `script` is the terminal. */
async function onTerminal(args: readonly string[], home: TempHome, typed = ""): Promise<string> {
  const record = join(home.osHome, "terminal.raw");
  const command = [process.execPath, launcher, ...args].map(quote).join(" ");
  const child = spawn("script", ["-q", "-e", "-c", command, record], {
    cwd: home.project,
    env: { ...environmentFor({ home }), TERM: "xterm-256color", SHELL: "/bin/sh" },
    stdio: ["pipe", "ignore", "inherit"],
    timeout: 60_000,
  });
  child.stdin.end(typed);
  await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  return recorded(record);
}

async function recorded(path: string): Promise<string> {
  const raw = await readFile(path, "utf8");
  return raw.slice(raw.indexOf("\n") + 1, raw.lastIndexOf("\nScript done on"));
}

/** Node's line editor, which reads typed answers, clears its line and goes to its end; no row does the same. */
const LINE_EDITOR = /\x1b\[0J|\x1b\[(?!7G)\d{1,3}G/g;

/** The rows of which something foreign is left, by the name that stands before it. */
function fallen(terminal: string): readonly string[] {
  const raw = terminal.replace(LINE_EDITOR, "");
  const names = [...raw.matchAll(/control-\d{3}/g)];
  return [...raw.matchAll(FOREIGN)].map(({ 0: char, index }) => {
    const name = names.findLast((each) => each.index < index)?.[0] ?? "outside all rows";
    return `${name}: U+${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}

/** At whatever door. */
const everFallen = new Set<string>();

function assertNeutral(raw: string, least: number): void {
  const through = fallen(raw);
  for (const one of through) everFallen.add(one.split(":")[0] ?? one);
  assert.deepEqual(through, []);
  const seen = new Set(raw.match(/control-\d{3}/g));
  assert.ok(seen.size >= least, `only ${seen.size} rows were printed: ${raw.slice(0, 2000)}`);
}

const noScript = spawnSync("script", ["--version"]).status === 0 ? false : "needs script of util-linux";

const MCP_SERVER = `
import { createInterface } from "node:readline";
const said = ${JSON.stringify(oneLine())};
const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize")
    send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: said, version: "1" } });
  else if (method === "tools/list") send(id, { tools: [{ name: "echo", description: said, inputSchema: { type: "object", properties: {} } }] });
  else if (id !== undefined) send(id, {});
});
`;

describe("control sequences on a terminal", { skip: noScript }, () => {
  let server: ModelServer;
  let home: TempHome;
  before(async () => {
    server = await ModelServer.start();
    const yaml = (value: unknown) => JSON.stringify(value);
    home = await tempHome({
      "SOUL.md": `You are Hermes.\n${both(shown)}\n`,
      "memories/MEMORY.md": both(shown).replaceAll("\n", "\n§\n"),
      "skills/dev/loud/SKILL.md": `---\nname: loud\ndescription: ${yaml(oneLine(shown))}\n---\n${both()}\n`,
      "plugins/loud/plugin.yaml": `name: loud\nversion: 1.0.0\ndescription: ${yaml(oneLine())}\n`,
      "plugins/loud/index.mjs": `export default (ctx) => ctx.registerCliCommand({ name: "shout", description: "shouts",
        run: (args, io) => { io.out(${yaml(both())}); io.err(${yaml(both())}); } });`,
      "server.mjs": MCP_SERVER,
    });
    const servers = {
      loud: { command: process.execPath, args: [home.at("server.mjs")] },
      broken: { command: `none ${oneLine()}`, args: [oneLine()], enabled: false },
    };
    await home.write(
      "config.yaml",
      `${modelConfig(server)}mcp_servers: ${yaml(servers)}\nplugins: {enabled: [loud]}\nunknown_part: ${yaml(both())}\n`,
    );
    await writeFile(join(home.project, "AGENTS.md"), `# Rules\n${both(shown)}\n`);
  });
  beforeEach(() => void server.clear());
  after(async () => {
    tellFigure({ kind: "control sequences", rows: rows.length, fallen: [...everFallen] });
    await server.close();
    await home[Symbol.asyncDispose]();
  });

  test("the rows are at hand", () => {
    assert.ok(rows.length >= 40);
    assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length);
    assert.notDeepEqual(fallen(text()), [], "the check sees what it looks for");
  });

  test("the answer of -z; into a pipe it goes byte for byte", async () => {
    server.script({ text: both() });
    assertNeutral(await onTerminal(["-z", "go"], home), 50);
    server.script({ text: both() });
    const piped = await runHermes(["-z", "go"], { home });
    assert.equal(piped.stdout, `${both()}\n`);
  });

  test("the errors of a provider, also into a pipe", async () => {
    const refused = { fault: "status", status: 400, body: { error: { message: both() } } } as const;
    for (const args of [
      ["-z", "go"],
      ["chat", "-q", "go"],
    ]) {
      server.script(refused);
      assertNeutral(await onTerminal(args, home), 1);
    }
    server.script(refused);
    const { stderr } = await runHermes(["-z", "go"], { home });
    assert.deepEqual(fallen(stderr), []);
  });

  test("calls, results, thoughts and the answer of chat -q", async () => {
    server.script(
      {
        text: both(),
        thinking: both(),
        toolCalls: [
          { name: "terminal", arguments: { command: `echo ${quote(oneLine(shown))}` } },
          { name: "read_file", arguments: { path: oneLine() } },
          { name: "clarify", arguments: { question: oneLine(), choices: [oneLine()] } },
        ],
      },
      { text: both() },
    );
    assertNeutral(await onTerminal(["chat", "-q", both(shown).replaceAll("\0", "")], home, "1\n"), 50);
  });

  test("questions about hooks, and their list", async () => {
    const hooks = { pre_tool_call: [{ command: oneLine() }] };
    await using other = await tempHome({ "config.yaml": `${modelConfig(server)}hooks: ${JSON.stringify(hooks)}\n` });
    server.script({ text: "fine" });
    assertNeutral(await onTerminal(["chat", "-q", "go"], other, "n\n"), 50);
    assertNeutral(await onTerminal(["hooks", "list"], other), 1);
    assertNeutral(await onTerminal(["hooks", "doctor"], other), 0);
  });

  const commands: readonly (readonly [least: number, ...args: string[]])[] = [
    [1, "prompt", "show"],
    [0, "prompt", "files"],
    [1, "skills", "list"],
    [1, "skills", "view", "loud"],
    [0, "skills", "scan", "loud"],
    [1, "sessions", "list"],
    [0, "sessions", "search", "control"],
    [1, "mcp", "list"],
    [1, "mcp", "tools", "loud"],
    [0, "mcp", "test", "loud"],
    [0, "mcp", "test", "broken"],
    [1, "memory", "show"],
    [1, "plugins", "list"],
    [1, "shout"],
    [0, "config", "show"],
    [0, "config", "check"],
    [0, "status"],
    [0, "doctor"],
    [0, "tools", "list"],
  ];
  // Each is a start of the program; the rows of all of them are the same.
  for (const [least, ...args] of sampleOf(commands, 3, "commands"))
    test(`hermes ${args.join(" ")}`, async () => assertNeutral(await onTerminal(args, home), least));

  test("a whole session, and errors that repeat what was typed", async () => {
    const { stdout } = await runHermes(["sessions", "list", "--json"], { home });
    const [newest] = JSON.parse(stdout) as { id: string }[];
    assert.ok(newest);
    assertNeutral(await onTerminal(["sessions", "show", newest.id, "--full"], home), 50);
    const typed = oneLine().replaceAll("\0", "");
    const repeating = [
      ["sessions", "show", typed],
      [typed],
      ["--resume", typed, "-z", "x"],
      ["-p", typed],
      ["safety", "check", typed],
    ];
    for (const args of sampleOf(repeating, 3, "errors")) assertNeutral(await onTerminal(args, home), 0);
  });

  test("the screen draws none of them", { skip: tmuxMissing() }, async () => {
    const record = join(home.osHome, "screen.raw");
    const program = [process.execPath, launcher].map(quote).join(" ");
    const command = ["script", "-q", "-e", "-f", "-c", program, record];
    server.script(
      {
        toolCalls: [
          { name: "read_file", arguments: { path: oneLine() } },
          { name: `loud${oneLine()}`, arguments: {} },
        ],
      },
      { text: `${both()}\n\n[docs](https://elsewhere.test/)\n\nThe end.` },
      { text: oneLine() }, // the title
    );
    await using screen = await TerminalScreen.start([], { home, command });
    await screen.waitFor("❯");
    await screen.say("go");
    await screen.waitFor("The end.");
    server.clear();
    const refused = { fault: "status", status: 400, body: { error: { message: both() } } } as const;
    server.script(refused, refused, refused);
    await screen.say("again");
    await screen.waitFor(/400|rejected|refused/);
    await screen.say("/quit");
    await screen.exitCode();
    const raw = await recorded(record);
    assert.ok(new Set(raw.match(/control-\d{3}/g)).size >= 50, "the rows were drawn");
    const drawn = rows.filter(({ id, row }) => FOREIGN.test(row) && raw.includes(`${id}:${row}`));
    FOREIGN.lastIndex = 0;
    for (const { id } of drawn) everFallen.add(id);
    assert.deepEqual(
      drawn.map(({ id }) => id),
      [],
    );
    // What the renderer itself writes besides moves and colours: the end of a link, the question for the background.
    const strings = raw.match(/\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x80-\x9f\u202a-\u202e\u2066-\u2069]/g) ?? [];
    assert.deepEqual(
      [...new Set(strings)].filter((each) => !["\x1b]8;;\x07", "\x1b]11;?\x07"].includes(each)),
      [],
    );
  });
});
