// read_file: a page of a text file, with line numbers.

import { z } from "zod";
import { headUnits } from "../kit/code-points.ts";
import { describeFileError, NotAFileError } from "./files/access.ts";
import {
  findSimilar,
  isBinaryName,
  isImage,
  looksBinary,
  openWorkspace,
  SNIFFED_BYTES,
  UNCHANGED_NOTICE,
  type Workspace,
} from "./files/workspace.ts";
import type { ToolContext } from "./toolset/context.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";
import { safeCut } from "./toolset/results.ts";

const DEFAULT_LINES = 500;
const LARGE = 512 * 1024;

const parameters = z.object({
  path: z.string().describe("absolute, relative to the working directory, or ~/..."),
  offset: z.number().optional().describe("first line, default 1"),
  limit: z.number().optional().describe(`lines, default ${DEFAULT_LINES}, at most 2000`),
});

register({
  name: "read_file",
  readOnly: true,
  toolset: "file",
  emoji: "📖",
  maxResultChars: Infinity,
  description:
    "Read a text file as numbered lines (N|text; N| is not in the file). Long files come in pages: go on with next_offset. «redacted…» stands for a secret: leave such lines as they are.",
  parameters,
  handler: (args, ctx) => readFile(args, ctx),
});

export async function readFile(args: z.infer<typeof parameters>, ctx: ToolContext): Promise<string> {
  const workspace = await openWorkspace(ctx);
  const path = workspace.absolute(args.path);
  try {
    return await readChecked(args, path, workspace, ctx);
  } catch (error) {
    ctx.signal.throwIfAborted();
    return toolError(error instanceof NotAFileError ? error.message : describeFileError(error, args.path));
  }
}

async function readChecked(
  args: z.infer<typeof parameters>,
  path: string,
  workspace: Workspace,
  ctx: ToolContext,
): Promise<string> {
  const { files } = workspace;
  const refusal = await workspace.refuseRead(path);
  if (refusal !== null) return toolError(refusal);
  const real = await files.resolve(path);
  const facts = await files.facts(real);
  if (!facts)
    return toolError(`File not found: ${args.path}`, { similar_files: await findSimilar(files, path, args.path) });
  if (facts.type === "directory")
    return toolError(
      `${args.path} is a directory. List its files with search_files (target="files", path="${args.path}").`,
    );
  if (facts.type === "other") throw new NotAFileError(args.path);
  if (isImage(path)) return toolError(imageAdvice(args.path, ctx));
  const binary = `${args.path} is a binary file (${facts.size} bytes) and cannot be shown as text.`;
  if (isBinaryName(path)) return toolError(binary);
  const opened = files.chunks(real, ctx.signal)[Symbol.asyncIterator]();
  try {
    const first = await opened.next();
    if (!first.done && looksBinary(first.value.subarray(0, SNIFFED_BYTES))) return toolError(binary);
    const chunks = fromFirst(first, opened);
    return await showFile(args, { path, real, facts, chunks }, workspace, ctx);
  } finally {
    await opened.return?.();
  }
}

/** One file, opened once: what was looked at is what is shown. */
interface OpenedFile {
  readonly path: string;
  readonly real: string;
  readonly facts: { readonly version: string; readonly size: number };
  readonly chunks: AsyncIterable<Buffer>;
}

async function* fromFirst(first: IteratorResult<Buffer>, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  for (let next = first; !next.done; next = await rest.next()) yield next.value;
}

async function showFile(
  args: z.infer<typeof parameters>,
  { path, real, facts, chunks }: OpenedFile,
  workspace: Workspace,
  ctx: ToolContext,
): Promise<string> {
  const { activity } = workspace;
  const offset = Math.max(1, Math.trunc(args.offset ?? 1));
  const { max_lines: maxLines, max_line_length: maxLineLength } = ctx.config.tool_output;
  const limit = Math.min(maxLines, Math.max(1, Math.trunc(args.limit ?? DEFAULT_LINES)));
  const range = `${real}\n${offset}\n${limit}`;
  const inARow = activity.repeat(`read ${range}`);
  if (inARow >= 4)
    return toolError(
      `BLOCKED: this is the same read for the ${inARow}th time in a row (${args.path}, lines from ${offset}). The content is in the conversation; use it, or read another range.`,
    );
  const again = activity.askedAgain(range, facts.version);
  if (again === 1)
    return toolResult({
      status: "unchanged",
      message: UNCHANGED_NOTICE,
      path: args.path,
      dedup: true,
      content_returned: false,
    });
  if (again > 1)
    return toolError(
      `The content of ${args.path} from line ${offset} was already returned and has not changed. Use the earlier result, or ask for another range.`,
      { path: args.path, _warning: inARow >= 3 ? repeatWarning(inARow) : undefined },
    );

  const page = await readPage(chunks, { offset, limit, maxLineLength });
  const shown = fitLines(
    showPage(page, maxLineLength, (text) => workspace.redact(text, path)),
    offset,
    ctx.config.file_read_max_chars,
  );
  const nextOffset = offset + shown.count;
  const truncated = nextOffset <= page.totalLines;
  activity.returned(range, real, facts.version, truncated || offset > 1);
  const hint = hintFor(page.totalLines, offset, truncated, facts.size);
  return toolResult({
    content: shown.text,
    total_lines: page.totalLines,
    file_size: facts.size,
    truncated,
    truncated_by: shown.cut ? "bytes" : undefined,
    hint: hint ?? undefined,
    next_offset: truncated ? nextOffset : undefined,
    _warning: inARow >= 3 ? repeatWarning(inARow) : undefined,
  });
}

/** The lines as the model may see them: without secrets, and none too long. */
function showPage(page: Page, maxLength: number, redact: (text: string) => string): string[] {
  const cut = page.lines.map(({ text, goesOn }) => {
    const isLong = text.length > maxLength || goesOn;
    return { text: isLong ? text.slice(0, safeCut(text, maxLength, -1, redact)) : text, end: isLong ? TRUNCATED : "" };
  });
  const text = cut.map((line) => line.text).join("\n");
  // The header the page does not show is what shows the redactor that these lines are a key.
  const shown = page.startsInKey
    ? redact(`-----BEGIN PRIVATE KEY-----\n${text}`).split("\n").slice(1)
    : redact(text).split("\n");
  return cut.map(({ end }, index) => (shown[index] ?? "") + end);
}

const TRUNCATED = "... [truncated]";

/** Numbered lines up to a number of characters, whole lines only. */
function fitLines(
  lines: readonly string[],
  offset: number,
  maxChars: number,
): { text: string; count: number; cut: boolean } {
  const numbered: string[] = [];
  let length = 0;
  for (const [index, line] of lines.entries()) {
    const row = `${offset + index}|${line}`;
    length += row.length + 1;
    // One line is always shown, or the same page would come for ever.
    if (length > maxChars && numbered.length > 0)
      return { text: numbered.join("\n"), count: numbered.length, cut: true };
    numbered.push(row);
  }
  return { text: numbered.join("\n"), count: numbered.length, cut: false };
}

function hintFor(totalLines: number, offset: number, truncated: boolean, size: number): string | null {
  if (offset > totalLines && totalLines > 0) return `The file ends at line ${totalLines}.`;
  if (truncated && size > LARGE) return "Large file: read the part you need with offset and limit, or search it.";
  return null;
}

function imageAdvice(path: string, ctx: ToolContext): string {
  return ctx.toolNames.has("vision_analyze")
    ? `${path} is an image. Look at it with vision_analyze.`
    : `${path} is an image and cannot be shown as text.`;
}

function repeatWarning(count: number): string {
  return `This is the same call for the ${count}rd time in a row; the next one is refused. Use what you have.`;
}

// A page of lines out of a file of any size: read as a stream, never held whole.

interface PageRequest {
  /** First line, from 1. */
  readonly offset: number;
  readonly limit: number;
  readonly maxLineLength: number;
}

interface Page {
  /** A long line with what follows the limit for a while: what is hidden in it must be seen whole before it is cut. */
  readonly lines: readonly PageLine[];
  readonly totalLines: number;
  /** The page begins inside a private key that began before it. */
  readonly startsInKey: boolean;
}

interface PageLine {
  readonly text: string;
  /** The line goes on behind `text`. */
  readonly goesOn: boolean;
}

const NEWLINE = 0x0a;
/** Longer than most secrets. */
const BEYOND = 1024;

async function readPage(chunks: AsyncIterable<Buffer>, request: PageRequest): Promise<Page> {
  const { offset, limit, maxLineLength } = request;
  // Enough bytes for every character we might show; the rest of a longer line is counted, not kept.
  const maxLineBytes = (maxLineLength + BEYOND) * 4 + 8;
  const lines: PageLine[] = [];
  const keys = createKeyWatch();
  let number = 1;
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let lineBytes = 0;

  const isWanted = () => number >= offset && number < offset + limit;
  const keep = (piece: Buffer) => {
    lineBytes += piece.length;
    if (!isWanted() || keptBytes >= maxLineBytes) return;
    const part = piece.subarray(0, maxLineBytes - keptBytes);
    kept.push(part);
    keptBytes += part.length;
  };
  const finishLine = () => {
    if (isWanted()) lines.push(lineOf(Buffer.concat(kept), lineBytes, number === 1, maxLineLength + BEYOND));
    kept = [];
    keptBytes = 0;
    lineBytes = 0;
    number++;
  };

  for await (const chunk of chunks) {
    let position = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, position)) {
      keep(chunk.subarray(position, end));
      finishLine();
      position = end + 1;
      if (number === offset) keys.look(chunk.subarray(0, position));
    }
    keep(chunk.subarray(position));
    if (number < offset) keys.look(chunk);
  }
  if (lineBytes > 0) finishLine();
  return { lines, totalLines: number - 1, startsInKey: keys.inside() };
}

function lineOf(bytes: Buffer, fullLength: number, isFirst: boolean, maxLength: number): PageLine {
  let text = bytes.toString("utf8");
  if (isFirst && text.startsWith("\ufeff")) text = text.slice(1);
  if (text.endsWith("\r") && bytes.length === fullLength) text = text.slice(0, -1);
  return { text: headUnits(text, maxLength), goesOn: text.length > maxLength || bytes.length < fullLength };
}

/** Watches the text before a page for the beginning and end of private keys. */
function createKeyWatch(): { look(chunk: Buffer): void; inside(): boolean } {
  const MARK = "PRIVATE KEY";
  const REACH = 64;
  let tail = Buffer.alloc(0);
  let inside = false;
  return {
    look(chunk) {
      const text = Buffer.concat([tail, chunk]);
      for (let at = text.indexOf(MARK); at !== -1; at = text.indexOf(MARK, at + 1)) {
        const before = text.toString("latin1", Math.max(0, at - REACH), at);
        const begin = before.lastIndexOf("-----BEGIN");
        const end = before.lastIndexOf("-----END");
        if (begin !== end) inside = begin > end;
      }
      tail = text.subarray(-(REACH + MARK.length));
    },
    inside: () => inside,
  };
}
