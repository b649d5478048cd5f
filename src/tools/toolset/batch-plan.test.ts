import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { realPathsOf } from "../../agent/tool-runner.ts";
import { pathsOfBatch, planToolBatch, type Segment } from "./batch-plan.ts";

const call = (name: string, args: unknown = {}) => ({
  name,
  arguments: typeof args === "string" ? args : JSON.stringify(args),
});
const read = (path: string) => call("read_file", { path });
const write = (path: string) => call("write_file", { path, content: "x" });
const quiet = { isReadOnlyCommand: (command: string) => /^(ls|sleep)/.test(command), home: "/home/me" };

const cases: readonly [name: string, calls: ReturnType<typeof call>[], plan: Segment[]][] = [
  ["nothing", [], []],
  ["one call", [read("a")], [["sequential", [0]]]],
  ["two reads", [read("a"), read("b")], [["parallel", [0, 1]]]],
  ["two reads of one file", [read("a"), read("a")], [["parallel", [0, 1]]]],
  ["clarify anywhere", [read("a"), call("clarify", { question: "?" }), read("b")], [["sequential", [0, 1, 2]]]],
  ["read after write of one file", [write("a"), read("a")], [["sequential", [0, 1]]]],
  ["writes of two files", [write("a"), write("b")], [["parallel", [0, 1]]]],
  [
    "a search in a folder written to",
    [write("/project/src/a"), call("search_files", { pattern: "x", path: "src" })],
    [["sequential", [0, 1]]],
  ],
  [
    "a search without a path is a search of everything here",
    [write("/project/a"), call("search_files", { pattern: "x" })],
    [["sequential", [0, 1]]],
  ],
  ["names that only begin alike", [write("/project/ab"), read("/project/a")], [["parallel", [0, 1]]]],
  ["dots and tildes", [write("~/x/../a"), read("/home/me/a")], [["sequential", [0, 1]]]],
  [
    "runs between barriers",
    [read("a"), read("b"), call("memory", { action: "add" }), read("c"), read("d")],
    [
      ["parallel", [0, 1]],
      ["sequential", [2]],
      ["parallel", [3, 4]],
    ],
  ],
  ["lone calls around a barrier merge", [read("a"), call("todo"), read("b")], [["sequential", [0, 1, 2]]]],
  [
    "a conflict starts a new run",
    [read("a"), read("b"), write("a"), write("c")],
    [
      ["parallel", [0, 1]],
      ["parallel", [2, 3]],
    ],
  ],
  ["broken arguments are a barrier", [read("a"), call("read_file", "{oops"), read("b")], [["sequential", [0, 1, 2]]]],
  ["no path is a barrier", [read("a"), call("read_file", {})], [["sequential", [0, 1]]]],
  [
    "children run together, apart from the rest",
    [call("web_search"), call("delegate_task"), call("delegate_task"), call("web_search")],
    [
      ["sequential", [0]],
      ["parallel", [1, 2]],
      ["sequential", [3]],
    ],
  ],
  [
    "quiet commands",
    [call("terminal", { command: "sleep 1" }), call("terminal", { command: "sleep 1" })],
    [["parallel", [0, 1]]],
  ],
  [
    "a command in the background is not quiet",
    [call("terminal", { command: "ls", background: true }), call("terminal", { command: "ls" })],
    [["sequential", [0, 1]]],
  ],
  [
    "commands that change something",
    [call("terminal", { command: "make" }), call("terminal", { command: "ls" })],
    [["sequential", [0, 1]]],
  ],
  [
    "every file of a V4A patch",
    [
      call("patch", {
        mode: "patch",
        path: "ignored",
        patch: "*** Begin Patch\n*** Update File: a\n@@\n*** Move File: b -> c\n*** End Patch",
      }),
      read("c"),
      read("ignored"),
    ],
    [
      ["sequential", [0]],
      ["parallel", [1, 2]],
    ],
  ],
  [
    "the new name that a V4A patch gives a file",
    [
      call("patch", { patch: "*** Begin Patch\n  *** Update File: a\n*** Move to: b/c\n@@\n-x\n+y\n*** End Patch" }),
      read("b/c"),
      read("a"),
    ],
    [
      ["sequential", [0]],
      ["parallel", [1, 2]],
    ],
  ],
  [
    "a replacing patch reserves its path",
    [call("patch", { mode: "replace", path: "a", old_string: "x" }), read("b")],
    [["parallel", [0, 1]]],
  ],
];

for (const [name, calls, plan] of cases) {
  test(`planToolBatch: ${name}`, () => assert.deepEqual(planToolBatch(calls, "/project", quiet), plan));
}

test("two names of one file are one file once links are followed", async (t) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "hermes-plan-")));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "real"));
  await symlink(join(folder, "real"), join(folder, "link"));
  const calls = [write("real/new.txt"), read("link/new.txt")];
  const real = await realPathsOf(pathsOfBatch(calls, folder));
  assert.deepEqual(planToolBatch(calls, folder), [["parallel", [0, 1]]]);
  assert.deepEqual(planToolBatch(calls, folder, { realPath: (path) => real.get(path) ?? path }), [
    ["sequential", [0, 1]],
  ]);
});

test("a plan names every call once, in order inside its segment, and no writer shares a run with its file", () => {
  const anyCall = fc.oneof(
    fc.constantFrom("a", "b", "a/c").map(read),
    fc.constantFrom("a", "b", "a/c").map(write),
    fc.constantFrom(call("memory"), call("web_search"), call("delegate_task"), call("terminal", { command: "ls" })),
  );
  fc.assert(
    fc.property(fc.array(anyCall, { maxLength: 10 }), (calls) => {
      const plan = planToolBatch(calls, "/project", quiet);
      assert.deepEqual(
        plan.flatMap(([, indexes]) => indexes),
        calls.map((_, index) => index),
      );
      for (const [kind, indexes] of plan) {
        if (kind !== "parallel") continue;
        const paths = indexes.flatMap((index) => {
          const { name, arguments: args } = calls[index] as ReturnType<typeof call>;
          return name.endsWith("_file") ? [{ path: String(JSON.parse(args).path), writes: name === "write_file" }] : [];
        });
        for (const one of paths)
          for (const other of paths)
            if (one !== other && one.writes) assert.ok(!`${other.path}/`.startsWith(`${one.path}/`));
      }
    }),
  );
});
