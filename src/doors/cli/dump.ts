// `hermes dump`: what one needs to know about an installation to help with it, as text to paste. Holds no secrets.
import { readFile } from "node:fs/promises";
import { release } from "node:os";
import { isDeepStrictEqual } from "node:util";
import type { Command } from "commander";
import { eachField } from "../../home/config/field.ts";
import { configSchema } from "../../home/config/schema.ts";
import { child } from "../../home/config/store.ts";
import { knownVariables } from "../../home/known-variables.ts";
import { installRoot, runsFromSource, versionLine } from "../../home/paths.ts";
import { runningGateway } from "../../home/profiles.ts";
import { maskTree, maskValue } from "../../home/secrets.ts";
import { plural } from "../../kit/formats.ts";
import { entriesIn, openAuth } from "../../llm/keys/pool.ts";
import { mapping } from "../../llm/providers/settings.ts";
import { parseServers } from "../../mcp/settings.ts";
import { loadCatalogue, unshadowed } from "../../skills/catalogue.ts";
import { skillsContext } from "../../skills/open.ts";
import type { CliContext } from "../cli-context.ts";
import { enabledToolsets } from "./tools.ts";

type Row = readonly [name: string, value: string];

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Print a summary of this installation for bug reports. It contains no secrets.")
    .option("--show-keys", "show the first and last letters of configured keys")
    .action(async (flags: { showKeys?: true }) => {
      const { home } = ctx;
      const { model, terminal } = home.config();
      const keys = knownVariables
        .filter(({ secret, group, name }) => secret && (group !== "chat" || home.env(name)))
        .map(({ name }): Row => {
          const value = home.env(name);
          return [name, value ? (flags.showKeys ? maskValue(value) : "set") : "not set"];
        });
      const blocks = [
        block("", [
          ...environmentRows(),
          ["Profile", home.paths.profile],
          ["Home", home.display(home.paths.dir)],
          ["Model", model.default || "(not set)"],
          ["Provider", model.provider || "auto"],
          ["Terminal", `${terminal.backend}, sandbox ${terminal.sandbox}`],
        ]),
        block("Features", await featureRows(ctx)),
        block("Keys", keys),
        block("Settings that differ from the defaults", changedSettings(ctx)),
      ];
      const text = blocks.filter((one) => one !== "").join("\n\n");
      ctx.io.out(`--- hermes dump ---\n${home.redact(text)}\n--- end dump ---\n`);
    });
}

function block(title: string, rows: readonly Row[]): string {
  if (rows.length === 0) return "";
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  const lines = rows.map(([name, value]) => `${title === "" ? "" : "  "}${name.padEnd(width)}${value}`);
  return [...(title === "" ? [] : [title]), ...lines].join("\n");
}

export function environmentRows(): readonly Row[] {
  return [
    ["Version", `${versionLine()}, ${runsFromSource() ? "source" : "build"}`],
    ["Installed", installRoot()],
    ["System", `${process.platform} ${process.arch} ${release()}`],
    ["Runtime", `Node ${process.versions.node}, SQLite ${process.versions.sqlite ?? "none"}`],
  ];
}

/** What is switched on in this home, in a word or two each. */
export async function featureRows(ctx: CliContext): Promise<readonly Row[]> {
  const { home } = ctx;
  const config = home.config();
  const gateway = await runningGateway(home.paths.dir);
  const chats = knownVariables.filter(({ group, secret, name }) => group === "chat" && secret && home.env(name));
  const platforms = new Set(chats.map(({ meaning }) => meaning.replace(/,.*/, "")));
  const skills = unshadowed(await loadCatalogue(skillsContext(ctx))).length;
  const file = await openAuth(home).catch(() => null); // doctor says what is wrong with it
  const pooled = Object.keys(mapping(file?.credential_pool)).flatMap((id) => entriesIn(file ?? {}, id));
  const logins = pooled.filter((entry) => entry.auth_type === "oauth").length;
  return [
    ["Toolsets", (await enabledToolsets(ctx)).join(", ") || "none"],
    ["MCP servers", String(parseServers(config.mcp_servers).servers.length)],
    ["Memory", config.memory.provider || "built in"],
    ["Skills", String(skills)],
    ["Saved keys", `${plural(pooled.length - logins, "key")}, ${plural(logins, "login")} in auth.json`],
    ["Gateway", gateway === null ? "not running" : `running (pid ${gateway})`],
    ["Platforms", [...platforms].join(", ") || "none"],
    ["Cron jobs", String(await cronJobs(ctx))],
  ];
}

/** Of the original's scheduler too; the file is only counted. */
async function cronJobs({ home }: CliContext): Promise<number> {
  try {
    const { jobs } = mapping(JSON.parse(await readFile(home.paths.at("cron", "jobs.json"), "utf8")));
    return Array.isArray(jobs) ? jobs.length : 0;
  } catch {
    return 0; // none yet, or not to be read
  }
}

function changedSettings({ home }: CliContext): readonly Row[] {
  const config = home.config();
  return [...eachField(configSchema.fields)].flatMap(({ path, field }): Row[] => {
    const value = path.split(".").reduce<unknown>(child, config);
    if (value === undefined || isDeepStrictEqual(value, field.fallback)) return [];
    return [[path, JSON.stringify(maskTree(value, path.split(".").at(-1)))]];
  });
}
