import assert from "node:assert/strict";
import { test } from "node:test";
import { withFileLocks } from "./access.ts";

test("runs on one file come one after the other, others beside them", async () => {
  const events: string[] = [];
  const run = (name: string, ...paths: string[]) =>
    withFileLocks(paths, async () => {
      events.push(`${name} starts`);
      await Promise.resolve();
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`${name} ends`);
    });
  await Promise.all([run("1", "/a"), run("2", "/a"), run("3", "/b")]);
  assert.ok(events.indexOf("1 ends") < events.indexOf("2 starts"));
  assert.ok(events.indexOf("3 starts") < events.indexOf("1 ends"));
});

test("runs on several files in any order never wait for each other for ever", { timeout: 5000 }, async () => {
  let count = 0;
  const run = (...paths: string[]) => withFileLocks(paths, async () => void count++);
  await Promise.all([run("/a", "/b"), run("/b", "/a"), run("/b"), run("/a", "/a"), run("/a", "/b", "/c"), run()]);
  assert.equal(count, 6);
});

test("a run that fails lets the next one in", async () => {
  const failing = withFileLocks(["/x"], () => Promise.reject(new Error("broken")));
  const next = withFileLocks(["/x"], async () => "ok");
  await assert.rejects(failing, /broken/);
  assert.equal(await next, "ok");
});
