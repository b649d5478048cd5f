// `hermes hooks`: the user's own programs at events of the agent, and the consent they run by.

import { access, constants } from "node:fs/promises";
import type { Command } from "commander";
import { plural } from "../../kit/formats.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { HOOKS } from "../../plugins/hooks.ts";
import { openShellHooks } from "../../plugins/shared.ts";
import type { ShellHook } from "../../plugins/shell-hooks/run.ts";
import type { HookStanding, ShellHooks } from "../../plugins/shell-hooks/shell-hooks.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { printJson } from "./present.ts";

export function define(command: Command, ctx: CliContext): void {
  command.description("manage shell commands that run on agent events (hooks in config.yaml)");
  command
    .command("list", { isDefault: true })
    .description("list configured hooks and whether they may run")
    .option("--json", "machine-readable")
    .action((flags: { json?: true }) => list(flags, ctx));
  command
    .command("test")
    .description("run the hooks of an event now with sample data and show how their output is interpreted")
    .argument("<event>", "e.g. pre_tool_call")
    .option("--tool <name>", "tool name in the sample data", "terminal")
    .option("--accept-hooks", "also run hooks you have not approved yet")
    .action((event: string, flags: { tool: string; acceptHooks?: true }) => test(event, flags, ctx));
  command
    .command("revoke")
    .description("revoke your approval of a command, for all events")
    .argument("[command]", "the command as written in config.yaml")
    .option("--all", "revoke all approvals")
    .action((wanted: string | undefined, flags: { all?: true }) => revoke(wanted, flags, ctx));
  command
    .command("doctor")
    .description("find hooks that will not run and explain why")
    .action(() => doctor(ctx));
}

async function open(ctx: CliContext): Promise<ShellHooks> {
  return hooksOf(ctx);
}

async function list({ json }: { json?: true }, ctx: CliContext): Promise<void> {
  const hooks = await open(ctx);
  const { hooks: configured, problems } = hooks.configured();
  const rows = await Promise.all(
    configured.map(async (hook) => ({ hook, standing: await hooks.standing(hook, ctx.cwd) })),
  );
  if (json) {
    const data = rows.map(({ hook, standing }) => ({
      ...{
        event: hook.event,
        command: hook.command,
        matcher: hook.matcher?.source ?? null,
        timeout: hook.timeoutSeconds,
      },
      standing: standing.type,
      files: standing.facts.files,
    }));
    return printJson(ctx, { hooks: data, problems });
  }
  if (rows.length === 0 && problems.length === 0) {
    return ctx.io.out(
      "No hooks configured. Define them in config.yaml:\n\nhooks:\n  pre_tool_call:\n    - command: ~/bin/check.sh\n      matcher: terminal\n",
    );
  }
  for (const { hook, standing } of rows) {
    const about = [matcherOf(hook), `${hook.timeoutSeconds} s`].filter((text) => text !== "").join(", ");
    ctx.io.out(
      `${standing.type === "allowed" ? "✓" : "✗"} ${hook.event}  ${hook.command}  (${about}): ${standingText(standing)}\n`,
    );
  }
  for (const problem of problems) ctx.io.err(`⚠ ${problem}\n`);
}

const matcherOf = ({ matcher }: ShellHook) => (matcher === null ? "" : `tools ${matcher.source.slice(4, -2)}`);

async function test(event: string, flags: { tool: string; acceptHooks?: true }, ctx: CliContext): Promise<void> {
  if (!(event in HOOKS)) {
    const near = didYouMean(event, Object.keys(HOOKS));
    const hint =
      near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : ` There are: ${Object.keys(HOOKS).join(", ")}`;
    throw new ExitError(2, `there is no event "${event}".${hint}`);
  }
  const hooks = await open(ctx);
  const wanted = hooks.configured().hooks.filter((hook) => hook.event === event);
  if (wanted.length === 0) throw new ExitError(1, `no hooks configured for ${event}.`);
  const tool = HOOKS[event]?.tool ? { tool_name: flags.tool, args: { command: "echo hello" } } : {};
  const payload = { ...tool, session_id: "hooks-test", cwd: ctx.cwd, test: true };
  let failed = 0;
  for (const hook of wanted) {
    ctx.io.out(`${hook.command}\n`);
    if (hook.matcher && !hook.matcher.test(flags.tool)) {
      ctx.io.out(`  skipped for ${flags.tool}: its matcher is ${matcherOf(hook)}\n`);
      continue;
    }
    if (!(await mayRun(hook, hooks, flags.acceptHooks === true, ctx))) {
      failed++;
      continue;
    }
    const { result, answer } = await hooks.tryOut(hook, payload);
    if (result.type === "failed") ctx.io.out(`  ignored: ${result.reason}\n`);
    else {
      ctx.io.out(`  exit code ${result.code} after ${result.ms} ms\n`);
      if (result.stdout.trim() !== "") ctx.io.out(`  stdout: ${result.stdout.trim()}\n`);
      if (result.stderr.trim() !== "") ctx.io.out(`  stderr: ${result.stderr.trim()}\n`);
    }
    if (answer === null) failed++;
    else ctx.io.out(`  ${answerText(answer)}\n`);
  }
  if (failed > 0) throw new ExitError(1);
}

function answerText(answer: NonNullable<Awaited<ReturnType<ShellHooks["tryOut"]>>["answer"]>): string {
  if (answer.type === "block") return `the call would be blocked: ${answer.message}`;
  if (answer.type === "context") return `added to the message: ${answer.text}`;
  return answer.type === "nothing" ? "no output: nothing changes" : `ignored: ${answer.why}`;
}

async function mayRun(hook: ShellHook, hooks: ShellHooks, accepted: boolean, ctx: CliContext): Promise<boolean> {
  const standing = await hooks.standing(hook, ctx.cwd);
  if (standing.type === "forbidden") {
    ctx.io.out(`  not run: ${standingText(standing)}\n`);
    return false;
  }
  if (standing.type === "allowed" || accepted) return true;
  const typed = await ctx.io.question(`  ${standingText(standing)}. Run it? [o]nce, [a]lways, anything else = no: `);
  const choice = (typed ?? "").trim().toLowerCase().slice(0, 1);
  if (choice === "a") await hooks.consents.approve(hook, standing.facts, ctx.clock.now());
  if (choice === "o" || choice === "a") return true;
  ctx.io.out("  not run: you have not approved it; --accept-hooks runs it anyway\n");
  return false;
}

async function revoke(command: string | undefined, { all }: { all?: true }, ctx: CliContext): Promise<void> {
  if (command === undefined && !all) throw new ExitError(2, "name a command, or use --all.");
  const hooks = await open(ctx);
  const gone = await hooks.consents.revoke((one) => all === true || one.command === command);
  if (gone > 0)
    return ctx.io.out(`Revoked ${gone === 1 ? "1 approval" : `${gone} consents`}. Configured hooks will ask again.\n`);
  if (all) return ctx.io.out("No approval to revoke.\n");
  const known = [...new Set((await hooks.consents.all()).map((one) => one.command))];
  const near = didYouMean(command ?? "", known);
  const hint = near.length > 0 ? ` Did you mean ${near.map((one) => `"${one}"`).join(" or ")}?` : "";
  throw new ExitError(1, `no approval on record for "${command}".${hint}`);
}

async function doctor(ctx: CliContext): Promise<void> {
  const { hooks, trouble } = await findHookTrouble(ctx);
  if (trouble.length === 0)
    return ctx.io.out(`${plural(hooks, "hook")}, ${hooks === 1 ? "" : "all of them "}in order.\n`);
  for (const line of trouble) ctx.io.out(`✗ ${line}\n`);
  throw new ExitError(1);
}

/** Whether a hook may run, in words for its owner. */
function standingText(standing: HookStanding): string {
  if (standing.type === "allowed") {
    const by = { consent: "approved by you", auto: "approved by hooks_auto_accept", session: "approved for this run" };
    return by[standing.by];
  }
  if (standing.type === "unseen") return "not approved yet; the next interactive conversation will ask";
  if (standing.type === "changed") return "changed since you approved it; the next interactive conversation will ask";
  return `refused by the command policy (${standing.reason})`;
}

// What keeps shell hooks from running, one line each.

function hooksOf(ctx: CliContext): ShellHooks {
  return openShellHooks(
    ctx,
    () => undefined,
    () => false,
  );
}

export async function findHookTrouble(ctx: CliContext): Promise<{ hooks: number; trouble: readonly string[] }> {
  const hooks = hooksOf(ctx);
  const { hooks: configured, problems } = hooks.configured();
  const trouble = [...problems];
  for (const hook of configured) {
    const standing = await hooks.standing(hook, ctx.cwd);
    const found = [
      standing.type === "allowed" ? null : standingText(standing),
      await programTrouble(hook, standing.facts.files[0], ctx),
    ];
    trouble.push(...found.flatMap((what) => (what === null ? [] : [`${hook.event}: ${hook.command}: ${what}`])));
  }
  const known = new Set(configured.map(({ event, command }) => `${event}\n${command}`));
  for (const { event, command } of await hooks.consents.all())
    if (!known.has(`${event}\n${command}`))
      trouble.push(
        `${event}: ${command}: approved, but no longer configured; to revoke: hermes hooks revoke "${command}"`,
      );
  return { hooks: configured.length, trouble };
}

/** `script` is the first file of the user's that the command names. */
async function programTrouble(
  hook: ShellHook,
  script: string | undefined,
  { home }: CliContext,
): Promise<string | null> {
  const [program = ""] = hook.argv;
  if (!program.includes("/")) return null;
  if (script === undefined)
    return (await can(program.replace(/^~(?=\/)/, home.osHome), constants.F_OK)) ? null : `${program} does not exist`;
  if (!script.endsWith(program.replace(/^~/, "")) || (await can(script, constants.X_OK))) return null;
  return `${home.display(script)} is not executable; run chmod +x on it`;
}

async function can(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false, // that is the answer
  );
}
