import assert from "node:assert/strict";
import { test } from "node:test";
import { guardRig } from "../../test/support/guard-rig.ts";
import { type ApprovalOutcome, clearedText } from "./decision.ts";
import { freeBackground, readSudoPasswords } from "./rewrite.ts";

const { signal } = new AbortController();
const outside = { reason: "it needs the ssh agent" };
const confined = () => true;

function rig(...given: Parameters<typeof guardRig>) {
  const { guard, ...rest } = guardRig(...given);
  return { ...rest, guard, leave: (command: string) => guard.decide(command, signal, { outside }) };
}

const isOutside = (outcome: ApprovalOutcome) => outcome.approved && outcome.cleared.outside;

test("a command in the sandbox is cleared for the sandbox alone", async () => {
  const { guard, asked } = rig({ confined });
  const outcome = await guard.decide("ls", signal);
  assert.equal(outcome.approved, true);
  assert.equal(isOutside(outcome), false);
  assert.equal(asked.length, 0);
});

test("leaving the sandbox is a question that names the program, its verb and the reason", async () => {
  const { leave, asked, answer } = rig({ confined });
  answer({ choice: "once" });
  const outcome = await leave("git push origin main");
  assert.equal(isOutside(outcome), true);
  assert.equal(asked[0]?.patternKey, "outside sandbox: git push");
  assert.match(asked[0]?.note ?? "", /outside the sandbox.*it needs the ssh agent/);
  assert.equal(asked[0]?.allowAlways, true);
});

const keys: readonly [command: string, key: string, lasts: "once" | "always"][] = [
  ["curl https://example.com", "outside sandbox: curl", "always"],
  ["/usr/bin/ssh host", "outside sandbox: ssh", "always"],
  ["npm install", "outside sandbox: npm install", "always"],
  ["git -C x push", "outside sandbox: git", "always"],
  ["make && make install", "outside sandbox: several commands", "once"],
  ["ls | wc -l", "outside sandbox: several commands", "once"],
  ["echo x > ~/notes", "outside sandbox: a line with shell syntax", "once"],
  ["A=1 make", "outside sandbox: a line with shell syntax", "once"],
  ["$tool x", "command name not on the line + outside sandbox: a line with shell syntax", "once"],
];
for (const [command, key, lasts] of keys) {
  test(`${command} leaves under the key "${key}"`, async () => {
    const { leave, asked, answer } = rig({ confined });
    answer({ choice: "session" });
    await leave(command);
    assert.equal(asked[0]?.patternKey, key);
    assert.equal(asked[0]?.allowAlways, lasts === "always");
    assert.equal(asked[0]?.allowSession, lasts === "once" ? false : undefined);
    await leave(command);
    assert.equal(asked.length, lasts === "once" ? 2 : 1);
  });
}

test("a dangerous command that leaves is one question under both keys, and both are kept", async () => {
  const { leave, asked, answer, saved, guard } = rig({ confined });
  answer({ choice: "always" });
  assert.equal(isOutside(await leave("rm -r build")), true);
  assert.equal(asked[0]?.patternKey, "recursive delete + outside sandbox: rm");
  assert.deepEqual(saved, ["recursive delete", "outside sandbox: rm"]);
  await leave("rm -r dist");
  await guard.decide("rm -r dist", signal);
  assert.equal(asked.length, 1);
});

test("a yes to the danger alone does not open the sandbox", async () => {
  const { leave, asked } = rig({ confined }, (config) => {
    config.command_allowlist = ["recursive delete", "rm *"];
  });
  const outcome = await leave("rm -r build");
  assert.equal(outcome.approved, false);
  assert.equal(asked[0]?.patternKey, "outside sandbox: rm");
});

test("where nobody can be asked the sandbox stays shut; only its key on the allowlist opens it", async () => {
  for (const origin of ["foreground", "cron", "subagent"]) {
    const closed = rig({ confined, interactive: false, origin }, ({ approvals, delegation }) => {
      approvals.cron_mode = "approve";
      delegation.subagent_auto_approve = true;
    });
    const refused = await closed.leave("git push");
    assert.equal(refused.approved, false);
    assert.match(refused.message, /outside sandbox: git push.*add "outside sandbox: git push" to command_allowlist/);
    assert.doesNotMatch(refused.message, /cron_mode|yolo|subagent_auto_approve/);
    const open = rig({ confined, interactive: false, origin }, (config) => {
      config.command_allowlist = ["outside sandbox: git push"];
    });
    assert.equal(isOutside(await open.leave("git push")), true);
  }
});

test("no model says yes to leaving", async () => {
  const { leave, asked } = rig({ confined, smart: async () => "approve" }, ({ approvals }) => {
    approvals.mode = "smart";
  });
  assert.equal((await leave("git push")).approved, false);
  assert.equal(asked.length, 1);
});

test("without a sandbox there is nothing to leave", async () => {
  const { leave, asked } = rig();
  assert.equal(isOutside(await leave("git push")), false);
  assert.equal(asked.length, 0);
});

test("a command keeps its leave through every rewriting", async () => {
  const { leave, answer } = rig({ confined });
  answer({ choice: "once" });
  const outcome = await leave("cd x && sudo make install &");
  assert.ok(outcome.approved);
  const { command } = readSudoPasswords(freeBackground(outcome.cleared));
  assert.equal(command.outside, true);
  assert.match(clearedText(command), /sudo -S/);
});

test("a file outside is asked about by its folder", async () => {
  const { guard, asked, answer, saved } = rig({ confined });
  answer({ choice: "always" });
  assert.equal((await guard.decideOutsideWrite("/home/me/notes/a.md", signal)).approved, true);
  assert.deepEqual(
    [asked[0]?.command, saved],
    ["write /home/me/notes/a.md", ["outside sandbox: write /home/me/notes"]],
  );
  assert.equal((await guard.decideOutsideWrite("/home/me/notes/b.md", signal)).approved, true);
  assert.equal(asked.length, 1);
  const unattended = rig({ confined, interactive: false });
  assert.equal((await unattended.guard.decideOutsideWrite("/home/me/x", signal)).approved, false);
});

test("scripts in the sandbox need no yes, wherever they come from", async () => {
  const { guard, asked } = rig({ confined, origin: "cron", interactive: false });
  assert.equal((await guard.decideCode("print(1)", signal)).approved, true);
  assert.equal(asked.length, 0);
});
