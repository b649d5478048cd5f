// write_file: a file's whole content.
import { z } from "zod";
import { unifiedDiff } from "../kit/unified-diff.ts";
import { findFileMark } from "../safety/redact-known.ts";
import { describeFileError } from "./files/access.ts";
import type { Reviewed } from "./files/review.ts";
import { openWorkspace, UNCHANGED_NOTICE, type Workspace } from "./files/workspace.ts";
import { compareSyntax, dressLike, readTextFile, writeTextFile } from "./files/write.ts";
import type { ToolContext } from "./toolset/context.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const MAX_DIFFED_CHARS = 200_000;

const parameters = z.object({
  path: z.string(),
  content: z.string().describe("the whole new content"),
  cross_profile: z.boolean().optional().describe("the user asked for another profile"),
});

register({
  name: "write_file",
  toolset: "file",
  emoji: "✍️",
  description:
    "Write a whole file; makes missing directories, replaces what was there. For a part of a file use patch.",
  parameters,
  handler: (args, ctx) => writeFile(args, ctx),
});

export async function writeFile(args: z.infer<typeof parameters>, ctx: ToolContext): Promise<string> {
  if (args.path.trim() === "") return toolError("Missing argument: path is empty.");
  if (args.path.trim().endsWith("/")) return toolError(`${args.path} names a directory; give the file's name too.`);
  if (args.content.includes(UNCHANGED_NOTICE) && args.content.length < UNCHANGED_NOTICE.length + 200)
    return toolError("content is the notice that a file is unchanged, not a file's text. Write the real content.");
  const workspace = await openWorkspace(ctx);
  const path = workspace.absolute(args.path);
  try {
    const refusal = await workspace.refuseWrite(path, args.cross_profile ?? false);
    if (refusal !== null) return toolError(refusal);
    const real = await workspace.files.resolve(path);
    const { path: asked, content } = args;
    return await workspace.alone([real], (reviewed) =>
      writeLocked({ asked, path: real, content }, workspace, ctx, reviewed),
    );
  } catch (error) {
    ctx.signal.throwIfAborted();
    return toolError(describeFileError(error, args.path));
  }
}

async function writeLocked(
  { asked, path, content }: { readonly asked: string; readonly path: string; readonly content: string },
  workspace: Workspace,
  ctx: ToolContext,
  reviewed: Reviewed,
): Promise<string> {
  const { files, activity } = workspace;
  const old = await readTextFile(files, path);
  const mark = findFileMark(content);
  if (mark !== null && !old?.text.includes(mark))
    return toolError(
      `content holds ${mark}, which stands for a secret of ${asked} that is not shown. Writing it would destroy the secret: use patch on the other lines.`,
    );
  const text = old ? dressLike(content, old.text) : content;
  const syntax = await compareSyntax(path, old?.text ?? null, text);
  if (syntax.breaks)
    return toolError(
      `${asked} was not written: it is valid now and would become ${syntax.introduced}. Fix the content.`,
    );
  const warnings = old ? warningsFor(workspace, path, old.version) : [];
  reviewed([{ path, before: old?.text ?? null, after: text }]);
  const written = await writeTextFile(files, path, text);
  activity.wrote(path, written.version);
  await showChange(asked, old?.text ?? null, text, ctx);
  return toolResult({
    bytes_written: written.bytes,
    dirs_created: written.dirsCreated,
    lint: syntax.introduced ?? undefined,
    _warning: warnings.join(" ") || undefined,
  });
}

/** Big files are written without a diff: it costs seconds and nobody reads it. */
async function showChange(path: string, before: string | null, after: string, ctx: ToolContext): Promise<void> {
  if (!ctx.showDiff || (before?.length ?? 0) + after.length > MAX_DIFFED_CHARS) return;
  const diff = await unifiedDiff(before === null ? null : { path, text: before }, { path, text: after });
  if (diff !== "") ctx.showDiff(diff);
}

function warningsFor(workspace: Workspace, path: string, version: string): string[] {
  const stale = workspace.activity.staleness(path, version);
  if (stale !== null) return [`Careful: ${stale}.`];
  const partly = workspace.activity.seen(path)?.partial === true;
  return partly ? ["Careful: only a part of this file had been read before all of it was replaced."] : [];
}
