// patch, mode "patch": several files in one text. First all of it is tried, then all of it is done.
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { type FuzzyResult, fuzzyReplace, isAlreadyApplied } from "../../kit/fuzzy/replace.ts";
import { runInWorker } from "../../kit/worker.ts";
import { findFileMark } from "../../safety/redact-known.ts";
import { toolError, toolResult } from "../toolset/dispatch.ts";
import { describeFileError } from "./access.ts";
import type { Reviewed } from "./review.ts";
import { type PatchOperation, parsePatch } from "./v4a.ts";
import { type Content, type PatchStep, type Plan, planPatch } from "./v4a-plan.ts";
import { findSimilar, looksBinary, SNIFFED_BYTES, type Workspace } from "./workspace.ts";
import { compareSyntax, notUtf8, readTextFile, shownDiff, tooLarge, writeTextFile } from "./write.ts";

export async function applyPatch(patch: string, crossProfile: boolean, workspace: Workspace): Promise<string> {
  const parsed = parsePatch(patch);
  if (!parsed.ok) return failed(parsed.error);
  const reals = new Map<string, string>();
  const refusals: string[] = [];
  for (const { path, reads } of parsed.operations.flatMap(touchedBy)) {
    if (reals.has(path)) continue;
    const absolute = workspace.absolute(path);
    try {
      const refusal =
        (await workspace.refuseWrite(absolute, crossProfile)) ?? (reads ? await workspace.refuseRead(absolute) : null);
      if (refusal !== null) refusals.push(`${path}: ${refusal}`);
      reals.set(path, await workspace.files.resolve(absolute));
    } catch (error) {
      refusals.push(`${path}: ${describeFileError(error, path)}`);
    }
  }
  if (refusals.length > 0) return validationFailed(refusals);
  return workspace.alone([...reals.values()], (reviewed) => applyLocked(parsed.operations, reals, workspace, reviewed));
}

async function applyLocked(
  operations: readonly PatchOperation[],
  reals: ReadonlyMap<string, string>,
  workspace: Workspace,
  reviewed: Reviewed,
): Promise<string> {
  const { files, activity } = workspace;
  const identify = (path: string) => reals.get(path) ?? path;
  const versions = new Map<string, string>();
  const plan = await planPatch(operations, {
    identify,
    async read(key) {
      try {
        const facts = await files.facts(key);
        const reason = facts?.type === "file" ? tooLarge(key, facts.size) : null;
        if (reason !== null) return { reason };
        const file = await readTextFile(files, key);
        if (file) versions.set(key, file.version);
        return file && !file.isUtf8 ? { reason: notUtf8(key) } : (file?.text ?? null);
      } catch (error) {
        throw new Error(describeFileError(error, key));
      }
    },
  });
  const failures = [...plan.failures, ...findMarks(plan, operations, identify)];
  if (failures.length > 0) {
    for (const operation of operations)
      if (failures.some((failure) => failure.startsWith(`${operation.path}: `)))
        activity.patchFailed(identify(operation.path));
    return validationFailed(failures.map((failure) => workspace.redact(failure, "")));
  }
  reviewed(
    [...plan.files].flatMap(([path, { before, after }]) =>
      before === after ? [] : [{ path, before: textOf(before), after: textOf(after) }],
    ),
  );
  const stale = [...versions].flatMap(([key, version]) => activity.staleness(key, version) ?? []);
  const problem = await runSteps(plan, workspace);
  if (problem !== null) return failed(problem);

  const diffs: string[] = [];
  const lint: string[] = [];
  for (const operation of operations) {
    const changed = operation.type === "move" ? operation.to : operation.path;
    const file = plan.files.get(identify(changed));
    if (typeof file?.after !== "string") continue;
    const before = plan.files.get(identify(operation.path))?.before ?? null;
    const syntax = await compareSyntax(changed, textOf(before), file.after);
    if (syntax.introduced !== null && !lint.includes(`${changed}: ${syntax.introduced}`))
      lint.push(`${changed}: ${syntax.introduced}`);
  }
  for (const [key, file] of plan.files) {
    const path = operations.flatMap(touchedBy).find((touched) => identify(touched.path) === key)?.path ?? key;
    const [before, after] = [textOf(file.before), textOf(file.after)];
    const side = (text: string | null) => (text === null ? null : { path, text });
    diffs.push(await shownDiff(side(before), side(after), (text) => workspace.redact(text, path)));
  }
  const warnings = [...plan.warnings, ...(stale.length > 0 ? [`Careful: ${stale[0]}.`] : [])];
  return toolResult({
    success: true,
    diff: diffs.join(""),
    files_modified: [...new Set(operations.map((op) => (op.type === "move" ? `${op.path} -> ${op.to}` : op.path)))],
    lint: lint.join("; ") || undefined,
    _warning: warnings.join(" ") || undefined,
  });
}

const textOf = (content: Content) => (typeof content === "string" ? content : null);

function touchedBy(operation: PatchOperation): { path: string; reads: boolean }[] {
  const changes = operation.type === "update" || (operation.type === "move" && operation.hunks.length > 0);
  const own = { path: operation.path, reads: changes };
  return operation.type === "move" ? [own, { path: operation.to, reads: false }] : [own];
}

/** Files into which the patch would write a mark that stands for a secret. */
function findMarks(plan: Plan, operations: readonly PatchOperation[], identify: (path: string) => string): string[] {
  return operations.flatMap((operation) => {
    const before = textOf(plan.files.get(identify(operation.path))?.before ?? null);
    const changed = operation.type === "move" ? operation.to : operation.path;
    const mark = findFileMark(textOf(plan.files.get(identify(changed))?.after ?? null) ?? "");
    return mark !== null && !before?.includes(mark)
      ? [`${operation.path}: ${mark} stands for a secret that is not shown; leave that line out of the patch`]
      : [];
  });
}

/** Does what was planned; what was done before a failure is taken back. Null, or what went wrong. */
async function runSteps(plan: Plan, workspace: Workspace): Promise<string | null> {
  const steps = plan.steps.map(withBackup);
  for (const [index, step] of steps.entries()) {
    try {
      await runStep(step, workspace);
    } catch (error) {
      const left = await undo(steps.slice(0, index), workspace);
      const state = left.length === 0 ? "All files are as they were." : `Not restored: ${left.join(", ")}.`;
      return `The patch could not be applied: ${describeFileError(error, step.key)}. ${state}`;
    }
  }
  for (const step of steps) if (step.type === "remove") await workspace.files.remove(step.backup);
  return null;
}

/** A file that is to be removed is kept as a backup until everything is done: it can come back as it was. */
type Step =
  | Exclude<PatchStep, { type: "remove" }>
  | (Extract<PatchStep, { type: "remove" }> & { readonly backup: string });

function withBackup(step: PatchStep): Step {
  if (step.type !== "remove") return step;
  return { ...step, backup: join(dirname(step.key), `.hermes-removed-${randomBytes(6).toString("hex")}`) };
}

async function runStep(step: Step, { files, activity }: Workspace): Promise<void> {
  switch (step.type) {
    case "write": {
      const written = await writeTextFile(files, step.key, step.text);
      activity.wrote(step.key, written.version);
      return;
    }
    case "remove":
      await files.move(step.key, step.backup);
      activity.removed(step.key);
      return;
    case "move":
      await files.makeDirectory(dirname(step.to));
      await files.move(step.key, step.to);
      activity.removed(step.key);
  }
}

async function undo(done: readonly Step[], { files }: Workspace): Promise<string[]> {
  const left: string[] = [];
  for (const step of done.toReversed()) {
    try {
      if (step.type === "move") await files.move(step.to, step.key);
      else if (step.type === "remove") await files.move(step.backup, step.key);
      else if (step.before === null) await files.remove(step.key);
      else await writeTextFile(files, step.key, step.before);
    } catch {
      left.push(step.key); // reported to the model by the caller
    }
  }
  return left;
}

function validationFailed(reasons: readonly string[]): string {
  return failed(
    `Patch validation failed (no files were modified):${reasons.map((reason) => `\n  • ${reason}`).join("")}`,
  );
}

// patch, mode "replace": one text in one file.

interface ReplaceRequest {
  /** As the model spelled it. */
  readonly asked: string;
  /** Real path. */
  readonly path: string;
  readonly old: string;
  readonly new: string;
  readonly replaceAll: boolean;
}

/** The caller holds the file's lock and has asked the guards. */
export async function replaceInFile(
  request: ReplaceRequest,
  workspace: Workspace,
  signal: AbortSignal,
  reviewed: Reviewed,
): Promise<string> {
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

  const result = await replaced(file.text, request, signal);
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
  reviewed([{ path, before: file.text, after: result.text }]);
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
    lint: syntax.introduced ?? undefined,
    _warning: warnings.join(" ") || undefined,
  });
}

/** What takes longer than this takes is done elsewhere. */
const LARGE_CHARS = 512 * 1024;
const WORKER_LIMITS = { timeMs: 60_000, memoryMb: 512 };

async function replaced(text: string, request: ReplaceRequest, signal: AbortSignal): Promise<FuzzyResult> {
  const { old, new: replacement, replaceAll } = request;
  if (text.length > LARGE_CHARS && !text.includes(old)) {
    const worker = new URL("./fuzzy-worker.ts", import.meta.url);
    const found = await runInWorker<FuzzyResult>(
      worker,
      { text, old, replacement, replaceAll },
      { signal, ...WORKER_LIMITS },
    );
    if (found) return found;
  }
  return fuzzyReplace(text, old, replacement, { replaceAll });
}

export function failed(message: string, extra: Readonly<Record<string, unknown>> = {}): string {
  return toolError(message, { success: false, ...extra });
}
