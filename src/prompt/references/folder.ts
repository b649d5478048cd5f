import { basename, join } from "node:path";
import { compareCodePoints } from "../../kit/compare.ts";
import { estimateTokens } from "../../llm/catalogue/estimate.ts";
import type { ListedEntry } from "../ports.ts";
import { countLines, textOf } from "./file.ts";
import type { Reference } from "./grammar.ts";
import { findPlace } from "./place.ts";
import { type Attachment, type IgnoreRules, type ReferenceOptions, warning } from "./ports.ts";

const MOST_ENTRIES = 200;
const COUNTED_BYTES = 1024 * 1024;

export async function attachFolder({ raw, value }: Reference, options: ReferenceOptions): Promise<Attachment> {
  const place = await findPlace(value, options);
  if (place.type === "refused") return warning(place.reason);
  if (place.type === "missing") return warning("folder not found");
  if (place.look.kind !== "directory") return warning("path is not a folder");
  const tree = await drawTree(place.path, options);
  return { type: "block", text: `📁 ${raw} (${estimateTokens(tree)} tokens)\n${tree}` };
}

async function drawTree(root: string, options: ReferenceOptions): Promise<string> {
  const lines = [`${basename(root) || root}/`];
  let left = MOST_ENTRIES;
  const draw = async (directory: string, indent: string, above: IgnoreRules | null): Promise<void> => {
    const entries = await options.files.list(directory);
    const rules =
      (await above?.enter(
        directory,
        entries.map(({ name }) => name),
      )) ?? null;
    for (const entry of visible(directory, entries, rules, options)) {
      if (left-- <= 0) {
        if (left === -1) lines.push(`${indent}- ...`);
        return;
      }
      const path = join(directory, entry.name);
      lines.push(`${indent}- ${entry.name.replace(/\p{Cc}/gu, "?")}${await describe(path, entry, options)}`);
      if (entry.kind === "directory") await draw(path, `${indent}  `, rules);
    }
  };
  await draw(root, "", (await options.ignoreRules?.(root)) ?? null);
  return lines.join("\n");
}

/** Directories first, each sort by name. A link is shown and not followed. */
function visible(
  directory: string,
  entries: readonly ListedEntry[],
  rules: IgnoreRules | null,
  { denyList }: ReferenceOptions,
): readonly ListedEntry[] {
  return entries
    .filter(({ name, kind }) => {
      const path = join(directory, name);
      return !name.startsWith(".") && !denyList.isHidden(path) && rules?.ignores(path, kind === "directory") !== true;
    })
    .toSorted(
      (a, b) => Number(b.kind === "directory") - Number(a.kind === "directory") || compareCodePoints(a.name, b.name),
    );
}

async function describe(path: string, { kind }: ListedEntry, { files }: ReferenceOptions): Promise<string> {
  if (kind === "directory") return "/";
  if (kind === "link") return " (link)";
  const read = kind === "file" ? await files.read(path, COUNTED_BYTES) : null;
  if (read?.type === "too_big") return ` (${read.size} bytes)`;
  if (read?.type !== "bytes") return "";
  const text = textOf(read.bytes);
  return text === null ? ` (${read.bytes.length} bytes)` : ` (${countLines(text)} lines)`;
}
