// Writes that wait for the user's yes: `pending/skills/<id>.json`, each replaying the call it came from.
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { countCodePoints, truncateCodePoints } from "../kit/code-points.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { parseFrontMatter } from "../kit/front-matter.ts";
import { unquote } from "../kit/front-matter-plain.ts";
import { boolean, number, oneOf, optional, parseAs, record, type ShapeOf, text } from "../kit/json.ts";
import { unifiedDiff } from "../kit/unified-diff.ts";
import { ACTIONS, type ManageCall, type ManageRequest, type Plan } from "./manage/write.ts";
import { textField } from "./read-entry.ts";
import type { SkillsContext } from "./roots.ts";
import type { SkillResult } from "./run.ts";

const maybeText = optional(text);
const payload = record({
  action: oneOf(ACTIONS),
  name: text,
  content: maybeText,
  old_string: maybeText,
  new_string: maybeText,
  replace_all: optional(boolean),
  category: maybeText,
  file_path: maybeText,
  file_content: maybeText,
  absorbed_into: maybeText,
});
const pendingWrite = record({
  id: text,
  subsystem: oneOf(["skills"]),
  action: text,
  summary: text,
  origin: text,
  created_at: number,
  payload,
  /** Whose text was in the conversation when it was made. */
  source: maybeText,
});

export type PendingWrite = ShapeOf<typeof pendingWrite>;

const folder = (context: Pick<SkillsContext, "paths">) => context.paths.at("pending", "skills");

/** Stores a checked change for approval. Throws when it cannot: nothing is dropped silently. */
export async function stage({ request, context, run }: ManageCall, plan: Plan): Promise<SkillResult> {
  const id = Math.floor(context.clock.random() * 0x1_0000_0000)
    .toString(16)
    .padStart(8, "0");
  const gist = await gistOf(request, plan);
  const source = run.foreignText?.() ?? null;
  const written: PendingWrite = {
    id,
    subsystem: "skills",
    action: request.action,
    summary: gist,
    origin: run.origin,
    created_at: context.clock.now() / 1000,
    payload: request,
    ...(source !== null && { source }),
  };
  await mkdir(folder(context), { recursive: true, mode: 0o700 });
  await writeFileAtomic(join(folder(context), `${id}.json`), `${JSON.stringify(written, null, 2)}\n`, { mode: 0o600 });
  return {
    success: true,
    staged: true,
    pending_id: id,
    gist,
    message: `The change waits for the user's approval${source === null ? "" : `, because text from outside (${source}) is in this conversation`} (/skills approve ${id}). It is not in force yet; do not send it again.`,
  };
}

/** Oldest first. Files that are no records are left out. */
export async function listPending(context: Pick<SkillsContext, "paths">): Promise<readonly PendingWrite[]> {
  const names = await readdir(folder(context)).catch(() => []);
  const records = await Promise.all(
    names.filter((name) => name.endsWith(".json")).map((name) => readRecord(join(folder(context), name))),
  );
  return records.filter((one) => one !== null).sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
}

export async function dropPending(context: Pick<SkillsContext, "paths">, id: string): Promise<boolean> {
  if (!(await listPending(context)).some((one) => one.id === id)) return false;
  await rm(join(folder(context), `${id}.json`), { force: true });
  return true;
}

/** What the change would do to the file as it is now. */
export async function diffOf(plan: Plan): Promise<string> {
  const side = (content: string | null) => (content === null ? null : { path: plan.file, text: content });
  return unifiedDiff(side(plan.before), side(plan.after));
}

async function gistOf(request: ManageRequest, plan: Plan): Promise<string> {
  const name = `'${plan.skillName}'`;
  if (plan.file === "SKILL.md" && (request.action === "create" || request.action !== "patch") && plan.after !== null) {
    const verb = request.action === "create" ? "create" : "rewrite";
    const description = unquote(textField(parseFrontMatter(plan.after).fields.description));
    return `${verb} ${name} — ${truncateCodePoints(description, 120, "…")} (${sizeOf(plan.after)})`;
  }
  if (request.action !== "patch")
    return `${request.action} ${name} ${request.action === "delete" ? "" : plan.file}`.trim();
  const lines = (await diffOf(plan)).split("\n").slice(2);
  const count = (sign: string) => lines.filter((line) => line.startsWith(sign)).length;
  return `patch ${name} ${plan.file} (+${count("+")}/-${count("-")} lines)`;
}

function sizeOf(content: string): string {
  const chars = countCodePoints(content);
  return chars < 1024 ? `${chars} chars` : `${Math.round(Buffer.byteLength(content) / 1024)} KB`;
}

async function readRecord(path: string): Promise<PendingWrite | null> {
  try {
    return parseAs(await readFile(path, "utf8"), pendingWrite);
  } catch {
    return null; // removed meanwhile
  }
}
