// `hermes doctor`: finds what is wrong and says how to mend it.
import type { Command } from "commander";
import { type CliContext, ExitError } from "./context.ts";
import type { Finding } from "./doctor/finding.ts";
import { checkConfiguration, checkEnvironment, checkHome } from "./doctor/installation.ts";
import { checkServers } from "./doctor/mcp.ts";
import { checkPlugins } from "./doctor/plugins.ts";
import { checkPrograms } from "./doctor/programs.ts";
import { checkProvider } from "./doctor/provider.ts";
import { checkStore } from "./doctor/store.ts";

const MARKS = { ok: "✓", warn: "⚠", error: "✗" } as const;

const SECTIONS: readonly { readonly title: string; run(ctx: CliContext): Promise<readonly Finding[]> }[] = [
  { title: "Environment", run: checkEnvironment },
  { title: "Home", run: checkHome },
  { title: "Configuration", run: checkConfiguration },
  { title: "Model", run: checkProvider },
  { title: "Database", run: checkStore },
  { title: "Programs", run: checkPrograms },
  { title: "MCP servers", run: checkServers },
  { title: "Plugins and hooks", run: checkPlugins },
];

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Look at configuration, provider and database, and say what to do. Exit 1 if something is broken.")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) => {
      const reports = await Promise.all(
        SECTIONS.map(async ({ title, run }) => ({ title, findings: await examine(title, () => run(ctx)) })),
      );
      const broken = reports.flatMap((report) => report.findings).filter((finding) => finding.level === "error").length;
      if (options.json) ctx.io.out(`${JSON.stringify({ ok: broken === 0, sections: reports })}\n`);
      else ctx.io.out(`${reports.map(({ title, findings }) => section(title, findings)).join("\n\n")}\n`);
      if (broken > 0)
        throw new ExitError(1, options.json ? "" : `\n${broken} problem${broken === 1 ? "" : "s"} found.`);
    });
}

/** A check that breaks is itself a finding. */
async function examine(title: string, run: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await run();
  } catch (error) {
    return [
      { level: "error", text: `${title} could not be examined: ${error instanceof Error ? error.message : error}` },
    ];
  }
}

function section(title: string, findings: readonly Finding[]): string {
  const lines = findings.map(({ level, text, fix }) => `  ${MARKS[level]} ${text}${fix ? `\n      → ${fix}` : ""}`);
  return [title, ...lines].join("\n");
}
