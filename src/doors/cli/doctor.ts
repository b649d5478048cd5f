// `hermes doctor`: finds what is wrong, says how to fix it, and does the harmless part itself.

import type { Command } from "commander";
import { said } from "../../home/language/words.ts";
import { hermesCommand } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { wrapColumns } from "../terminal-text.ts";
import { type Finding, MARKS } from "./config-check.ts";
import { checkCron } from "./cron-health.ts";
import { checkMemoryProvider, checkPlugins, checkSkills, checkTools } from "./doctor-agent.ts";
import {
  checkConfiguration,
  checkEnvironment,
  checkHome,
  checkKnowledge,
  checkProfiles,
  checkStore,
} from "./doctor-home.ts";
import { checkPrograms, checkProvider, checkSandbox, checkServers } from "./doctor-world.ts";

const SECTIONS: readonly { readonly title: string; run(ctx: CliContext): Promise<readonly Finding[]> }[] = [
  { title: "Environment", run: checkEnvironment },
  { title: "Home", run: checkHome },
  { title: "Configuration", run: checkConfiguration },
  { title: "Model", run: checkProvider },
  { title: "Identity and memory", run: checkKnowledge },
  { title: "Memory provider", run: checkMemoryProvider },
  { title: "Database", run: checkStore },
  { title: "Profiles", run: checkProfiles },
  { title: "Programs", run: checkPrograms },
  { title: "Sandbox", run: checkSandbox },
  { title: "Tools", run: checkTools },
  { title: "Skills", run: checkSkills },
  { title: "MCP servers", run: checkServers },
  { title: "Plugins and hooks", run: checkPlugins },
  { title: "Scheduled jobs", run: checkCron },
];

interface Report {
  readonly title: string;
  readonly findings: readonly Finding[];
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Check configuration, model, database, tools and more. Exits with 1 if something is broken.")
    .option("--fix", "apply safe fixes: folders, permissions, outdated settings, orphaned commands")
    .option("--json", "as JSON")
    .action((options: { json?: true; fix?: true }) => diagnose(ctx, options));
}

async function diagnose(ctx: CliContext, options: { readonly json?: true; readonly fix?: true }): Promise<void> {
  let reports = await examineAll(ctx);
  const fixed = options.fix ? await repair(reports) : [];
  // What was repaired is looked at again, so that the report says how things stand now.
  if (fixed.length > 0) reports = await examineAll(ctx);
  const findings = reports.flatMap((report) => report.findings);
  const count = (level: Finding["level"]) => findings.filter((finding) => finding.level === level).length;
  const broken = count("error");
  if (options.json) {
    const sections = reports.map(({ title, findings: found }) => ({ title, findings: found.map(forJson) }));
    ctx.io.out(`${JSON.stringify({ ok: broken === 0, ...(options.fix ? { fixed } : {}), sections })}\n`);
  } else {
    for (const line of fixed) ctx.io.out(`✓ fixed: ${line}\n`);
    if (fixed.length > 0) ctx.io.out("\n");
    const text = reports.map(section).join("\n\n");
    const shown = ctx.io.stdoutIsTerminal ? wrapColumns(said(text), ctx.io.columns).join("\n") : text;
    ctx.io.out(`${shown}\n\n${closing(findings, count("warn"), options.fix)}`);
  }
  if (broken > 0) throw new ExitError(1, options.json ? "" : `${plural(broken, "problem")} found.`);
}

function examineAll(ctx: CliContext): Promise<Report[]> {
  return Promise.all(
    SECTIONS.map(async ({ title, run }) => ({ title, findings: await examine(title, () => run(ctx)) })),
  );
}

/** A check that throws becomes a finding. */
async function examine(title: string, run: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await run();
  } catch (error) {
    return [{ level: "error", text: `${title} could not be checked: ${messageOf(error)}` }];
  }
}

/** One after the other; one that fails does not hold up the others, and is found again. */
async function repair(reports: readonly Report[]): Promise<string[]> {
  const done: string[] = [];
  for (const finding of reports.flatMap(({ findings }) => findings)) {
    try {
      if (finding.repair) done.push(await finding.repair());
    } catch (error) {
      done.push(`fix failed: ${finding.text}: ${messageOf(error)}`);
    }
  }
  return done;
}

const forJson = ({ level, text, fix }: Finding) => ({ level, text, ...(fix ? { fix } : {}) });

function section({ title, findings }: Report): string {
  const lines = findings.map(({ level, text, fix }) => `  ${MARKS[level]} ${text}${fix ? `\n      → ${fix}` : ""}`);
  return [title, ...lines].join("\n");
}

function closing(findings: readonly Finding[], warnings: number, fixing: true | undefined): string {
  const safe = fixing ? 0 : findings.filter((finding) => finding.repair).length;
  const hint =
    safe > 0 ? `${hermesCommand("doctor --fix")} fixes ${safe === 1 ? "one of these" : `${safe} of these`}.\n` : "";
  if (findings.some(({ level }) => level === "error")) return hint;
  return `${hint}${warnings === 0 ? "No problems found." : `Nothing is broken; ${plural(warnings, "warning")}.`}\n`;
}
