// hermes config show: what is set, for people and for programs.

import { isDeepStrictEqual } from "node:util";
import { type Finding, isMapping, normalise } from "../../home/config/decode.ts";
import { eachField, isNotUsed, isSection, type Shape } from "../../home/config/field.ts";
import { versionOf } from "../../home/config/migrate.ts";
import { CONFIG_VERSION, configSchema, type defaultConfig } from "../../home/config/schema.ts";
import { allKeys } from "../../home/config/set-key.ts";
import { child } from "../../home/config/store.ts";
import { knownVariables, type VariableGroup } from "../../home/known-variables.ts";
import { maskTree, maskValue } from "../../home/secrets.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { backendProblem } from "../../sandbox/open.ts";
import { skillsContext } from "../../skills/open.ts";
import { type CliContext, ExitError } from "./context.ts";

export function showConfigJson({ home }: CliContext): string {
  const keys = Object.fromEntries(
    knownVariables.filter(({ secret }) => secret).map(({ name }) => [name, maskedOrNull(home.env(name))]),
  );
  const result = {
    home: home.paths.dir,
    profile: home.paths.profile,
    config_path: home.paths.configFile,
    env_path: home.paths.envFile,
    broken: home.configProblem,
    keys,
    config: maskTree(home.config()),
  };
  return `${JSON.stringify(result, null, 2)}\n`;
}

export async function showConfig(ctx: CliContext): Promise<string> {
  const { home } = ctx;
  const config = home.config();
  const { terminal, display, compression } = config;
  const problem = backendProblem(home);
  const blocks = [
    block("Paths", [
      ["Config", home.display(home.paths.configFile) + (home.configBroken ? "  (broken; defaults are in force)" : "")],
      ["Secrets", home.display(home.paths.envFile)],
      ["Home", home.display(home.paths.dir)],
      ...(home.managed ? [["Managed by", home.managed.manager] as const] : []),
    ]),
    block("Model keys", keyRows(home, "model")),
    block("Tool keys", keyRows(home, "tool")),
    block("Model", [
      ["Model", config.model.default || "(not set)"],
      ["Provider", config.model.provider || "auto"],
      ...(config.model.base_url ? [["Address", config.model.base_url] as const] : []),
      ["Max turns", String(config.agent.max_turns)],
    ]),
    block("Display", [
      ["Streaming", onOff(display.streaming)],
      ["Reasoning", onOff(display.show_reasoning)],
      ["Tool feed", display.tool_progress],
    ]),
    block("Terminal", [
      ["Runs in", problem === null ? terminal.backend : `invalid: ${problem}`],
      ...(terminal.backend === "local" ? [["Sandbox", terminal.sandbox] as const] : []),
      ["Directory", terminal.cwd],
      ["Timeout", `${terminal.timeout} s`],
      ...backendRows(terminal),
    ]),
    block("Time zone", [["Zone", config.timezone || "the machine's"]]),
    block("Compression", [
      ["Enabled", onOff(compression.enabled)],
      ["Threshold", `${Math.round(compression.threshold * 100)} %`],
      ["Keeps last", `${compression.protect_last_n} messages`],
    ]),
    block("Side tasks with a model of their own", auxiliaryRows(config.auxiliary)),
    block("Chats", keyRows(home, "chat")),
    block("Skill settings", await settingRows(ctx)),
  ];
  return blocks.filter((text) => text !== "").join("\n");
}

type Row = readonly [label: string, value: string];

function block(title: string, rows: readonly Row[]): string {
  if (rows.length === 0) return "";
  const width = Math.max(...rows.map(([label]) => label.length)) + 2;
  return `${title}\n${rows.map(([label, value]) => `  ${label.padEnd(width)}${value}\n`).join("")}`;
}

function keyRows(home: CliContext["home"], group: VariableGroup): Row[] {
  return knownVariables.flatMap(({ name, secret, notUsed, ...variable }): Row[] => {
    const value = home.env(name) ?? "";
    if (variable.group !== group || !secret || (notUsed && value === "")) return [];
    return [[name, maskValue(value) + noteOf(notUsed)]];
  });
}

function maskedOrNull(value: string | undefined): string | null {
  return value ? maskValue(value) : null;
}

function backendRows(terminal: ReturnType<typeof defaultConfig>["terminal"]): Row[] {
  if (terminal.backend === "ssh") return [["Host", `${terminal.ssh_user}@${terminal.ssh_host}:${terminal.ssh_port}`]];
  const image = terminal[`${terminal.backend}_image`];
  return typeof image === "string" ? [["Image", image]] : [];
}

/** Only tasks that do not use the main model. */
function auxiliaryRows(auxiliary: ReturnType<typeof defaultConfig>["auxiliary"]): Row[] {
  return Object.entries(configSchema.fields.auxiliary.fields).flatMap(([task, section]): Row[] => {
    const { provider, model } = auxiliary[task as keyof typeof configSchema.fields.auxiliary.fields];
    if (provider === "auto" && model === "") return [];
    return [[task, [provider, model].filter(Boolean).join(" ") + noteOf(isNotUsed(section))]];
  });
}

/** What skills declare, and what is set that none of them declares. */
async function settingRows(ctx: CliContext): Promise<Row[]> {
  const { allSettings } = await import("../../skills/settings.ts");
  const declared = await allSettings(skillsContext(ctx), "cli");
  const sections = new Set(declared.flatMap(({ setting: { key } }) => [key, key.split(".")[0]]));
  const shown = (name: string, value: unknown): Row => [name, JSON.stringify(maskTree(value, name))];
  return [
    ...declared.map(({ setting: { key }, value }) =>
      value === "" ? ([key, "(not set)"] as const) : shown(key, value),
    ),
    ...Object.entries(ctx.home.config().skills.config)
      .filter(([name]) => !sections.has(name))
      .map(([name, value]) => shown(name, value)),
  ];
}

function noteOf(notUsed: boolean | undefined): string {
  return notUsed ? "  (not used yet)" : "";
}

function onOff(value: boolean): string {
  return value ? "on" : "off";
}

// hermes config check: is the file sound, and what is missing?

const groupTitles = { model: "Model keys", tool: "Tool keys", chat: "Chat keys" } as const;

export function checkConfig({ home, io }: CliContext): void {
  const file = home.display(home.paths.configFile);
  const tree = home.configTree();
  const problem = home.configProblem;
  if (tree === null) {
    const place = problem ? ` at line ${problem.line}, column ${problem.column}: ${problem.message}` : "";
    throw new ExitError(1, `✗ ${file} is broken${place}\n  fix it with: hermes config edit`);
  }
  io.out(`${versionLine(tree, file)}\n`);

  const findings = home.configFindings();
  for (const { severity, message } of findings) io.out(`${severity === "error" ? "✗" : "⚠"} ${message}\n`);
  const unknown = unknownKeys(tree, findings);
  for (const line of unknown) io.out(`⚠ ${line}\n`);
  if (findings.length + unknown.length === 0) io.out(`✓ No mistakes in ${file}\n`);
  const idle = [
    ...idleKeys(tree),
    ...knownVariables.flatMap(({ name, notUsed }) => (notUsed && home.env(name) ? name : [])),
  ];
  if (idle.length > 0) io.out(`⚠ Set, but not used yet, so without effect: ${idle.join(", ")}\n`);

  for (const [group, title] of Object.entries(groupTitles)) {
    const known = knownVariables.filter((one) => one.group === group && one.secret && !one.notUsed);
    if (known.length === 0) continue;
    const missing = known.filter(({ name }) => !home.env(name));
    const needed = group === "model" && missing.length === known.length;
    io.out(
      `\n${title}: ${known.length - missing.length} of ${known.length} set${needed ? "; at least one is needed for a model in the cloud" : ""}\n`,
    );
    for (const { name, meaning } of missing) io.out(`  ${name.padEnd(22)} ${meaning}\n`);
  }
  if (findings.some(({ severity }) => severity === "error")) throw new ExitError(1);
}

function versionLine(tree: Readonly<Record<string, unknown>>, file: string): string {
  if (Object.keys(tree).length === 0) return `✓ ${file} is empty or not there; the built-in defaults are used`;
  const version = versionOf(tree);
  if (version === CONFIG_VERSION) return `✓ ${file} is up to date (version ${version})`;
  if (version > CONFIG_VERSION)
    return `✓ ${file} was written by a newer program (version ${version}); it is read and left alone`;
  return `⚠ ${file} has version ${version}, the current one is ${CONFIG_VERSION}; run: hermes config migrate`;
}

/** Names that the schema does not have, at the top and in its sections. They are kept, but nothing reads them. Each is told once. */
function unknownKeys(tree: Readonly<Record<string, unknown>>, findings: readonly Finding[]): string[] {
  const { _config_version, ...settings } = normalise(tree);
  const isTold = (key: string) => findings.some(({ message }) => message.startsWith(`${key}: `));
  const untold = unknownIn(configSchema.fields, settings, "").filter((key) => !isTold(key));
  return untold.map((key) => {
    const near = didYouMean(key, [...Object.keys(configSchema.fields), ...allKeys()]);
    return `${key} is not a setting this program knows.${near.length > 0 ? ` Did you mean ${near.join(", ")}?` : ""}`;
  });
}

/** Changed settings that nothing reads yet. */
function idleKeys(tree: Readonly<Record<string, unknown>>): string[] {
  const settings = normalise(tree);
  return [...eachField(configSchema.fields)].flatMap(({ path, field }) => {
    const value = field.notUsed ? path.split(".").reduce<unknown>(child, settings) : undefined;
    return value === undefined || isDeepStrictEqual(value, field.fallback) ? [] : [path];
  });
}

function unknownIn(shape: Shape, tree: Readonly<Record<string, unknown>>, place: string): string[] {
  return Object.entries(tree).flatMap(([key, value]) => {
    const entry = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (entry === undefined) return [`${place}${key}`];
    return isSection(entry) && isMapping(value) ? unknownIn(entry.fields, value, `${place}${key}.`) : [];
  });
}
