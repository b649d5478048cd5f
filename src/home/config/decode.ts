// Turns a tree from a file into the values the schema promises.
// Not zod: importing it takes longer than a whole short run, and here a value that does not fit is reported and replaced by its default, guards apart.
import { hostProblem } from "../../kit/hosts.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { eachField, type Field, type FieldKind, isSection, type Section } from "./field.ts";
import type { Tree } from "./yaml-text.ts";

/** What does not fit the schema. With `guard` nothing may stand in for it. */
export interface Misfit {
  readonly message: string;
  readonly guard: boolean;
}

/**
 * Fills in defaults, converts what means the same, reports the rest. Never throws. `unreadable` = the section above could not be
 * read, so whoever wrote it may have meant to shut a gate in here.
 */
export function decode(
  section: Section,
  raw: unknown,
  path: string,
  problems: Misfit[],
  unreadable = false,
): Record<string, unknown> {
  const given = isMapping(raw) ? raw : {};
  const lost = unreadable || (raw !== undefined && raw !== null && !isMapping(raw));
  if (lost && !unreadable) problems.push(lostSection(section, raw, path));
  const result: Record<string, unknown> = {};
  for (const key in section.fields) {
    const entry = section.fields[key];
    if (entry === undefined) continue;
    const value = isSection(entry)
      ? decode(entry, given[key], path ? `${path}.${key}` : key, problems, lost)
      : lost && entry.unclear !== undefined
        ? entry.unclear
        : decodeField(entry, given[key], path, key, problems);
    if (value !== undefined) result[key] = value;
  }
  for (const key in given) {
    if (Object.hasOwn(section.fields, key)) continue;
    result[key] = given[key];
    const meant = guardMeantBy(key, given, section);
    if (meant === undefined) continue;
    const above = path ? `${path}.` : "";
    const message = `${above}${key}: unknown setting; did you mean ${above}${meant}, which restricts the agent?`;
    problems.push({ message, guard: true });
  }
  return result;
}

/** A misspelt name loses what it was to hold back just as a misspelt value does. Other unknown names are nobody's mistake. */
function guardMeantBy(key: string, given: Readonly<Record<string, unknown>>, { fields }: Section): string | undefined {
  const [near] = didYouMean(key, Object.keys(fields), 1);
  if (near === undefined || Object.hasOwn(given, near)) return undefined;
  return holdsBack(fields[near], given[key]) ? near : undefined;
}

function holdsBack(entry: Field | Section | undefined, raw: unknown): boolean {
  if (entry === undefined) return false;
  if (!isSection(entry)) return !entry.notUsed && (entry.guard === true || entry.unclear !== undefined);
  return isMapping(raw) && Object.keys(raw).some((key) => holdsBack(ownEntry(entry, key), raw[key]));
}

const ownEntry = ({ fields }: Section, key: string) => (Object.hasOwn(fields, key) ? fields[key] : undefined);

function lostSection(section: Section, raw: unknown, path: string): Misfit {
  const fields = [...eachField(section.fields)].map(({ field }) => field);
  const guard = fields.some((field) => field.guard);
  const shut = fields.some((field) => field.unclear !== undefined);
  const used = shut ? "; using the defaults, with every limit in it at its strictest" : "; using the defaults";
  return { message: `${path}: expected a mapping, found ${show(raw)}${guard ? "" : used}`, guard };
}

function decodeField(field: Field, raw: unknown, path: string, key: string, problems: Misfit[]): unknown {
  if (raw === null && field.aliases?.null !== undefined) return field.aliases.null;
  if (raw === undefined || (raw === null && !field.kinds.includes("null"))) return copy(field.fallback);
  for (const kind of field.kinds) {
    const value = convert(kind, field, raw);
    if (value === undefined) continue;
    const wrong =
      field.hosts && Array.isArray(value) ? value.map(hostProblem).find((problem) => problem !== null) : null;
    if (!wrong) return value;
    problems.push({ message: `${path ? `${path}.` : ""}${key}: ${wrong}`, guard: field.guard === true });
    return copy(field.unclear ?? field.fallback);
  }
  const instead = field.unclear ?? field.fallback;
  const used = instead === undefined ? "; it is ignored" : `; using ${show(instead)}`;
  const found = field.secret ? "something else" : show(raw);
  const variable = field.guard && field.env ? ` (or ${field.env})` : "";
  problems.push({
    message: `${path ? `${path}.` : ""}${key}${variable}: expected ${expectation(field)}, found ${found}${field.guard ? "" : used}`,
    guard: field.guard === true,
  });
  return copy(instead);
}

const isBlank = (raw: unknown) => typeof raw === "string" && raw.trim() === "";

/** The value as that kind, or undefined when it is not one. */
function convert(kind: FieldKind, field: Field, raw: unknown): unknown {
  switch (kind) {
    case "text":
      return typeof raw === "string" ? raw : typeof raw === "number" ? String(raw) : undefined;
    case "whole":
      return inRange(field, asNumber(raw), Number.isSafeInteger);
    case "number":
      return inRange(field, asNumber(raw), Number.isFinite);
    case "flag":
      return asFlag(raw) ?? asFlag(typeof raw === "string" ? field.aliases?.[raw.trim().toLowerCase()] : undefined);
    case "choice":
      return asMember(field, raw);
    case "list":
      return asTexts(field.single && typeof raw === "string" ? (isBlank(raw) ? [] : [raw]) : raw);
    case "items":
      return Array.isArray(raw) ? raw : undefined;
    case "record":
      return isMapping(raw) && field.lists ? asLists(raw) : isMapping(raw) ? raw : undefined;
    case "null":
      return raw === null ? null : undefined;
  }
}

function asTexts(raw: unknown): string[] | undefined {
  if (!Array.isArray(raw)) return undefined;
  return raw.every((item) => typeof item === "string" || typeof item === "number") ? raw.map(String) : undefined;
}

/** A bare text stands for a list of one, nothing at all for an absent key. */
function asLists(raw: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    if (value === null || isBlank(value)) continue;
    const texts = asTexts(typeof value === "string" ? [value] : value);
    if (texts === undefined) return undefined;
    result[key] = texts;
  }
  return result;
}

// Numbers and booleans come as text when they were written as ${VARIABLE} or quoted.
function asNumber(raw: unknown): number | undefined {
  if (typeof raw === "number") return raw;
  return typeof raw === "string" && /^[-+]?(\d+(?:\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(raw.trim())
    ? Number(raw)
    : undefined;
}

function inRange(field: Field, value: number | undefined, test: (value: number) => boolean): number | undefined {
  if (value === undefined || !test(value)) return undefined;
  return value >= (field.min ?? -Infinity) && value <= (field.max ?? Infinity) ? value : undefined;
}

/** The words YAML 1.1 takes for booleans, in any case; also `1` and `0`, which environment variables use. */
export function asFlag(raw: unknown): boolean | undefined {
  if (typeof raw === "boolean") return raw;
  if (raw === 1 || raw === 0) return raw === 1;
  if (typeof raw !== "string") return undefined;
  const word = raw.trim().toLowerCase();
  if (word === "true" || word === "yes" || word === "on" || word === "1") return true;
  if (word === "false" || word === "no" || word === "off" || word === "0") return false;
  return undefined;
}

function asMember(field: Field, raw: unknown): string | undefined {
  const values = field.values ?? [];
  if (typeof raw === "string") {
    const word = raw.trim().toLowerCase();
    const member = values.find((value) => value.toLowerCase() === word) ?? field.aliases?.[word];
    if (member !== undefined) return member;
  }
  const truth = asFlag(raw);
  if (truth === undefined) return undefined;
  const member = truth ? (field.on ?? "on") : "off";
  return values.includes(member) ? member : undefined;
}

function expectation(field: Field): string {
  const words = field.kinds.map((kind) => {
    if (kind === "choice") return `one of ${field.values?.map((value) => value || "(empty)").join(", ")}`;
    if (kind === "list" && field.hosts) return "a list of hosts like [example.com]";
    if (kind === "record" && field.lists) return "a mapping of lists of texts";
    if (kind !== "whole" && kind !== "number") return kindNames[kind];
    const range = [
      field.min === undefined ? "" : ` from ${field.min}`,
      field.max === undefined ? "" : ` to ${field.max}`,
    ].join("");
    return `${kindNames[kind]}${range}`;
  });
  return words.join(" or ");
}

const kindNames: Readonly<Record<Exclude<FieldKind, "choice">, string>> = {
  text: "a text",
  whole: "a whole number",
  number: "a number",
  flag: "true or false",
  list: "a list of texts",
  items: "a list",
  record: "a mapping",
  null: "null",
};

function show(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isMapping(value)) return "a mapping";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Defaults are at most one level deep. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return [...value];
  return isMapping(value) ? { ...value } : value;
}

// Mistakes in the shape of config.yaml that no single key's type can show.

export interface Finding {
  readonly severity: "error" | "warning";
  readonly message: string;
}

/** Looks at the file as it is written, before anything is moved to its key. */
export function checkStructure(tree: Tree): Finding[] {
  return [...customProviders(tree), ...fallbackModel(tree.fallback_model), ...misplaced(tree)];
}

function* customProviders(tree: Tree): Generator<Finding> {
  const given = tree.custom_providers;
  if (given === undefined || given === null) return;
  if (isMapping(given)) {
    yield error(
      "custom_providers is a mapping; write it as a list: each entry starts with `- name: ...` and has a base_url",
    );
  }
  if (Array.isArray(given)) {
    for (const [index, item] of given.entries()) {
      if (!isMapping(item)) {
        yield warning(`custom_providers[${index}] is not a mapping; it needs name and base_url`);
        continue;
      }
      for (const key of ["base_url", "name"]) {
        if (!item[key]) yield warning(`custom_providers[${index}] has no ${key}`);
      }
    }
  }
  if (!tree.model) yield warning("custom_providers is set but no model; set model.default and model.provider");
}

function* fallbackModel(given: unknown): Generator<Finding> {
  if (given === undefined || given === null) return;
  if (!isMapping(given) && !Array.isArray(given)) {
    yield error("fallback_model must be a mapping with provider and model, or a list of those");
    return;
  }
  const items: readonly unknown[] = Array.isArray(given) ? given : [given];
  for (const [index, item] of items.entries()) {
    const entry = Array.isArray(given) ? `fallback_model[${index}]` : "fallback_model";
    if (!isMapping(item)) {
      yield error(`${entry} must be a mapping with provider and model`);
      continue;
    }
    for (const key of ["provider", "model"]) {
      if (!item[key]) yield warning(`${entry} has no ${key}; this fallback is disabled`);
    }
  }
}

const homes: Readonly<Record<string, string>> = {
  base_url: "model.base_url",
  api_key: "model.api_key",
  rate_limit_delay: "the provider's entry in providers",
  api_mode: "model.api_mode",
};

function* misplaced(tree: Tree): Generator<Finding> {
  for (const [key, home] of Object.entries(homes)) {
    if (tree[key] !== undefined) yield warning(`${key} is at the top level; it belongs in ${home}`);
  }
}

const error = (message: string): Finding => ({ severity: "error", message });
const warning = (message: string): Finding => ({ severity: "warning", message });

// Older and shorter spellings of settings, moved to the key where the program looks for them.

/** The tree with every accepted spelling moved to its key; a value already there wins. The given tree is not touched. */
export function normalise(tree: Tree): Tree {
  const { provider, base_url, context_length, api_base, max_turns, personalities, fallback_model, ...rest } = tree;
  const result: Tree = { ...rest };
  const chain = [tree.fallback_providers, fallback_model].map(asList).find((list) => list.length > 0);
  if (chain) result.fallback_providers = chain;

  const model = modelSection(tree.model);
  fillGap(model, "provider", provider);
  fillGap(model, "base_url", base_url);
  fillGap(model, "base_url", api_base);
  fillGap(model, "context_length", context_length);
  if (Object.keys(model).length > 0 || isMapping(tree.model) || tree.model === "") result.model = model;

  if (max_turns !== undefined || personalities !== undefined) {
    const agent: Tree = isMapping(tree.agent) ? { ...tree.agent } : {};
    fillGap(agent, "max_turns", max_turns);
    if (isMapping(personalities)) {
      agent.personalities = { ...(isMapping(agent.personalities) ? agent.personalities : {}), ...personalities };
    }
    if (isMapping(tree.agent) || tree.agent === undefined || tree.agent === null) result.agent = agent;
  }
  return result;
}

/** One mapping stands for a list of one. */
function asList(value: unknown): readonly unknown[] {
  return isMapping(value) ? [value] : Array.isArray(value) ? value : [];
}

function modelSection(raw: unknown): Tree {
  if (typeof raw === "string") return raw.trim() === "" ? {} : { default: raw };
  if (!isMapping(raw)) return {};
  const { model, name, api_base, ...section } = raw;
  fillGap(section, "default", model);
  fillGap(section, "default", name);
  fillGap(section, "base_url", api_base);
  return section;
}

function fillGap(section: Tree, key: string, value: unknown): void {
  if (isBlankNormalise(section[key]) && !isBlankNormalise(value)) section[key] = value;
}

function isBlankNormalise(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}
