// patch, mode "replace": one text in one file.
import { fuzzyReplace, isAlreadyApplied } from "../kit/fuzzy/replace.ts";
import { findFileMark } from "../safety/redact/marks.ts";
import { shownDiff } from "./file-diff.ts";
import { looksBinary, SNIFFED_BYTES } from "./file-kinds.ts";
import { findSimilar } from "./file-similar.ts";
import type { Workspace } from "./files/workspace.ts";
import { compareSyntax, notUtf8, readTextFile, tooLarge, writeTextFile } from "./files/write.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";

export interface ReplaceRequest {
  /** As the model spelled it. */
  readonly asked: string;
  /** Real path. */
  readonly path: string;
  readonly old: string;
  readonly new: string;
  readonly replaceAll: boolean;
}

/** The caller holds the file's lock and has asked the guards. */
export async function replaceInFile(request: ReplaceRequest, workspace: Workspace): Promise<string> {
  const { files, activity } = workspace;
  const { asked, path } = request;
  const facts = await files.facts(path);
  if (!facts) return failed(`File not found: ${asked}`, { similar_files: await findSimilar(files, path, asked) });
  const refusal = tooLarge(asked, facts.size);
  if (refusal !== null) return failed(refusal);
  const file = await readTextFile(files, path);
  if (!file) return failed(`File not found: ${asked}`);
  if (!file.isUtf8) return failed(notUtf8(asked));
  if (looksBinary(Buffer.from(file.text.slice(0, SNIFFED_BYTES)))) return failed(`${asked} is a binary file.`);
  const mark = [request.old, request.new]
    .map(findFileMark)
    .find((found) => found !== null && !file.text.includes(found));
  if (mark)
    return failed(
      `${mark} stands for a secret that is not shown; it is not in the file. Leave that line out of old_string and new_string.`,
    );

  const result = fuzzyReplace(file.text, request.old, request.new, { replaceAll: request.replaceAll });
  if (!result.ok) {
    if (
      (result.code === "not_found" || result.code === "identical") &&
      isAlreadyApplied(file.text, request.old, request.new)
    )
      return toolResult({
        success: true,
        no_change: true,
        note: "The file already holds new_string; nothing was written.",
      });
    const again =
      activity.patchFailed(path) >= 3
        ? `\n\nThis is the third failed patch of ${asked}: read the file again before the next one.`
        : "";
    return failed(workspace.redact(result.message, path) + again);
  }
  const stale = activity.staleness(path, file.version);
  const syntax = await compareSyntax(path, file.text, result.text);
  const written = await writeTextFile(files, path, result.text);
  activity.wrote(path, written.version);
  const side = (text: string) => ({ path: asked, text });
  const diff = await shownDiff(side(file.text), side(result.text), (text) => workspace.redact(text, path));
  const warnings = [result.warning, stale === null ? undefined : `Careful: ${stale}.`].filter(
    (warning) => warning !== undefined,
  );
  return toolResult({
    success: true,
    diff,
    files_modified: [asked],
    ...(syntax.introduced !== null && { lint: syntax.introduced }),
    ...(warnings.length > 0 && { _warning: warnings.join(" ") }),
  });
}

export function failed(message: string, extra: Readonly<Record<string, unknown>> = {}): string {
  return toolError(message, { success: false, ...extra });
}
