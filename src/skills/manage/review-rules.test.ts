import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { skillTools } from "../../../test/support/skill-run.ts";
import { skillsHome, skillText } from "../../../test/support/skills-home.ts";
import { readUsage } from "../usage.ts";

const patch = { action: "patch", old_string: "Do it.", new_string: "Do it now." };
const ours = (extra: Record<string, unknown> = {}) => ({ created_by: "agent", ...extra });

async function world(usage: string | Record<string, unknown> = {}) {
  const home = await skillsHome({
    "skills/mine/SKILL.md": "User's own",
    "skills/made/SKILL.md": "Agent's",
    "skills/made/references/a.md": "text\n",
    "skills/heir/SKILL.md": "Heir",
    "skills/shipped/SKILL.md": "Bundled",
    "skills/fetched/SKILL.md": "Hub",
    "skills/plan/SKILL.md": "Protected",
    "ext/outside/SKILL.md": "External",
    "skills/.bundled_manifest": "shipped:abc\n",
    "skills/.hub/lock.json":
      '{"version":1,"installed":{"fetched":{"install_path":"fetched","trust_level":"community"}}}\n',
    "skills/.usage.json": typeof usage === "string" ? usage : JSON.stringify(usage),
  });
  home.settings = { external_dirs: ["ext"] };
  return home;
}
const all = ["mine", "made", "heir", "shipped", "fetched", "plan", "outside"];

for (const origin of ["background_review", "curator"] as const) {
  test(`${origin} changes only what the agent made, and the user's own is named as such`, async () => {
    const home = await world(Object.fromEntries(all.filter((name) => name !== "mine").map((name) => [name, ours()])));
    const { manage, view } = skillTools(home, { origin });
    const outcome: Record<string, unknown> = {};
    for (const name of all) {
      await view({ name });
      outcome[name] = (await manage({ ...patch, name })).code ?? "done";
    }
    const no = "protected";
    assert.deepEqual(outcome, {
      mine: no,
      made: "done",
      heir: "done",
      shipped: no,
      fetched: no,
      plan: no,
      outside: no,
    });
    assert.match(
      (await manage({ ...patch, name: "mine" })).error,
      /'mine' is the user's own; a review does not change/,
    );
  });
}

test("the agent its user talks to may change all of them", async () => {
  const { manage } = skillTools(await world());
  for (const name of all) assert.equal((await manage({ ...patch, name })).success, true, name);
});

test("a review must have read the very file it changes, in the same run", async () => {
  const home = await world({ made: ours() });
  const review = skillTools(home, { origin: "background_review", taskId: "run-1" });
  const file = { name: "made", file_path: "references/a.md" };
  assert.equal((await review.manage({ ...patch, name: "made" })).code, "not_read");
  await review.view({ name: "made" });
  assert.equal(
    (await review.manage({ ...file, action: "patch", old_string: "text", new_string: "other" })).code,
    "not_read",
  );
  assert.equal((await review.manage({ ...file, action: "write_file", file_content: "x" })).code, "not_read");
  assert.equal((await review.manage({ ...file, action: "remove_file" })).code, "not_read");
  await review.view(file);
  assert.equal(
    (await review.manage({ ...file, action: "patch", old_string: "text", new_string: "other" })).success,
    true,
  );
  const fresh = { action: "write_file", name: "made", file_path: "references/new.md", file_content: "x" };
  assert.equal((await review.manage(fresh)).success, true);
});

test("a review never touches a pinned skill, and deletes only what another one absorbed", async () => {
  const home = await world({ made: ours(), heir: ours({ pinned: true }) });
  const { manage, view } = skillTools(home, { origin: "background_review" });
  await view({ name: "heir" });
  assert.equal((await manage({ ...patch, name: "heir" })).code, "pinned");
  assert.equal((await manage({ action: "delete", name: "made" })).code, "protected");
  assert.equal((await manage({ action: "delete", name: "made", absorbed_into: "nobody" })).code, "bad_argument");
  assert.equal((await manage({ action: "delete", name: "made", absorbed_into: "heir" })).success, true);
});

test("without readable telemetry a review changes nothing", async () => {
  const { manage } = skillTools(await world("{broken"), { origin: "background_review" });
  assert.match((await manage({ ...patch, name: "made" })).error, /usage file/);
});

test("what a review creates is the agent's own", async () => {
  const home = await world();
  const { manage } = skillTools(home, { origin: "background_review" });
  await manage({ action: "create", name: "fresh", content: skillText("fresh", "F") });
  assert.equal((await readUsage(home))?.get("fresh")?.created_by, "agent");
  const stored = await readFile(home.at("skills/.usage.json"), "utf8");
  assert.deepEqual(Object.keys(JSON.parse(stored).fresh), [...Object.keys(JSON.parse(stored).fresh)].sort());
});
