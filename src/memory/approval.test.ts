import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { memoryHome, memoryRun } from "../../test/support/memory.ts";
import type { ApprovalQuestion, Ask } from "../safety/decision.ts";
import type { MemoryRun } from "./approval.ts";

const gated = { memory: { write_approval: true } };

/** Answers every question the same way and remembers what was asked. */
function answering(answer: object | Error) {
  const asked: ApprovalQuestion[] = [];
  const ask = (async (question: ApprovalQuestion) => {
    asked.push(question);
    if (answer instanceof Error) throw answer;
    return answer;
  }) as unknown as Ask; // the store asks for approvals only
  return { asked, ask };
}

test("a person who can be asked decides on the spot", async (t) => {
  for (const [answer, expected] of [
    [{ choice: "once" }, "written"],
    [{ choice: "session" }, "written"],
    [{ choice: "deny" }, "denied"],
    [{ choice: "deny", timedOut: true }, "staged"],
    [{ choice: "who knows" }, "staged"],
    [new Error("no line to the user"), "staged"],
  ] as const) {
    const box = await memoryHome(t, gated);
    const { ask, asked } = answering(answer);
    const result = await box.memory.apply(
      { action: "add", content: "the whole\ntext" },
      memoryRun({ interactive: true, ask }),
    );
    const outcome = "staged" in result ? "staged" : "code" in result ? result.code : "written";
    assert.equal(outcome, expected, String(answer));
    assert.equal(asked.length, 1);
    assert.match(asked[0]?.command ?? "", /the whole\ntext/);
    assert.equal(asked[0]?.allowAlways, false);
    assert.equal((await box.memory.pending()).length, expected === "staged" ? 1 : 0);
    assert.equal((await box.memory.history()).length, expected === "written" ? 1 : 0);
  }
});

test("nobody is asked about a change of free text that somebody else put into the file", async (t) => {
  const box = await memoryHome(t, { ...gated, files: { "MEMORY.md": "x".repeat(3000) } });
  const { ask, asked } = answering({ choice: "once" });
  const result = await box.memory.apply({ action: "remove", old_text: "xx" }, memoryRun({ interactive: true, ask }));
  assert.equal("code" in result && result.code, "drift");
  assert.deepEqual([asked.length, (await box.memory.pending()).length], [0, 0]);
});

test("an answer for the session is not asked for again in it", async (t) => {
  const box = await memoryHome(t, gated);
  const { ask, asked } = answering({ choice: "session" });
  const add = (content: string, sessionId: string) =>
    box.memory.apply({ action: "add", content }, memoryRun({ interactive: true, ask, sessionId }));
  await add("one", "s1");
  await add("two", "s1");
  assert.equal(asked.length, 1);
  await add("three", "s2");
  assert.equal(asked.length, 2);
});

test("where nobody can be asked a write waits; letting it through carries it out", async (t) => {
  const runs: readonly Partial<MemoryRun>[] = [
    { interactive: false },
    { interactive: true, origin: "background_review" },
  ];
  for (const run of runs) {
    const box = await memoryHome(t, gated);
    const { ask, asked } = answering({ choice: "once" });
    const result = await box.memory.apply(
      { target: "user", operations: [{ action: "add", content: "Ada" }] },
      memoryRun({ ask, ...run }),
    );
    assert.ok("staged" in result && result.success);
    assert.match(result.pending_id, /^[0-9a-f]{8}$/);
    assert.equal(asked.length, 0);
    const [waiting] = await box.memory.pending();
    assert.ok(waiting);
    assert.equal(waiting.id, result.pending_id);
    const stored = JSON.parse(await readFile(box.home.at("pending", "memory", `${waiting.id}.json`), "utf8"));
    assert.deepEqual(
      { ...stored, created_at: 0 },
      {
        ...{ id: waiting.id, subsystem: "memory", action: "batch", summary: 'user: add "Ada"' },
        ...{ origin: run.origin ?? "foreground", created_at: 0 },
        payload: { target: "user", operations: [{ action: "add", content: "Ada" }] },
      },
    );
    assert.equal((await box.memory.approve(waiting)).success, true);
    assert.equal(await readFile(box.at("USER.md"), "utf8"), "Ada");
    assert.equal((await box.memory.history())[0]?.origin, "approval");
    assert.deepEqual(await box.memory.pending(), []);
  }
});

test("a waiting write that no longer works stays; a rejected one is gone", async (t) => {
  const box = await memoryHome(t, { ...gated, files: { "MEMORY.md": "one" } });
  await box.memory.apply({ action: "remove", old_text: "one" }, memoryRun());
  await writeFile(box.at("MEMORY.md"), "other");
  const [waiting] = await box.memory.pending();
  assert.ok(waiting);
  const result = await box.memory.approve(waiting);
  assert.equal("code" in result && result.code, "no_match");
  assert.equal((await box.memory.pending()).length, 1);
  await box.memory.reject(waiting);
  assert.deepEqual(await box.memory.pending(), []);
});

test("a write that cannot work, or changes nothing, is answered at once", async (t) => {
  const box = await memoryHome(t, { ...gated, files: { "MEMORY.md": "one" } });
  const { ask, asked } = answering({ choice: "once" });
  const run = memoryRun({ interactive: true, ask });
  const codeOf = (result: object) => ("code" in result ? result.code : "message" in result ? result.message : "");
  assert.equal(codeOf(await box.memory.apply({ action: "remove", old_text: "nix" }, run)), "no_match");
  assert.equal(codeOf(await box.memory.apply({ action: "add", content: "~/.ssh" }, run)), "threat");
  assert.match(String(codeOf(await box.memory.apply({ action: "add", content: "one" }, run))), /already exists/);
  assert.equal(asked.length, 0);
  assert.deepEqual(await box.memory.pending(), []);
});

test("a write that cannot even be kept is reported", async (t) => {
  const box = await memoryHome(t, gated);
  await writeFile(box.home.at("pending"), "a file where the folder should be");
  const result = await box.memory.apply({ action: "add", content: "one" }, memoryRun());
  assert.equal("code" in result && result.code, "write_failed");
});

test("other files beside waiting writes are left out", async (t) => {
  const box = await memoryHome(t, gated);
  await box.memory.apply({ action: "add", content: "one" }, memoryRun());
  await box.home.write("pending/memory/deadbeef.json", "{");
  await box.home.write("pending/memory/notes.json", "{}");
  assert.equal((await box.memory.pending()).length, 1);
  assert.equal((await readdir(box.home.at("pending", "memory"))).length, 3);
});

test("after a stranger's text was read a write is asked about though approval is off, and the question names the source", async (t) => {
  const box = await memoryHome(t, {});
  const { ask, asked } = answering({ choice: "session" });
  let source: string | null = null;
  const add = (content: string, run: Partial<MemoryRun> = {}) =>
    box.memory.apply(
      { action: "add", content },
      memoryRun({ interactive: true, ask, foreignText: () => source, ...run }),
    );
  await add("before");
  assert.equal(asked.length, 0);
  source = "web_extract a.example";
  await add("after");
  await add("and again");
  assert.equal(asked.length, 1);
  assert.match(asked[0]?.note ?? "", /web_extract a\.example/);
  assert.equal((await box.memory.history()).length, 3);
  const waits = await add("unattended", { interactive: false, sessionId: "other" });
  assert.match("message" in waits ? String(waits.message) : "", /because text from outside \(web_extract a\.example\)/);
  const [pending] = await box.memory.pending();
  assert.equal(pending?.source, "web_extract a.example");
});

test("a yes for the session from before a stranger's text was read does not count behind it", async (t) => {
  const box = await memoryHome(t, gated);
  const { ask, asked } = answering({ choice: "session" });
  const add = (content: string, foreign: string | null) =>
    box.memory.apply({ action: "add", content }, memoryRun({ interactive: true, ask, foreignText: () => foreign }));
  await add("one", null);
  await add("two", "browser");
  assert.equal(asked.length, 2);
});
