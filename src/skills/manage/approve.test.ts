import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { skillTools } from "../../../test/support/skill-run.ts";
import { type SkillsHome, skillsHome, skillText } from "../../../test/support/skills-home.ts";
import type { ApprovalQuestion, Ask } from "../../safety/decision.ts";
import { listPending } from "../pending.ts";
import { ViewMemory } from "../run.ts";
import { approvePending, diffPending, rejectPending } from "./manage.ts";

const ground = (home: SkillsHome) => ({
  context: home,
  ports: { views: new ViewMemory() },
  run: { origin: "foreground", taskId: "t", sessionId: "s" },
});

test("with write approval on, changes wait; a yes makes them, a no drops them", async () => {
  const home = await skillsHome({ "skills/x/SKILL.md": "D" });
  home.settings = { write_approval: true };
  const { manage } = skillTools(home);
  const text = await readFile(home.at("skills/x/SKILL.md"), "utf8");
  const staged = await manage({ action: "patch", name: "x", old_string: "Do it.", new_string: "Do it\nnow." });
  assert.deepEqual([staged.success, staged.staged], [true, true]);
  assert.match(staged.pending_id, /^[0-9a-f]{8}$/);
  assert.equal(staged.gist, "patch 'x' SKILL.md (+2/-1 lines)");
  assert.equal(await readFile(home.at("skills/x/SKILL.md"), "utf8"), text);
  const made = await manage({ action: "create", name: "y", content: skillText("y", "When") });
  assert.match(made.gist, /^create 'y' — When \(\d+ chars\)$/);

  assert.match((await diffPending(staged.pending_id, ground(home))) ?? "", /^-Do it\.\n\+Do it\n\+now\.$/m);
  assert.equal(await diffPending(made.pending_id, ground(home)), skillText("y", "When"));
  assert.deepEqual(
    (await listPending(home)).map(({ id }) => id),
    [staged.pending_id, made.pending_id],
  );
  await rejectPending(made.pending_id, ground(home));
  const answers = await approvePending("all", ground(home));
  assert.deepEqual(
    answers.map(({ error }) => error),
    [null],
  );
  assert.match(await readFile(home.at("skills/x/SKILL.md"), "utf8"), /Do it\nnow\./);
  assert.deepEqual(await readdir(home.at("pending/skills")), []);
});

test("an invalid change is refused at once, and one that no longer fits stays pending with its error", async () => {
  const home = await skillsHome({ "skills/x/SKILL.md": "D" });
  home.settings = { write_approval: true };
  const { manage } = skillTools(home);
  assert.equal((await manage({ action: "create", name: "X", content: "" })).code, "bad_name");
  const { pending_id } = await manage({ action: "patch", name: "x", old_string: "Do it.", new_string: "Done." });
  await home.write("skills/x/SKILL.md", skillText("x", "D", "", "Something else entirely\n"));
  const [answer] = await approvePending(pending_id, ground(home));
  assert.match(answer?.error ?? "", /Could not find/);
  assert.equal((await listPending(home)).length, 1);
  assert.deepEqual(await approvePending("00000000", ground(home)), []);
  assert.equal(await diffPending("none", ground(home)), null);
});

test("after a stranger's text was read a skill is not written without a yes, and the question names the source", async () => {
  const asked: ApprovalQuestion[] = [];
  for (const [answer, expected] of [
    [{ choice: "once" }, "written"],
    [{ choice: "session" }, "written"],
    [{ choice: "deny" }, "denied"],
    [{ choice: "deny", timedOut: true }, "staged"],
  ] as const) {
    const home = await skillsHome({});
    const ask = (async (question: ApprovalQuestion) => {
      asked.push(question);
      return answer;
    }) as unknown as Ask; // skills ask for approvals only
    const { manage } = skillTools(home, { interactive: true, ask, foreignText: () => "MCP server x" });
    const made = await manage({ action: "create", name: "y", content: skillText("y", "When") });
    assert.equal(made.staged ? "staged" : (made.code ?? "written"), expected);
    assert.equal((await listPending(home))[0]?.source, expected === "staged" ? "MCP server x" : undefined);
    if (answer.choice === "session") {
      await manage({ action: "create", name: "z", content: skillText("z", "When") });
      assert.equal(asked.length, 2);
    }
  }
  assert.match(asked[0]?.note ?? "", /MCP server x/);
  assert.match(asked[0]?.command ?? "", /name: y/);
});

test("where nobody can be asked such a skill waits, and an invalid one is not asked about", async () => {
  const home = await skillsHome({});
  const ask = (() => assert.fail("nobody is there")) as unknown as Ask; // never called
  const { manage } = skillTools(home, { interactive: false, ask, foreignText: () => "browser" });
  const staged = await manage({ action: "create", name: "y", content: skillText("y", "When") });
  assert.match(staged.message, /because text from outside \(browser\)/);
  const watched = skillTools(home, { interactive: true, ask, foreignText: () => "browser" });
  assert.equal((await watched.manage({ action: "create", name: "X", content: "" })).code, "bad_name");
});
