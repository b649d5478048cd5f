// A SKILL.md as an entry of the index.
import type { FrontMatter, Parsed } from "../kit/front-matter-plain.ts";
import { unquote } from "../kit/quotes.ts";
import type { SkillConditions, SkillEntry } from "./entry.ts";
import { flagField, hermesFields, listField, textField } from "./fields.ts";

export const MAX_NAME = 64;
const KNOWN_PLATFORMS = /^(macos|darwin|linux|windows|win32|all|any)$/i;

/** From a SKILL.md; null = the file could not be read. */
export function readEntry(path: string, parsed: Parsed | null): SkillEntry {
  const parts = path.split("/");
  const dirName = parts.at(-1) ?? path;
  const place = { dirName, path, category: parts.length > 1 ? parts.slice(0, -1).join("/") : null };
  const blank = { name: dirName, description: "", summary: "", platforms: [], environments: [], userOnly: false };
  if (parsed === null)
    return { ...place, ...blank, conditions: conditionsOf({}), problems: ["SKILL.md cannot be read"] };
  const { fields, body, present, problem } = parsed;
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
