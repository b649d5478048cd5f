// A skill in the user's message. What was typed is what is stored; the skill's text is sent with it to the model.
import { join } from "node:path";
import { type Bundle, loadBundles, slugOf } from "./bundles.ts";
import { loadCatalogue, type Skill, unshadowed } from "./catalogue.ts";
import { linkedFiles } from "./files.ts";
import { type Opening, openSkill, skillContent } from "./open-skill.ts";
import { checkRequirements, disabledSkills, fitsOs, isDisabled, setupNote } from "./requirements.ts";
import { pathName } from "./resolve.ts";
import type { SkillsContext } from "./roots.ts";
import { declaredSettings, settingValue } from "./settings.ts";
import { bumpUsage } from "./usage.ts";
import type { SkillVariables } from "./variables.ts";

interface ExpandedCommand {
  readonly type: "expanded";
  /** The user's message as it is stored: what was typed. */
  readonly display: string;
  /** The same message as the model gets it. */
  readonly apiContent: string;
  readonly loaded: readonly string[];
  /** Members of a bundle that are missing or switched off, and why. */
  readonly left: readonly string[];
}

export type Expansion = ExpandedCommand | { readonly type: "failed"; readonly error: string };

interface ExpandOptions extends Opening {
  /** Gets what the skills declare; absent: nothing is handed on. */
  readonly variables?: SkillVariables | undefined;
  /** A note from the surface, last in the message. */
  readonly runtimeNote?: string | undefined;
}

/** A typed line that begins with skill commands or a bundle; null = it is neither. `taken`: built-in commands and aliases. */
export async function expandTyped(
  text: string,
  context: SkillsContext,
  options: ExpandOptions & { readonly taken: ReadonlySet<string> },
): Promise<Expansion | null> {
  if (!text.trimStart().startsWith("/")) return null;
  const typed = parseTypedSkills(text, await skillCommands(context, options));
  if (!typed) return null;
  if (typed.type === "bundle") return expandBundle(typed.bundle, typed.instruction, text, context, options);
  return expandSkills(typed.skills.map(pathName), { instruction: typed.instruction, display: text }, context, options);
}

/** One skill by any of its names, with what the user wants of it: `/skill name text`. */
export async function expandSkillCommand(
  name: string,
  instruction: string,
  context: SkillsContext,
  options: ExpandOptions,
): Promise<Expansion> {
  const display = `/${name}${instruction === "" ? "" : ` ${instruction}`}`;
  return expandSkills([name], { instruction, display }, context, options);
}

async function expandSkills(
  names: readonly string[],
  typed: { readonly instruction: string; readonly display: string },
  context: SkillsContext,
  options: ExpandOptions,
): Promise<Expansion> {
  const blocks: string[] = [];
  const loaded: string[] = [];
  for (const name of names) {
    const block = await skillBlock(name, context, options);
    if (block.type === "failed") return block;
    blocks.push(`[The user invoked the "${block.skill.name}" skill. Follow its instructions.]\n\n${block.text}`);
    loaded.push(block.skill.name);
  }
  countUse(loaded, context);
  const apiContent = [...blocks, ...tail(typed.instruction, options)].join("\n\n");
  return { type: "expanded", display: typed.display, apiContent, loaded, left: [] };
}

async function expandBundle(
  bundle: Bundle,
  instruction: string,
  display: string,
  context: SkillsContext,
  options: ExpandOptions,
): Promise<Expansion> {
  const { blocks, loaded, left } = await gather(bundle.skills, context, options);
  if (loaded.length === 0)
    return { type: "failed", error: `Nothing of bundle '${bundle.name}' can be loaded: ${left.join("; ")}` };
  countUse(loaded, context);
  const header = [
    `[The user invoked the "${bundle.name}" bundle of skills. Loaded: ${loaded.join(", ")}. Follow their instructions.`,
    ...(left.length > 0 ? [`Left out: ${left.join("; ")}`] : []),
    ...(bundle.instruction === "" ? [] : [`Bundle instruction: ${bundle.instruction}`]),
  ];
  const parts = [`${header.join("\n")}]`, ...blocks, ...tail(instruction, options)];
  return { type: "expanded", display, apiContent: parts.join("\n\n"), loaded, left };
}

interface Preloaded {
  /** Put in front of the first message; empty when nothing was loaded. */
  readonly text: string;
  readonly loaded: readonly string[];
  /** Unknown, switched off or not for this machine, as they were named. */
  readonly missing: readonly string[];
}

/** Skills for a whole session: `-s a,b`, scheduled jobs, channels. */
export async function preloadSkills(
  names: readonly string[],
  context: SkillsContext,
  options: ExpandOptions,
): Promise<Preloaded> {
  const wanted = [...new Set(names.flatMap((name) => name.split(",")).map((name) => name.trim()))].filter(Boolean);
  const { blocks, loaded, missing } = await gather(wanted, context, options);
  if (loaded.length === 0) return { text: "", loaded, missing };
  countUse(loaded, context);
  const note = `[These skills are active for the whole session: ${loaded.join(", ")}. Follow their instructions.]`;
  return { text: [note, ...blocks].join("\n\n"), loaded, missing };
}

async function gather(names: readonly string[], context: SkillsContext, options: ExpandOptions) {
  const blocks: string[] = [];
  const loaded: string[] = [];
  const missing: string[] = [];
  const left: string[] = [];
  for (const name of names) {
    const block = await skillBlock(name, context, options);
    if (block.type === "failed") {
      missing.push(name);
      left.push(`${name} (${block.code})`);
    } else if (!loaded.includes(block.skill.name)) {
      blocks.push(`[Skill: ${block.skill.name}]\n\n${block.text}`);
      loaded.push(block.skill.name);
    }
  }
  return { blocks, loaded, missing, left };
}

type Block =
  | { readonly type: "block"; readonly skill: Skill; readonly text: string }
  | { readonly type: "failed"; readonly error: string; readonly code: string };

async function skillBlock(name: string, context: SkillsContext, options: ExpandOptions): Promise<Block> {
  const opened = await openSkill(name, context, options);
  if (opened.type === "refused")
    return { type: "failed", error: String(opened.result.error), code: String(opened.result.code) };
  const { skill, parsed } = opened;
  const settings = declaredSettings(parsed.fields).map(
    (setting) => `  ${setting.key} = ${settingValue(setting, context) || "(not set)"}`,
  );
  const readiness = await checkRequirements(parsed.fields, context);
  const declared = readiness.variables.map((variable) => variable.name);
  const notes = [setupNote(readiness), await options.variables?.open(skill, declared, context)];
  const files = Object.values((await linkedFiles(skill.dir)) ?? {}).flat();
  const parts = [
    (await skillContent(opened, context, options)).trim(),
    `[Skill directory: ${skill.dir}]\nRelative paths in this skill are relative to that directory.`,
    ...(settings.length > 0
      ? [[`[Skill config (from ${context.paths.configFile}):`, ...settings, "]"].join("\n")]
      : []),
    ...notes.flatMap((note) => (note ? [`[Skill setup note: ${note}]`] : [])),
    ...(files.length === 0
      ? []
      : [["Supporting files:", ...files.map((path) => `- ${path}  ->  ${join(skill.dir, path)}`)].join("\n")]),
  ];
  return { type: "block", skill, text: parts.join("\n\n") };
}

/** The skills whose text a message of the user's carries, as it was sent. */
export function skillsIn(sent: string): readonly string[] {
  const opened =
    /^\[(?:The user invoked the "([^"\n]+)" skill\.|(?:The user invoked the "[^"\n]+" bundle of skills\. Loaded|These skills are active for the whole session): (.+?)\. Follow)/gm;
  return [...sent.matchAll(opened)].flatMap(([, one, several]) => (one ? [one] : (several ?? "").split(", ")));
}

function tail(instruction: string, { runtimeNote }: ExpandOptions): string[] {
  return [
    ...(instruction === "" ? [] : [`The user's instruction: ${instruction}`]),
    ...(runtimeNote ? [`[Runtime note: ${runtimeNote}]`] : []),
  ];
}

function countUse(names: readonly string[], context: SkillsContext): void {
  for (const name of names) bumpUsage(context, name, ["use"]);
}

// Skills as slash commands: which names they get, and what a typed line means.

const MAX_STACKED = 5;

interface SkillCommands {
  /** By slug; never a name that a built-in command has. */
  readonly skills: ReadonlyMap<string, Skill>;
  readonly bundles: ReadonlyMap<string, Bundle>;
  readonly warnings: readonly string[];
}

/** The commands there are on a platform. `taken` are the names and aliases of built-in commands. */
export async function skillCommands(
  context: SkillsContext,
  options: { readonly platform: string; readonly taken: ReadonlySet<string> },
): Promise<SkillCommands> {
  const warnings: string[] = [];
  const disabled = disabledSkills(context.config(), options.platform);
  const taken = new Set([...options.taken].map(slugOf));
  const skills = new Map<string, Skill>();
  for (const skill of unshadowed(await loadCatalogue(context))) {
    if (isDisabled(skill, disabled) || !fitsOs(skill.platforms)) continue;
    const slug = slugOf(skill.name);
    if (slug === "") warnings.push(`Skill '${skill.name}' has no letters for a command: use /skill ${skill.name}`);
    else if (taken.has(slug)) warnings.push(`/${slug} is a command already; use /skill ${skill.name}`);
    else if (!skills.has(slug)) skills.set(slug, skill);
  }
  const found = await loadBundles(context);
  const bundles = new Map([...found.bundles].filter(([slug]) => !taken.has(slug)));
  return { skills, bundles, warnings: [...warnings, ...found.warnings] };
}

type TypedSkills =
  | { readonly type: "skills"; readonly skills: readonly Skill[]; readonly instruction: string }
  | { readonly type: "bundle"; readonly bundle: Bundle; readonly instruction: string };

/** `/a /b do this`: up to five skills, or one bundle, and the rest. Null = the line begins with neither. */
export function parseTypedSkills(text: string, commands: SkillCommands): TypedSkills | null {
  const stacked: Skill[] = [];
  let rest = text.trim();
  while (stacked.length < MAX_STACKED) {
    const [, word = "", after = ""] = /^\/(\S+)([\s\S]*)$/.exec(rest) ?? [];
    const slug = isCommandWord(word) ? slugOf(word) : "";
    const bundle = stacked.length === 0 ? commands.bundles.get(slug) : undefined;
    if (bundle) return { type: "bundle", bundle, instruction: after.trim() };
    const skill = commands.skills.get(slug);
    if (!skill || stacked.includes(skill)) break;
    stacked.push(skill);
    rest = after.trim();
  }
  return stacked.length > 0 ? { type: "skills", skills: stacked, instruction: rest } : null;
}

/** `/etc/hosts` is a path, not a command. */
const isCommandWord = (word: string) => /^[\p{L}\p{N}_.-]+$/u.test(word);
