// Searching below a directory: what an engine promises.

export interface FoundLine {
  /** Relative to the root, with `/`; the file's own name when the root is a file. */
  readonly path: string;
  readonly line: number;
  /** Of a long line its beginning. */
  readonly content: string;
  readonly before?: readonly string[];
  readonly after?: readonly string[];
}

export interface ContentQuery {
  /** Absolute and real: a directory or a file. */
  readonly root: string;
  readonly isFile: boolean;
  /** A regular expression of the engine's dialect. */
  readonly pattern: string;
  readonly accepts: PathFilter;
  /** Lines of context on each side. */
  readonly context: number;
  readonly maxMatches: number;
  readonly signal: AbortSignal;
}

export interface PathFilter {
  (path: string): boolean;
  /** The filter as one glob on the file's name, where it is no more than that. */
  readonly nameGlob?: string;
}

export interface FoundLines {
  /** Sorted by path, then line. */
  readonly lines: readonly FoundLine[];
  /** False when the search stopped at `maxMatches`, or passed lines by that are too long to be shown. */
  readonly complete: boolean;
}

/**
 * Looks through the files below a root.
 *
 * - Hidden and ignored files (.gitignore, .ignore) are left out, unless the root itself is one; binary files and links are left out.
 * - A pattern it cannot read makes it reject with `SearchPatternError` in its own words.
 */
export interface SearchEngine {
  readonly name: string;
  findLines(query: ContentQuery): Promise<FoundLines>;
  /** All files below a directory, in no particular order. */
  listFiles(root: string, signal: AbortSignal): Promise<string[]>;
}

export class SearchPatternError extends Error {
  override name = "SearchPatternError";
}

/** More than any result shows. */
const MAX_KEPT = 4096;

/** The beginning of a line, as a text of its own: a piece of a larger text would keep all of that in memory. */
export function keepText(line: string): string {
  return Buffer.from(line.slice(0, MAX_KEPT), "utf16le").toString("utf16le");
}

export function sortLines(lines: FoundLine[]): FoundLine[] {
  return lines.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
}
