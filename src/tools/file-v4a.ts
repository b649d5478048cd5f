// The patch format of many files in one text: reading it.
import { hasTraversalComponent } from "../safety/paths.ts";

export type PatchOperation =
  | { readonly type: "add"; readonly path: string; readonly content: string }
  | { readonly type: "delete"; readonly path: string }
  | { readonly type: "move"; readonly path: string; readonly to: string }
  | { readonly type: "update"; readonly path: string; readonly hunks: readonly Hunk[] };

export interface Hunk {
  /** A line of the file above the place, or null. */
  readonly hint: string | null;
  readonly lines: readonly HunkLine[];
}

export interface HunkLine {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

export type ParsedPatch =
  | { readonly ok: true; readonly operations: readonly PatchOperation[] }
  | { readonly ok: false; readonly error: string };

/** A line of a related format that some models add. */
const END_OF_FILE = "*** End of File";
const HEADER = /^\*\*\* (Update|Add|Delete|Move) File:\s*(.+?)\s*$/;

export function parsePatch(patch: string): ParsedPatch {
  const operations: PatchOperation[] = [];
  const problems: string[] = [];
  for (const section of splitSections(betweenMarkers(patch.replaceAll("\r\n", "\n").split("\n")))) {
    const operation = readSection(section);
    if (typeof operation === "string") problems.push(operation);
    else operations.push(operation);
  }
  if (problems.length > 0) return { ok: false, error: `Parse error: ${problems.join("; ")}` };
  if (operations.length === 0)
    return {
      ok: false,
      error:
        "Parse error: no operation found. A patch has lines such as `*** Update File: path`, then hunks that begin with @@.",
    };
  return { ok: true, operations };
}

interface Section {
  readonly verb: string;
  readonly name: string;
  readonly body: string[];
}

function betweenMarkers(lines: readonly string[]): readonly string[] {
  const begin = lines.findIndex((line) => line.trimEnd() === "*** Begin Patch");
  const end = lines.findIndex((line, index) => index > begin && line.trimEnd() === "*** End Patch");
  return lines.slice(begin + 1, end === -1 ? undefined : end);
}

function splitSections(lines: readonly string[]): Section[] {
  const sections: Section[] = [];
  for (const line of lines) {
    if (line.trimEnd() === END_OF_FILE) continue;
    const header = HEADER.exec(line);
    if (header) sections.push({ verb: header[1] ?? "", name: header[2] ?? "", body: [] });
    else sections.at(-1)?.body.push(line);
  }
  return sections;
}

function readSection({ verb, name, body }: Section): PatchOperation | string {
  const [path = "", to = ""] = verb === "Move" ? splitMove(name) : [name];
  if (hasTraversalComponent(path) || hasTraversalComponent(to))
    return `${verb.toUpperCase()} '${name}': ".." is not allowed in a path`;
  switch (verb) {
    case "Add":
      return { type: "add", path, content: addedLines(body).join("\n") };
    case "Delete":
      return { type: "delete", path };
    case "Move":
      return to === "" ? `MOVE '${name}': expected "old path -> new path"` : { type: "move", path, to };
    default: {
      const hunks = readHunks(body);
      return hunks.length === 0 ? `UPDATE '${path}': no hunks found` : { type: "update", path, hunks };
    }
  }
}

function splitMove(name: string): string[] {
  return name.split(/\s+->\s+/, 2).map((part) => part.trim());
}

/** Lines after `+`; one without a sign is taken as it is, for a model that forgot it. */
function addedLines(body: readonly string[]): string[] {
  const lines = withoutTrailingBlank(body).filter((line) => !line.startsWith("\\"));
  return lines.map((line) => (line.startsWith("+") ? line.slice(1) : line));
}

function readHunks(body: readonly string[]): Hunk[] {
  const hunks: { hint: string | null; lines: HunkLine[] }[] = [];
  for (const line of withoutTrailingBlank(body)) {
    if (line.startsWith("@@")) {
      const hint = line.replace(/^@@\s?/, "").replace(/\s?@@\s*$/, "");
      hunks.push({ hint: hint.trim() === "" ? null : hint, lines: [] });
      continue;
    }
    if (line.startsWith("\\")) continue;
    let hunk = hunks.at(-1);
    if (!hunk) {
      hunk = { hint: null, lines: [] };
      hunks.push(hunk);
    }
    hunk.lines.push(readHunkLine(line));
  }
  return hunks.map(withoutTrailingGap).filter((hunk) => hunk.lines.some((line) => line.sign !== " "));
}

/** An empty line between two hunks is spacing, not context. */
function withoutTrailingGap(hunk: Hunk): Hunk {
  let end = hunk.lines.length;
  while (end > 0 && hunk.lines[end - 1]?.sign === " " && hunk.lines[end - 1]?.text === "") end--;
  return { ...hunk, lines: hunk.lines.slice(0, end) };
}

function readHunkLine(line: string): HunkLine {
  const sign = line[0];
  if (sign === "+" || sign === "-" || sign === " ") return { sign, text: line.slice(1) };
  return { sign: " ", text: line };
}

function withoutTrailingBlank(lines: readonly string[]): string[] {
  let end = lines.length;
  while (end > 0 && lines[end - 1] === "") end--;
  return lines.slice(0, end);
}
