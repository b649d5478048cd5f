// `/config`: the settings, from inside a conversation. Keys and values are completed from the schema.

import { type Field, findEntry, isSection } from "../home/config/field.ts";
import { configSchema } from "../home/config/schema.ts";
import { t } from "../home/language/words.ts";
import { maskTree } from "../home/secrets.ts";
import { type CommandContext, type CommandDefinition, type CommandValues, typedWords } from "./context.ts";

const config: CommandDefinition = {
  name: "config",
  aliases: ["settings"],
  description: "show or change settings",
  category: "Configuration",
  availability: "cli",
  argsHint: "[key] [value]",
  busyPolicy: "dispatch",
  async values(typed) {
    const { words, last } = typedWords(typed);
    const [key] = words;
    if (key === undefined) return { replaces: last, values: await keysOf() };
    return words.length === 1 ? { replaces: last, values: valuesOf(key) } : null;
  },
  async run(args, ctx) {
    const { home } = ctx;
    const path = home.display(home.paths.configFile);
    const tree = home.configTree();
    if (home.configProblem || tree === null) {
      const problem = home.configProblem?.message ?? t("it cannot be read");
      return ctx.warn(`${path} is broken: ${problem}. Using defaults.`);
    }
    const [, key = "", value = ""] = /^(?:(?:set|get)\s+)?(\S*)\s*([\s\S]*)$/.exec(args) ?? [];
    if (value !== "") return change(key, value, tree, ctx);
    if (key !== "") return show(key, ctx);
    const { stringify } = await import("yaml");
    const text = Object.keys(tree).length === 0 ? "(nothing set; using defaults)" : stringify(maskTree(tree));
    ctx.say(`${path}\n\n${text.trimEnd()}\n\n/config KEY VALUE changes a setting; Tab completes both.`);
  },
};

export const CONFIG_COMMANDS: readonly CommandDefinition[] = [config];

async function show(key: string, ctx: CommandContext): Promise<void> {
  const { parseKeyPath } = await import("../home/config/set-key.ts");
  const path = parseKeyPath(key);
  const value = path.reduce<unknown>(
    (node, part) => (typeof node === "object" && node !== null ? (node as Record<string, unknown>)[part] : undefined), // any key
    ctx.home.config(),
  );
  const field = fieldAt(path);
  if (value === undefined && field === null) return ctx.warn(await unknownKey(key));
  const shown = maskTree(value, path.at(-1));
  const text =
    typeof shown === "object" && shown !== null ? JSON.stringify(shown, null, 2) : String(shown ?? "not set");
  ctx.say([`${key} = ${text}`, ...(field ? [`  ${field.meaning}`] : [])].join("\n"));
}

async function change(
  key: string,
  text: string,
  tree: Readonly<Record<string, unknown>>,
  ctx: CommandContext,
): Promise<void> {
  const { planSet } = await import("../home/config/set-key.ts");
  const inShell = `Set it from the shell: hermes config set ${key} VALUE`;
  if (fieldAt(key.split("."))?.secret || !/^[a-z_]/.test(key)) return ctx.warn(`Do not enter secrets here. ${inShell}`);
  // Some of these are mirrored for the Python original; one place does that.
  if (key.startsWith("terminal.")) return ctx.warn(inShell);
  const { parse } = await import("yaml");
  const planned = planSet(tree, key, text, { parse: (flow) => parse(flow) });
  if (findEntry(configSchema.fields, planned.path) === null)
    return ctx.warn(`${await unknownKey(key)} Nothing was saved.`);
  await ctx.home.setConfigKey(planned.path, planned.value);
  for (const notice of planned.notices) ctx.warn(notice);
  const shown = maskTree(planned.value, planned.path.at(-1));
  const said = `${planned.path.join(".")} = ${typeof shown === "string" ? shown : JSON.stringify(shown)}`;
  ctx.say(planned.notUsed ? `${said} is saved but has no effect yet.` : said);
}

async function unknownKey(key: string): Promise<string> {
  const { allKeys } = await import("../home/config/set-key.ts");
  const { didYouMean } = await import("../kit/similarity.ts");
  const near = didYouMean(key, allKeys());
  return `There is no setting ${key}.${near.length > 0 ? ` Did you mean ${near.join(", ")}?` : ""}`;
}

async function keysOf(): Promise<CommandValues["values"]> {
  const { allKeys } = await import("../home/config/set-key.ts");
  return allKeys().map((value) => ({ value, about: fieldAt(value.split("."))?.meaning.split(/[;.\n]/)[0] ?? "" }));
}

function valuesOf(key: string): CommandValues["values"] {
  const field = fieldAt(key.split("."));
  if (!field) return [];
  const isDefault = (value: string) => (String(field.fallback) === value ? { value, about: "default" } : { value });
  if (field.values) return field.values.map(isDefault);
  return field.kinds.includes("flag") ? ["true", "false"].map(isDefault) : [];
}

/** Null: not one setting. */
function fieldAt(path: readonly string[]): Field | null {
  const found = findEntry(configSchema.fields, path);
  return found && "entry" in found && !isSection(found.entry) ? found.entry : null;
}
