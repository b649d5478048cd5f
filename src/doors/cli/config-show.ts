// hermes config show: what is set, for people and for programs.

import { isNotUsed } from "../../home/config/field.ts";
import { configSchema, type defaultConfig } from "../../home/config/schema.ts";
import { knownVariables, type VariableGroup } from "../../home/known-variables.ts";
import { maskTree, maskValue } from "../../home/secrets.ts";
import { backendProblem } from "../../sandbox/open.ts";
import { skillsContext } from "../../skills/open.ts";
import type { CliContext } from "../cli-context.ts";
import { factLines } from "./present.ts";

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
  const block = blockFor(ctx);
  const blocks = [
    block("Paths", [
      ["Config", home.display(home.paths.configFile) + (home.configBroken ? "  (broken; using defaults)" : "")],
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
      ["Personality", display.personality],
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

const blockFor =
  (ctx: CliContext) =>
  (title: string, rows: readonly Row[]): string => {
    if (rows.length === 0) return "";
    const width = Math.max(...rows.map(([label]) => label.length)) + 2;
    return `${title}\n${factLines(ctx, rows, width)
      .map((line) => `  ${line}\n`)
      .join("")}`;
  };

function keyRows(home: CliContext["home"], group: VariableGroup): Row[] {
  return knownVariables.flatMap(({ name, secret, notUsed, ...variable }): Row[] => {
    const value = home.env(name) ?? "";
    // Nobody uses most platforms: of their keys, those that are set.
    if (variable.group !== group || !secret || ((notUsed || group === "chat") && value === "")) return [];
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
