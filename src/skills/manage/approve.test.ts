import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { skillTools } from "../../../test/support/skill-run.ts";
import { type SkillsHome, skillsHome, skillText } from "../../../test/support/skills-place.ts";
import { listPending } from "../pending.ts";
import { ViewMemory } from "../run.ts";
import { approvePending, diffPending, rejectPending } from "./manage.ts";

const ground = (place: SkillsHome) => ({
  place,
  ports: { views: new ViewMemory() },
  run: { origin: "foreground", taskId: "t", sessionId: "s" },
});

test("with write approval on, changes wait; a yes makes them, a no drops them", async () => {
  const place = await skillsHome({ "skills/x/SKILL.md": "D" });
  place.settings = { write_approval: true };
  const { manage } = skillTools(place);
  const text = await readFile(place.at("skills/x/SKILL.md"), "utf8");
  const staged = await manage({ action: "patch", name: "x", old_string: "Do it.", new_string: "Do it\nnow." });
  assert.deepEqual([staged.success, staged.staged], [true, true]);
  assert.match(staged.pending_id, /^[0-9a-f]{8}$/);
  assert.equal(staged.gist, "patch 'x' SKILL.md (+2/-1 lines)");
  assert.equal(await readFile(place.at("skills/x/SKILL.md"), "utf8"), text);
  const made = await manage({ action: "create", name: "y", content: skillText("y", "When") });
  assert.match(made.gist, /^create 'y' — When \(\d+ chars\)$/);

  assert.match((await diffPending(staged.pending_id, ground(place))) ?? "", /^-Do it\.\n\+Do it\n\+now\.$/m);
  assert.equal(await diffPending(made.pending_id, ground(place)), skillText("y", "When"));
  assert.deepEqual(
    (await listPending(place)).map(({ id }) => id),
    [staged.pending_id, made.pending_id],
  );
  await rejectPending(made.pending_id, ground(place));
  const answers = await approvePending("all", ground(place));
  assert.deepEqual(
    answers.map(({ error }) => error),
    [null],
  );
  assert.match(await readFile(place.at("skills/x/SKILL.md"), "utf8"), /Do it\nnow\./);
  assert.deepEqual(await readdir(place.at("pending/skills")), []);
});

test("an invalid change is refused at once, and one that no longer fits stays pending with its error", async () => {
  const place = await skillsHome({ "skills/x/SKILL.md": "D" });
  place.settings = { write_approval: true };
  const { manage } = skillTools(place);
  assert.equal((await manage({ action: "create", name: "X", content: "" })).code, "bad_name");
  const { pending_id } = await manage({ action: "patch", name: "x", old_string: "Do it.", new_string: "Done." });
  await place.write("skills/x/SKILL.md", skillText("x", "D", "", "Something else entirely\n"));
  const [answer] = await approvePending(pending_id, ground(place));
  assert.match(answer?.error ?? "", /Could not find/);
  assert.equal((await listPending(place)).length, 1);
  assert.deepEqual(await approvePending("00000000", ground(place)), []);
  assert.equal(await diffPending("none", ground(place)), null);
});
