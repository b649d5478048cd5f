import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { hasBuild, hermesCommand, installRoot, runsFromSource, VERSION, versionLine } from "../../home/paths.ts";
import type { CliContext } from "../cli-context.ts";

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Show version, runtime and install path.")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) => {
      const update = await known(ctx);
      const facts = {
        version: VERSION,
        program: runsFromSource() ? "source" : "build",
        node: process.versions.node,
        sqlite: process.versions.sqlite ?? null,
        platform: `${process.platform} ${process.arch}`,
        installed: installRoot(),
        home: ctx.home.paths.dir,
        profile: ctx.home.paths.profile,
        update,
      };
      if (options.json) return ctx.io.out(`${JSON.stringify(facts)}\n`);
      const rows = [
        versionLine(),
        `Installed: ${facts.installed}`,
        `Runs: ${whatRuns(ctx)}`,
        `Node: ${facts.node} (${facts.platform})`,
        `SQLite: ${facts.sqlite ?? "not available"}`,
        `Home: ${facts.home} (profile ${facts.profile})`,
        `Update: ${update ?? "not checked yet (hermes update --check)"}`,
      ];
      ctx.io.out(`${rows.join("\n")}\n`);
    });
}

async function known({ home }: CliContext): Promise<string | null> {
  const { knownUpdate } = await import("../update-check.ts");
  const found = await knownUpdate(home);
  if (found === null) return null;
  const looked = `checked on ${new Date(found.checkedAt).toISOString().slice(0, 10)}`;
  return found.available === null
    ? `up to date (${looked})`
    : `${found.available} available (${looked}); install it with: ${hermesCommand("update")}`;
}

function whatRuns({ home }: CliContext): string {
  if (!runsFromSource()) return `the build in ${relative(installRoot(), dirname(fileURLToPath(import.meta.url)))}/`;
  const stale = hasBuild() && home.override("HERMES_FROM_SOURCE") !== "1";
  return `the source in src/${stale ? "; the build in dist/ is older (npm run build updates it)" : ""}`;
}
