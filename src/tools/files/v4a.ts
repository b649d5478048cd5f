// The patch format of many files in one text: reading it. What cannot be understood is an error, never left out.
import { type PatchMarker, type PatchVerb, readPatchMarker, splitMove } from "../../kit/patch-headers.ts";
import { hasTraversalComponent } from "../../safety/paths.ts";

export type PatchOperation =
  | { readonly type: "add"; readonly path: string; readonly content: string }
  | { readonly type: "delete"; readonly path: string }
  /** `hunks` change the file on its way; none: it only gets another name. */
  | { readonly type: "move"; readonly path: string; readonly to: string; readonly hunks: readonly Hunk[] }
  | { readonly type: "update"; readonly path: string; readonly hunks: readonly Hunk[] };

export interface Hunk {
  /** Lines of the file above the place, from the outermost (a class) to the nearest (its method). */
  readonly hints: readonly string[];
  readonly lines: readonly HunkLine[];
  /** Its last line is the file's last. */
  readonly atEnd: boolean;
}

interface HunkLine {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

type ParsedPatch =
  | { readonly ok: true; readonly operations: readonly PatchOperation[] }
  | { readonly ok: false; readonly error: string };

const KNOWN =
  "`*** Update File: path`, `*** Add File: path`, `*** Delete File: path`, `*** Move File: old -> new`, `*** Move to: path`, `*** End of File`, `*** End Patch`";

export function parsePatch(patch: string): ParsedPatch {
  const { sections, problems } = splitSections(patch.replaceAll("\r\n", "\n").split("\n"));
  const operations: PatchOperation[] = [];
  for (const section of sections) {
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
  readonly verb: PatchVerb;
  readonly path: string;
  to: string;
  readonly body: (string | typeof END_OF_FILE)[];
}

const END_OF_FILE = Symbol("end of file");

function splitSections(lines: readonly string[]): {
  readonly sections: readonly Section[];
  readonly problems: string[];
} {
  const sections: Section[] = [];
  const problems: string[] = [];
  let section: Section | null = null;
  let ended = false;
  for (const [index, line] of lines.entries()) {
    const report = (problem: string) => void problems.push(`line ${index + 1}: "${line.trim()}" ${problem}`);
    const marker = markerAt(lines, index, section);
    if (marker?.type === "begin" || marker?.type === "end") {
      section = null;
      ended = marker.type === "end";
    } else if (marker?.type === "header") {
      if (ended) report("stands behind *** End Patch");
      const [path, to] = marker.verb === "Move" ? splitMove(marker.path) : [marker.path, ""];
      section = { verb: marker.verb, path, to, body: [] };
      sections.push(section);
    } else if (marker?.type === "move_to") {
      if (!section || section.verb === "Add" || section.verb === "Delete" || section.to !== "")
        report("must stand once below *** Update File: path");
      else if (marker.path === "") report("names no path");
      else section.to = marker.path;
    } else if (marker?.type === "end_of_file") section?.body.push(END_OF_FILE);
    else if (line.startsWith("***"))
      report(`is not a line of a patch (there are ${KNOWN}; text of a file has a blank, + or - in front)`);
    else if (section) section.body.push(line);
    else if (!ended && /^(?:@@|[+-])/.test(line)) report("stands above the first *** header");
  }
  return { sections, problems };
}

/** A blank in front makes a line of a hunk context, also when it reads like a marker; unless what follows can only follow a marker. */
function markerAt(lines: readonly string[], index: number, section: Section | null): PatchMarker | null {
  const line = lines[index] ?? "";
  const marker = readPatchMarker(line);
  const inHunk = (section?.verb === "Update" || section?.verb === "Move") && section.body.some(isSigned);
  if (!marker || line.startsWith("***") || !inHunk) return marker;
  let next = index + 1;
  if (marker.type === "header" && marker.verb === "Add") while (lines[next]?.startsWith("+")) next++;
  while (lines[next]?.trim() === "") next++;
  const following = lines[next];
  return following === undefined || following.startsWith("@@") || readPatchMarker(following) !== null ? marker : null;
}

const isSigned = (line: Section["body"][number]) => typeof line === "string" && /^[ +-]/.test(line);

function readSection({ verb, path, to, body }: Section): PatchOperation | string {
  const what = verb.toUpperCase();
  if (path === "") return `${what}: the header names no path`;
  for (const one of [path, to])
    if (hasTraversalComponent(one)) return `${what} '${one}': ".." is not allowed in a path`;
  switch (verb) {
    case "Add":
      return { type: "add", path, content: addedText(body) };
    case "Delete":
      if (body.some((line) => typeof line === "string" && line.startsWith("+")))
        return `DELETE '${path}': there are added lines below it; use Update File, or Add File under another name`;
      return { type: "delete", path };
    case "Move":
      return to === ""
        ? `MOVE '${path}': expected "old path -> new path"`
        : { type: "move", path, to, hunks: readHunks(body) };
    case "Update": {
      const hunks = readHunks(body);
      if (to !== "") return { type: "move", path, to, hunks };
      return hunks.length === 0 ? `UPDATE '${path}': no hunks found` : { type: "update", path, hunks };
    }
  }
}

/** Lines after `+`, each with a line break; one without a sign is taken as it is, for a model that forgot it. */
function addedText(body: Section["body"]): string {
  const given = withoutTrailingBlank(body.filter((line) => typeof line === "string"));
  const lines = given
    .filter((line) => !line.startsWith("\\"))
    .map((line) => (line.startsWith("+") ? line.slice(1) : line));
  const text = lines.join("\n");
  return lines.length === 0 || /^\\ No newline/i.test(given.at(-1) ?? "") ? text : `${text}\n`;
}

function readHunks(body: Section["body"]): Hunk[] {
  interface Open extends Hunk {
    readonly hints: string[];
    readonly lines: HunkLine[];
    atEnd: boolean;
  }
  const hunks: Open[] = [];
  const open = () => {
    const hunk: Open = { hints: [], lines: [], atEnd: false };
    hunks.push(hunk);
    return hunk;
  };
  for (const line of body) {
    const last = hunks.at(-1);
    if (line === END_OF_FILE) {
      if (last) last.atEnd = true;
    } else if (line.startsWith("@@")) {
      const hint = line.replace(/^@@\s?/, "").replace(/\s?@@\s*$/, "");
      // Headers in a row lead step by step to one place.
      const hunk = last?.lines.every(isGap) ? last : open();
      hunk.lines.length = 0;
      if (hint.trim() !== "") hunk.hints.push(hint);
    } else if (!line.startsWith("\\")) (last ?? open()).lines.push(readHunkLine(line));
  }
  return hunks.map(withoutTrailingGap).filter((hunk) => hunk.lines.some((line) => line.sign !== " "));
}

/** An empty line between two hunks is spacing, not context. */
function withoutTrailingGap(hunk: Hunk): Hunk {
  let end = hunk.lines.length;
  while (hunk.lines.slice(end - 1, end).some(isGap)) end--;
  return { ...hunk, lines: hunk.lines.slice(0, end) };
}

const isGap = ({ sign, text }: HunkLine) => sign === " " && text === "";

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
