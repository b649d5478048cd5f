import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Command } from "commander";
import { pressKeys } from "../../../test/support/press-keys.ts";
import { temporaryStore } from "../../../test/support/session-store.ts";
import { configSchema } from "../../home/config/schema.ts";
import { homePaths } from "../../home/paths.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import { createRedactor } from "../../safety/redact.ts";
import type { SessionListItem } from "../../sessions/store.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { cellWidth } from "../terminal-text.ts";
import { sessionTable } from "./session-command.ts";
import { define } from "./sessions.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });
const assistant = (content: string): HistoryMessage => ({ role: "assistant", content });

interface Run {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

async function sessions(t: TestContext) {
  const { store, clock, folder, log } = await temporaryStore(t);
  const reruns: (readonly string[])[] = [];
  const run = async (
    args: readonly string[],
    input: { answer?: string; keys?: readonly string[] } = {},
  ): Promise<Run> => {
    let out = "";
    let err = "";
    const command = new Command("sessions")
      .exitOverride()
      .configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
    const ctx: CliContext = {
      home: {
        paths: homePaths(folder, folder, "default"),
        config: () => configSchema.parse({}),
        log,
        redact: createRedactor({ enabled: true, knownSecrets: () => [] }),
        display: (path: string) => path,
      } as unknown as CliContext["home"], // what these commands use of a home
      clock,
      cwd: folder,
      commands: new Set(),
      tree: async () => command,
      io: {
        out: (text) => {
          out += text;
        },
        err: (text) => {
          err += text;
        },
        stdin: process.stdin,
        stdinIsTerminal: input.keys !== undefined,
        stdoutIsTerminal: input.keys !== undefined,
        stderrIsTerminal: false,
        color: false,
        columns: 80,
        question: async () => input.answer ?? null,
        secret: async () => null,
        choose: async (question) =>
          pressKeys(question, next, (screen) => {
            out += screen;
          }),
      },
      store: async () => store,
      conversationStore: async () => store,
      rerun: async (again) => {
        reruns.push(again);
        return 0;
      },
    };
    const next = [...(input.keys ?? [])];
    define(command, ctx);
    try {
      await command.parseAsync([...args], { from: "user" });
      return { out, err, code: 0 };
    } catch (error) {
      if (!(error instanceof ExitError)) throw error;
      return { out, err: error.message === "" ? err : `${err}${error.message}\n`, code: error.exitCode };
    }
  };
  return { store, clock, folder, run, reruns };
}

test("list shows titles, previews and times in columns of cells", async (t) => {
  const { store, clock, run } = await sessions(t);
  assert.equal((await run(["list"])).out, "No sessions found.\n");
  await store.create({ id: "id-1" });
  await store.append("id-1", [user("写一个关于数据库部署的文档，要详细，包含所有的步骤和注意事项")]);
  await store.create({ id: "id-2", source: "telegram" });
  await store.append("id-2", [user("hello there")]);
  await store.create({ id: "id-3", source: "subagent" });
  const untitled = (await run(["list"])).out.trimEnd().split("\n");
  assert.equal(untitled[0], `${"Preview".padEnd(50)}${"Last Active".padEnd(13)}${"Src".padEnd(6)} ID`);
  assert.equal(untitled.length, 3);
  for (const line of untitled.slice(1)) assert.equal(cellWidth(line.slice(0, line.indexOf("id-"))), 70);
  assert.ok(untitled.some((line) => line.includes("just now") && line.endsWith("id-2")));
  await store.setTitle("id-1", "部署文档".repeat(10));
  clock.ms += 3 * 3_600_000;
  const titled = (await run(["list"])).out.trimEnd().split("\n");
  assert.equal(titled[0], `${"Title".padEnd(32)}${"Preview".padEnd(40)}${"Last Active".padEnd(13)}ID`);
  for (const line of titled.slice(1)) assert.equal(cellWidth(line.slice(0, line.indexOf("id-"))), 85);
  assert.ok(titled.some((line) => line.startsWith("—") && line.includes("3h ago")));
  assert.match((await run(["list", "--source", "subagent"])).out, /id-3/);
  const json = JSON.parse((await run(["list", "--json", "--limit", "1"])).out);
  assert.equal(json.length, 1);
  assert.equal(json[0].message_count, 1);
});

test("list fits the terminal: ids stay whole, and a pipe gets every column", () => {
  const item = (id: string, title: string | null, preview: string) =>
    ({ id, title, preview, source: "cli", archived: false, lastActive: 100 }) as SessionListItem; // what a row shows
  const id = "20261118_164639_99d0b9";
  const rows = [
    item(id, "关于部署的一个很长的标题，比一列还要长得多", "x"),
    item(id, null, "what is the date of today, and why"),
  ];
  for (const width of [200, 107, 106, 80, 60, 51, 40]) {
    for (const items of [rows, rows.slice(1)]) {
      const lines = sessionTable(items, 100, { room: width });
      for (const line of lines) assert.ok(cellWidth(line) <= width, `${width}: ${line}`);
      for (const line of lines.slice(1)) assert.ok(line.endsWith(id), line);
      assert.equal(lines[0]?.includes("Last Active"), width > 50, `${width}`);
    }
  }
  assert.match(sessionTable(rows, 100, { room: 80 })[2] ?? "", /^what is the date of today, and why {2,}just now/);
  assert.equal(cellWidth(sessionTable(rows, 100)[0] ?? ""), 87);
});

test("show prints facts and the transcript, tool results on one line unless asked for whole", async (t) => {
  const { store, run } = await sessions(t);
  await store.create({ id: "20260101_a", model: "m1" });
  await store.setTitle("20260101_a", "zoo");
  await store.append("20260101_a", [
    user("where?"),
    {
      role: "assistant",
      content: "looking",
      tool_calls: [{ id: "c", type: "function", function: { name: "search_files", arguments: "{}" } }],
    },
    {
      role: "tool",
      content: "line one\nline two \u001b[31mred\u001b[0m",
      tool_call_id: "c",
      tool_name: "search_files",
    },
  ]);
  for (const name of ["zoo", "20260101_a", "2026"]) {
    const { out, code } = await run(["show", name]);
    assert.equal(code, 0);
    assert.match(out, /Title: +zoo/);
    assert.match(out, /↳ search_files: line one line two red/);
    assert.doesNotMatch(out, /\u001b/);
  }
  assert.match((await run(["show", "zoo", "--full"])).out, / {2}line one\n {2}line two red/);
  assert.equal(JSON.parse((await run(["show", "zoo", "--json"])).out).messages.length, 3);
  const missing = await run(["show", "nobody"]);
  assert.equal(missing.code, 1);
  assert.match(missing.err, /No session matches "nobody"/);
});

test("search prints hits with markers; nothing found ends with 1, and with --json in an empty list", async (t) => {
  const { store, run } = await sessions(t);
  await store.create({ id: "s1" });
  await store.append("s1", [user("the walrus sings"), assistant("a penguin walrus")]);
  const { out } = await run(["search", "walrus", "--sort", "oldest"]);
  assert.match(out, /^s1\n {2}\S+ \S+ {2}user: the >>>walrus<<< sings\n {2}.*assistant: a penguin >>>walrus<<<\n$/);
  assert.equal(JSON.parse((await run(["search", "walrus", "--role", "assistant", "--json"])).out).length, 1);
  const timed = await run(["search", "walrus on 1999-01-01"]);
  assert.match(timed.err, /^Time: on 1999-01-01 .*\nNothing that matches was said in that time/);
  assert.match(timed.out, /walrus/);
  const none = await run(["search", "narwhal"]);
  assert.deepEqual([none.code, none.out], [1, ""]);
  assert.match(none.err, /Nothing found/);
  const json = await run(["search", "narwhal", "--json"]);
  assert.deepEqual([json.code, json.out], [0, "[]\n"]);
  const long = await run(["search", "y".repeat(5000)]);
  assert.ok(long.err.length < 100, "a long query is not repeated whole");
});

test("at a terminal a long hit is wrapped between words, below where it begins", async (t) => {
  const { store, run } = await sessions(t);
  await store.create({ id: "s1" });
  await store.append("s1", [
    user("the walrus sings of a long way through the ice until the sun is seen again in spring"),
  ]);
  const [, first = "", second = ""] = (await run(["search", "walrus"], { keys: [] })).out.split("\n");
  assert.ok(first.length <= 80 && / \S+$/.test(first), first);
  assert.match(second, /^ {6,}\S/);
  assert.equal((await run(["search", "walrus"])).out.split("\n").length, 3, "one line where a program reads");
});

test("hits stand below their session, and one that has many does not push the others out", async (t) => {
  const { store, run } = await sessions(t);
  for (const id of ["many", "one"]) await store.create({ id });
  await store.setTitle("many", "All about the walrus");
  await store.append("one", [user("walrus")]);
  for (let n = 0; n < 8; n++) await store.append("many", [user(`walrus number ${n}`)]);
  const { out } = await run(["search", "walrus", "--limit", "2"]);
  assert.equal(out.match(/^(?:many {2}All about the walrus|one)$/gm)?.length, 2);
  assert.match(out, /\n {2}\.\.\. 5 more in this session\n/);
  assert.equal(JSON.parse((await run(["search", "walrus", "--limit", "2", "--json"])).out).length, 2);
});

test("sessions travel through a file, and an existing one is skipped", async (t) => {
  const { store, run, folder } = await sessions(t);
  await store.create({ id: "s1" });
  await store.append("s1", [user("<b>hello</b>"), assistant("```\ncode\n```")]);
  assert.equal((await run(["export", "out.jsonl"])).code, 0);
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith("out")),
    ["out.jsonl"],
  );
  assert.equal((await run(["export", "-"])).out, await readFile(join(folder, "out.jsonl"), "utf8"));
  assert.match((await run(["export", "-", "--format", "md", "--session-id", "s1"])).out, /^# s1\n[\s\S]*## assistant/);
  assert.match((await run(["export", "-", "--format", "html"])).out, /&lt;b&gt;hello/);
  assert.match((await run(["import", "out.jsonl"])).out, /Imported 0, skipped 1/);
  await store.delete("s1");
  assert.match((await run(["import", "out.jsonl"])).out, /Imported 1/);
  assert.equal((await store.load("s1")).length, 2);
  await writeFile(join(folder, "bad.jsonl"), "{nope\n");
  assert.match((await run(["import", "bad.jsonl"])).err, /line 1: .*nothing was imported/);
  assert.equal((await run(["import", "missing.jsonl"])).code, 1);
  assert.equal((await run(["export", "nowhere/out.jsonl"])).code, 1);
  assert.equal((await run(["export", "-", "--session-id", "nobody"])).code, 1);
});

test("rename joins the words and refuses a title that is taken", async (t) => {
  const { store, run } = await sessions(t);
  for (const id of ["a1", "b1"]) await store.create({ id });
  assert.match((await run(["rename", "a1", "my", "new", "title"])).out, /a1 is now "my new title"/);
  const taken = await run(["rename", "b1", "my new title"]);
  assert.deepEqual([taken.code, taken.err], [1, "Title 'my new title' is already in use by session a1\n"]);
  assert.equal((await run(["rename", "zz", "x"])).code, 1);
});

test("delete asks first, and does nothing where nobody can be asked", async (t) => {
  const { store, run } = await sessions(t);
  for (const id of ["abc-1", "abd-1"]) await store.create({ id });
  assert.equal((await run(["delete", "ab", "-y"])).code, 1);
  assert.equal((await run(["delete", "abc"], { answer: "n" })).code, 1);
  assert.match((await run(["delete", "abc"])).err, /pass -y/);
  assert.ok(await store.get("abc-1"));
  assert.equal((await run(["delete", "abc"], { answer: "y" })).code, 0);
  assert.equal(await store.get("abc-1"), null);
  assert.equal((await run(["delete", "abd", "-y"])).code, 0);
});

test("prune shows the count first and takes only old ended sessions; archive hides them", async (t) => {
  const { store, run, clock } = await sessions(t);
  const old = clock.now() / 1000 - 100 * 86_400;
  for (const id of ["old1", "old2"]) {
    await store.create({ id, startedAt: old, source: id === "old1" ? "cron" : "cli" });
    await store.end(id, "cli_close");
  }
  await store.create({ id: "open", startedAt: old });
  assert.match((await run(["prune", "--dry-run"])).out, /Would delete 2 sessions:\nold1\nold2\n/);
  assert.match((await run(["prune", "--newer-than", "30"])).out, /No sessions match/);
  assert.match((await run(["archive", "--source", "cron", "-y"])).out, /Archived 1 session\./);
  assert.equal(
    (await store.list()).some((item) => item.id === "old1"),
    false,
  );
  assert.doesNotMatch((await run(["list"])).out, /old1/);
  assert.match((await run(["list", "--archived", "--source", "cron"])).out, /old1/);
  assert.match((await run(["unarchive", "old1"])).out, /old1 is no longer archived/);
  assert.match((await run(["unarchive", "old1"])).out, /old1 is not archived/);
  assert.match((await run(["list", "--source", "cron"])).out, /old1/);
  assert.match((await run(["prune"], { answer: "yes" })).out, /Deleted 2 sessions/);
  assert.ok(await store.get("open"));
});

test("stats, optimize and repair tell what they found", async (t) => {
  const { store, run, folder } = await sessions(t);
  await store.create({ id: "a" });
  await store.append("a", [user("x")]);
  assert.match(
    (await run(["stats"])).out,
    /Total sessions: 1\nTotal messages: 1\n {2}cli: 1\nDatabase size: \d+\.\d MB\n/,
  );
  assert.equal(JSON.parse((await run(["stats", "--json"])).out).by_source.cli, 1);
  assert.match((await run(["optimize"])).out, /MB before, .* MB now/);
  await writeFile(join(folder, "gateway.pid"), JSON.stringify({ pid: process.pid }));
  assert.match((await run(["optimize"])).err, /gateway is running/);
  assert.match((await run(["repair", "--check-only"])).out, /intact/);
});

test("copies made in the same second have names of their own", async (t) => {
  const { store, folder, run } = await sessions(t);
  await store.create({ id: "a" });
  for (let copies = 0; copies < 3; copies += 1) assert.equal((await run(["backup"])).code, 0);
  const names = await readdir(join(folder, "backups"));
  assert.equal(names.length, 3);
  assert.equal(names.filter((name) => /^state-\d{8}-\d{6}-[23]\.db$/.test(name)).length, 2);
});

test("a copy and an export into a folder that is not there are refused alike, and no folder is made", async (t) => {
  const { store, folder, run } = await sessions(t);
  await store.create({ id: "a" });
  const path = join(folder, "missing", "x");
  for (const command of ["backup", "export"]) {
    const { code, err } = await run([command, path]);
    assert.equal(code, 1);
    assert.equal(err, `Cannot write ${path}: the directory ${join(folder, "missing")} does not exist\n`);
  }
  assert.ok(!(await readdir(folder)).includes("missing"));
});

test("browse without a terminal is a numbered list, with one a picker that resumes", async (t) => {
  const { store, run, reruns, clock } = await sessions(t);
  for (const id of ["one", "two", "three"]) {
    clock.ms += 1000;
    await store.create({ id });
    await store.append(id, [user(`about ${id}`)]);
  }
  assert.match((await run(["browse"])).out, / {2}1\. about three \(just now\) three\n/);
  const { out } = await run(["browse"], { keys: ["tw", "\r"] });
  assert.deepEqual(reruns, [["--resume", "two"]]);
  assert.match(out, /❯ about three +just now +three +cli\n/);
  await run(["browse"], { keys: ["\u001b[A", "\r"] });
  assert.deepEqual(reruns.at(-1), ["--resume", "one"]);
  await run(["browse"], { keys: ["x", "\u001b", "q", "\r"] });
  await run(["browse"], { keys: ["x", "\u0003", "\r"] });
  assert.equal(reruns.length, 2);
});

test("browse shows branches below their conversation, whole ids or none, and what was said last", async (t) => {
  const { store, run, clock } = await sessions(t);
  const id = "20260102_030405_abcdef";
  await store.create({ id });
  await store.setTitle(id, "x".repeat(70));
  await store.append(id, [user("first question"), assistant("first\nanswer")]);
  clock.ms += 1000;
  await store.branch(id, "20260102_030406_fedcba", { title: "the other way" });
  const { out } = await run(["browse"], { keys: ["\u001b[B", "q"] });
  const rows = out.split("\n").filter((line) => line.includes("just now"));
  assert.match(rows[0] ?? "", /^❯ x{20,}… {2,}just now {2}20260102_030405_abcdef {2}cli$/);
  assert.match(rows[1] ?? "", /^ {2}└ the other way +just now {2}20260102_030406_fedcba {2}cli$/);
  for (const row of rows) assert.ok(cellWidth(row) <= 80, row);
});
