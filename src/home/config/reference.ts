// The reference of config.yaml as Markdown, written from the schema.
import { knownVariables, type VariableGroup } from "../known-variables.ts";
import { type Field, isNotUsed, isSection, type Section, type Shape } from "./field.ts";
import { configSchema } from "./schema.ts";
import { renderInline } from "./yaml-text.ts";

const NOT_USED = "*Not used yet:*";

export function configReference(): string {
  const lone = Object.entries(configSchema.fields).filter(([, entry]) => !isSection(entry));
  return `${[
    "# Settings",
    "<!-- Written by scripts/generate-config-reference.mjs from the schema; changes here are lost. -->",
    "Every key of `config.yaml` with its default. Set one with `hermes config set KEY VALUE`, print it with `hermes config get KEY`.",
    "Keys marked *not used yet* are kept for homes of the Python original; they have no effect here so far.",
    `A missing key has its default. Unknown keys are kept, unless one looks like a misspelt setting that restricts the agent: then nothing starts. Texts may contain \`$\{NAME}\`: the value of that environment variable.`,
    "",
    ...sections(configSchema.fields),
    "## Keys without a section",
    "",
    ...table(Object.fromEntries(lone), ""),
    "## Environment variables",
    "",
    "Keys and tokens belong in `.env` next to `config.yaml`; `hermes config set NAME VALUE` saves them there. Variables that override",
    "a key of `config.yaml` are listed above; where the table says so, the file takes precedence.",
    "",
    ...variableTables(),
  ].join("\n")}\n`;
}

function* sections(shape: Shape, prefix = ""): Generator<string> {
  for (const [key, entry] of Object.entries(shape)) {
    if (!isSection(entry)) continue;
    const path = `${prefix}${key}`;
    yield* sectionLines(path, entry);
    yield* sections(entry.fields, `${path}.`);
  }
}

function* sectionLines(path: string, section: Section): Generator<string> {
  const own = Object.fromEntries(Object.entries(section.fields).filter(([, entry]) => !isSection(entry)));
  yield `${path.includes(".") ? "###" : "##"} ${path}`;
  yield "";
  yield isNotUsed(section) ? `${NOT_USED} ${section.meaning}` : section.meaning;
  yield "";
  if (Object.keys(own).length > 0) yield* table(own, `${path}.`);
}

function* table(shape: Shape, prefix: string): Generator<string> {
  yield "| Key | Kind | Default | Meaning |";
  yield "|---|---|---|---|";
  for (const [key, entry] of Object.entries(shape)) {
    if (isSection(entry)) continue;
    const meaning = entry.notUsed ? `${NOT_USED} ${entry.meaning}` : entry.meaning;
    const notes = [meaning, ...environmentNote(entry)].join(". ");
    yield `| \`${prefix}${key}\` | ${kindOf(entry)} | ${defaultOf(entry)} | ${cell(notes)} |`;
  }
  yield "";
}

function environmentNote(field: Field): string[] {
  if (field.env === undefined) return [];
  return [`Environment: \`${field.env}\`${field.envBelowConfig ? " (the file wins)" : ""}`];
}

const kindNames = {
  text: "text",
  whole: "whole number",
  number: "number",
  flag: "true, false",
  list: "list of texts",
  items: "list",
  record: "mapping",
  null: "null",
} as const;

function kindOf(field: Field): string {
  const names = field.kinds.map((kind) =>
    kind === "choice"
      ? (field.values ?? []).map((value) => (value === "" ? "empty" : `\`${value}\``)).join(", ")
      : kindNames[kind],
  );
  return names.join(" or ");
}

function defaultOf(field: Field): string {
  if (field.fallback === undefined) return "not set";
  return field.fallback === "" ? "empty" : `\`${cell(renderInline(field.fallback))}\``;
}

const groupTitles: Readonly<Record<VariableGroup, string>> = {
  model: "Models",
  tool: "Tools",
  chat: "Chats and servers",
  program: "The program",
};

function* variableTables(): Generator<string> {
  for (const [group, title] of Object.entries(groupTitles)) {
    yield `### ${title}`;
    yield "";
    yield "| Variable | Meaning |";
    yield "|---|---|";
    for (const variable of knownVariables) {
      const mark = variable.notUsed ? `${NOT_USED} ` : "";
      if (variable.group === group) yield `| \`${variable.name}\` | ${mark}${cell(variable.meaning)} |`;
    }
    yield "";
  }
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
