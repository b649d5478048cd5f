// Decisions about whole scripts, by who is there. What they do while they run is judged effect by effect.
import assert from "node:assert/strict";
import { test } from "node:test";
import { guardRig } from "../../test/support/guard-rig.ts";
import type { Config } from "../home/config/schema.ts";
import { type ApprovalChoice, clearedText } from "./decision.ts";
import { CODE_RUNNER } from "./guard.ts";

const { signal } = new AbortController();
const KEY = "script execution via execute_code";

function rig(
  over: Parameters<typeof guardRig>[0],
  settings: (config: Config) => void,
  choice: ApprovalChoice = "deny",
) {
  const { guard, asked, answer } = guardRig(over, settings);
  answer({ choice });
  return { asked, decide: (code: string) => guard.decideCode(code, signal) };
}

const cron = { origin: "cron", interactive: false };
const cases: readonly [
  what: string,
  over: Parameters<typeof guardRig>[0],
  settings: (config: Config) => void,
  code: string,
  approved: boolean,
][] = [
  ["at the terminal", {}, () => undefined, "print(1)", true],
  ["in an unattended run", { interactive: false }, () => undefined, "print(1)", true],
  ["of a sub-agent", { interactive: false, origin: "subagent" }, () => undefined, "print(1)", true],
  ["of a scheduled run", cron, () => undefined, "print(1)", false],
  [
    "of a scheduled run that may",
    cron,
    (c) => void Object.assign(c.approvals, { cron_mode: "approve" }),
    "print(1)",
    true,
  ],
  [
    "of a scheduled run that is allowed scripts",
    cron,
    (c) => void Object.assign(c, { command_allowlist: [KEY] }),
    "1",
    true,
  ],
  ["of a scheduled run in a container", { ...cron, isolated: () => true }, () => undefined, "print(1)", true],
  ["from a chat where nobody answers", { remote: true, interactive: false }, () => undefined, "print(1)", false],
  ["from a chat with yolo", { remote: true, yolo: true }, () => undefined, "print(1)", true],
];
for (const [what, over, settings, code, approved] of cases) {
  test(`a script ${what} is ${approved ? "run" : "refused"}`, async () => {
    const { decide, asked } = rig(over, settings);
    const outcome = await decide(code);
    assert.equal(outcome.approved, approved, outcome.message);
    assert.equal(asked.length, 0);
    if (outcome.approved) assert.equal(clearedText(outcome.cleared), CODE_RUNNER);
  });
}

test("from a chat each script is shown first; a yes for the session holds", async () => {
  const once = rig({ remote: true }, () => undefined, "once");
  for (const code of ["print(1)", "print(2)"]) {
    const outcome = await once.decide(code);
    assert.ok(outcome.approved && clearedText(outcome.cleared) === CODE_RUNNER);
  }
  assert.deepEqual(
    once.asked.map(({ command, patternKey }) => [command, patternKey]),
    [
      ["print(1)", KEY],
      ["print(2)", KEY],
    ],
  );
  const session = rig({ remote: true }, () => undefined, "session");
  await session.decide("print(1)");
  await session.decide("print(2)");
  assert.equal(session.asked.length, 1);
  assert.equal((await rig({ remote: true }, () => undefined).decide("print(1)")).approved, false);
});
