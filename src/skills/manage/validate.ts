// What a skill must look like before it is written.
import { countCodePoints } from "../../kit/code-points.ts";
import { parseFrontMatter } from "../../kit/front-matter.ts";
import { unquote } from "../../kit/quotes.ts";
import { textField } from "../fields.ts";
import { type SafePath, safePath } from "../files.ts";
import { MAX_NAME } from "../read-entry.ts";
import { NEVER_ENTERED, SUPPORT_DIRS } from "../tree.ts";

export const MAX_CHARS = 100_000;
const MAX_BYTES = 1024 * 1024;
const MAX_DESCRIPTION = 1024;
const MAX_NEW_DESCRIPTION = 60;
const NAME = /^[a-z0-9][a-z0-9._-]*$/;

/** Why a name cannot be a skill's; null = it can. `what` is "name" or "category". */
export function checkName(name: string, what = "name"): string | null {
  if (name === "") return `${what} is empty.`;
  if (countCodePoints(name) > MAX_NAME) return `${what} is longer than ${MAX_NAME} characters.`;
  if (!NAME.test(name))
    return `${what} '${name}' must be lower case: letters, digits, hyphens, underscores and dots, beginning with a letter or digit.`;
  if (NEVER_ENTERED.has(name)) return `${what} '${name}' is a folder that is never searched for skills.`;
  return null;
}

export interface ContentRules {
  /** What the front matter must say. */
  readonly name: string;
  /** A new skill's description must fit the index. */
  readonly isNew: boolean;
}

/** Why a text cannot be this skill's SKILL.md; null = it can. */
export function checkContent(text: string, { name, isNew }: ContentRules): string | null {
  if (text.trim() === "") return "content is empty: give the whole SKILL.md, front matter and body.";
  const { fields, body, present, problem } = parseFrontMatter(text);
  if (problem !== null) return `The front matter cannot be read: ${problem}.`;
  if (!present) return "content must begin with front matter: a line ---, `name:` and `description:`, a line ---.";
  const given = textField(fields.name);
  if (given === "") return "The front matter has no `name`.";
  if (given !== name)
    return `The front matter's name is '${given}', but this skill is '${name}'. They must be the same.`;
  const description = unquote(textField(fields.description));
  const length = countCodePoints(description);
  if (length === 0) return "The front matter has no `description`.";
  if (length > MAX_DESCRIPTION) return `The description has ${length} characters; ${MAX_DESCRIPTION} is the limit.`;
  if (isNew && length > MAX_NEW_DESCRIPTION)
    return `The description of a new skill has at most ${MAX_NEW_DESCRIPTION} characters (it has ${length}): the list of skills shows no more. Say in them when to use the skill; the rest belongs into the body.`;
  if (body.trim() === "") return "The body is empty: write the steps below the front matter.";
  return checkSize(text);
}

export function checkSize(text: string): string | null {
  const length = countCodePoints(text);
  if (length > MAX_CHARS)
    return `The file would have ${length} characters; ${MAX_CHARS} is the limit. Move detail into files below references/.`;
  const bytes = Buffer.byteLength(text);
  return bytes > MAX_BYTES ? `The file would have ${bytes} bytes; ${MAX_BYTES} is the limit.` : null;
}

/** A path that may be written: `SKILL.md`, or a file below one of the support folders. */
export async function writablePath(
  skill: { readonly dir: string; readonly dirName: string },
  given: string,
): Promise<SafePath> {
  const safe = await safePath(skill.dir, given);
  if (safe.type === "refused") return safe;
  if (safe.path === "SKILL.md") return safe;
  if (safe.path === `${skill.dirName}/SKILL.md`) return safePath(skill.dir, "SKILL.md");
  const [first = "", ...rest] = safe.path.split("/");
  if ((SUPPORT_DIRS as readonly string[]).includes(first) && rest.length > 0) return safe;
  return {
    type: "refused",
    reason: `file_path '${given}' must be SKILL.md or a file below ${SUPPORT_DIRS.map((dir) => `${dir}/`).join(", ")}`,
  };
}
