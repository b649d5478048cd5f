// What is known of a skill without opening it again: enough to list it, filter it and find it.
import { type FrontMatter, parseFrontMatter, unquote } from "../kit/front-matter.ts";
import { flagField, hermesFields, listField, textField } from "./fields.ts";

export interface SkillEntry {
  /** The front matter's name; without a usable one, the directory's. */
  readonly name: string;
  readonly dirName: string;
  /** Path of the parent below the root; null directly in it. */
  readonly category: string | null;
  /** Of the skill's directory below the root, with `/`. */
  readonly path: string;
  /** As written, whole. */
  readonly description: string;
  /** The first line of the body that is no heading; stands in for a missing description. */
  readonly summary: string;
  readonly platforms: readonly string[];
  readonly environments: readonly string[];
  readonly conditions: SkillConditions;
  /** `disable-model-invocation`: a command for the user, not an offer to the model. */
  readonly userOnly: boolean;
  readonly problems: readonly string[];
}

export interface SkillConditions {
  readonly requiresToolsets: readonly string[];
  readonly requiresTools: readonly string[];
  readonly fallbackForToolsets: readonly string[];
  readonly fallbackForTools: readonly string[];
}

/** A category as people see it. */
export const categoryLabel = (category: string | null) => category ?? "general";

export const MAX_NAME = 64;
const KNOWN_PLATFORMS = /^(macos|darwin|linux|windows|win32|all|any)$/i;

/** From the text of a SKILL.md; null = the file could not be read. */
export function readEntry(path: string, text: string | null): SkillEntry {
  const parts = path.split("/");
  const dirName = parts.at(-1) ?? path;
  const place = { dirName, path, category: parts.length > 1 ? parts.slice(0, -1).join("/") : null };
  const blank = { name: dirName, description: "", summary: "", platforms: [], environments: [], userOnly: false };
  if (text === null) return { ...place, ...blank, conditions: conditionsOf({}), problems: ["SKILL.md cannot be read"] };
  const { fields, body, present, problem } = parseFrontMatter(text);
  const problems = problem === null ? [] : [problem];
  if (!present) {
    if (problem === null) problems.push("SKILL.md has no front matter");
    return { ...place, ...blank, conditions: conditionsOf({}), problems };
  }
  const given = textField(fields.name);
  const name = isShowable(given) ? given : dirName;
  if (given !== "" && name !== given)
    problems.push("the front matter's name cannot be used; the directory's name stands in");
  const platforms = listField(fields.platforms);
  const unknown = platforms.filter((platform) => !KNOWN_PLATFORMS.test(platform));
  if (unknown.length > 0) problems.push(`unknown platforms are ignored: ${unknown.join(", ")}`);
  return {
    ...place,
    name,
    description: unquote(textField(fields.description)),
    summary: firstBodyLine(body),
    platforms,
    environments: listField(fields.environments),
    conditions: conditionsOf(fields),
    userOnly: flagField(fields["disable-model-invocation"]),
    problems,
  };
}

function conditionsOf(fields: FrontMatter): SkillConditions {
  const own = hermesFields(fields);
  return {
    requiresToolsets: listField(own.requires_toolsets),
    requiresTools: listField(own.requires_tools),
    fallbackForToolsets: listField(own.fallback_for_toolsets),
    fallbackForTools: listField(own.fallback_for_tools),
  };
}

/** A name that can stand on one line of a prompt and cannot pass for a path. */
function isShowable(name: string): boolean {
  return name !== "" && [...name].length <= MAX_NAME && !/[\p{C}<>/\\]/u.test(name) && !/^\.+$/.test(name);
}

function firstBodyLine(body: string): string {
  for (const line of body.split("\n")) {
    const text = line.trim();
    if (text !== "" && !text.startsWith("#")) return text;
  }
  return "";
}
