// `hermes kanban` as it is typed.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { runHermes } from "../support/run-hermes.ts";
import { tempHome } from "../support/temp-home.ts";

test("cards are created, depend on each other, are worked on, put aside and done, on any board", async () => {
  await using home = await tempHome({ "config.yaml": "{}\n" });
  const type = async (...words: string[]) => runHermes(["kanban", ...words], { home });
  const ok = async (...words: string[]) => {
    const { code, stdout, stderr } = await type(...words);
    assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
    return stdout;
  };
  const first = JSON.parse(await ok("create", "Build", "it", "--assignee", "default", "--json"));
  assert.deepEqual([first.title, first.status, first.skills], ["Build it", "ready", null]);
  const [, second = ""] = /✓ (t_[0-9a-f]{8}) todo/.exec(await ok("create", "Paint it", "--parent", first.id)) ?? [];
  assert.match(await ok(), new RegExp(`${first.id} {2}ready[\\s\\S]*${second} {2}todo`));
  assert.match(await ok("claim", first.id), /is yours, as run 1/);
  assert.match((await type("reassign", first.id, "none")).stderr, /being worked on.*--reclaim/);
  assert.match(await ok("reassign", first.id, "none", "--reclaim"), /is assigned to nobody/);
  await ok("claim", first.id);
  const refused = await type("complete", second, first.id, "--result", "key sk-proj-abcdefghijklmnopqrstuvwxyz012345");
  assert.deepEqual([refused.code, refused.stdout], [1, `✓ ${first.id} is done\n`]);
  assert.match(refused.stderr, new RegExp(`✗ ${second}: it is todo`));
  const shown = JSON.parse(await ok("show", first.id, "--json"));
  assert.deepEqual([shown.children, shown.runs.length, shown.runs[0].outcome], [[second], 2, "reclaimed"]);
  assert.doesNotMatch(JSON.stringify(shown), /abcdefghijklmnop/);
  assert.match(await ok("block", second, "which", "colour?", "--kind", "needs_input"), /put aside/);
  assert.match(await ok("show", second), /blocked \(needs_input\)[\s\S]*which colour\?/);
  assert.match(await ok("promote", second, "--dry-run"), /would be ready/);
  assert.match(await ok("list", "--status", "blocked"), new RegExp(second));
  await ok("unblock", second);
  assert.match((await type("link", second, second)).stderr, /cannot depend on itself/);
  const stranger = await type("create", "x", "--assignee", "nobody-here");
  assert.deepEqual([stranger.code, /there is no profile "nobody-here".*--lane/.test(stranger.stderr)], [1, true]);
  await ok("boards", "create", "side-work", "--switch");
  assert.match(await ok(), /No cards/);
  assert.match(await ok("--board", "default", "stats"), /done +1/);
  const db = new DatabaseSync(home.at("kanban.db"), { readOnly: true, timeout: 10_000 });
  assert.equal(db.prepare("SELECT COUNT(*) AS cards FROM tasks").get()?.cards, 2);
  db.close();
  await writeFile(home.at("kanban.db"), "this is no database, and it is long enough to be looked at as one".repeat(20));
  const damaged = await type("--board", "default", "list");
  assert.deepEqual([damaged.code, /is damaged; nothing was changed, and a copy/.test(damaged.stderr)], [1, true]);
});
