// What a checkpoint is, as it stands in the store: a commit whose body is one line of JSON.
import { type GitPlace, gitFields, runGit } from "./git.ts";
import type { LeftOut } from "./left-out.ts";

export interface Checkpoint {
  /** The commit. */
  readonly id: string;
  readonly tree: string;
  /** Unix seconds. */
  readonly at: number;
  /** What was about to happen. */
  readonly why: string;
  readonly sessionId: string | null;
  /** Files of then that are not in it. */
  readonly leftOut: readonly LeftOut[];
}

/** One entry of a checkpoint's tree. */
export interface KeptFile {
  readonly mode: "100644" | "100755" | "120000";
  readonly blob: string;
  readonly size: number;
}

const MOST_LEFT_OUT = 1000;
const MOST_WHY = 100;

export function messageOf(about: Pick<Checkpoint, "why" | "sessionId" | "leftOut">): string {
  const why = about.why.replace(/\p{Cc}+/gu, " ").trim();
  const subject = why.length > MOST_WHY ? `${why.slice(0, MOST_WHY - 1).toWellFormed()}…` : why;
  const body = { session: about.sessionId, left_out: about.leftOut.slice(0, MOST_LEFT_OUT) };
  return `${subject || "checkpoint"}\n\n${JSON.stringify(body)}\n`;
}

/** Newest first; empty when the project has none. */
export async function readCheckpoints(git: GitPlace, ref: string, most?: number): Promise<Checkpoint[]> {
  const present = await gitFields(git, { args: ["for-each-ref", "--format=%(objectname)", ref] });
  if (present.length === 0 || present[0]?.trim() === "") return [];
  const limit = most === undefined ? [] : [`--max-count=${most}`];
  const args = ["log", "-z", ...limit, "--format=%H%x1f%T%x1f%ct%x1f%s%x1f%b", ref, "--"];
  return (await gitFields(git, { args })).map((line) => {
    const [id = "", tree = "", at = "0", why = "", body = ""] = line.split("\x1f");
    return { id, tree, at: Number(at), why, ...parseBody(body) };
  });
}

/** A body of another program's making tells nothing; the files of the commit are what counts. */
function parseBody(text: string): Pick<Checkpoint, "sessionId" | "leftOut"> {
  try {
    const body = JSON.parse(text) as { session?: unknown; left_out?: unknown }; // looked at field by field
    const leftOut = Array.isArray(body.left_out) ? body.left_out.filter(isLeftOut) : [];
    return { sessionId: typeof body.session === "string" ? body.session : null, leftOut };
  } catch {
    return { sessionId: null, leftOut: [] };
  }
}

function isLeftOut(value: unknown): value is LeftOut {
  return typeof value === "object" && value !== null && "path" in value && typeof value.path === "string";
}

export async function readTree(git: GitPlace, tree: string): Promise<Map<string, KeptFile>> {
  const files = new Map<string, KeptFile>();
  for (const line of await gitFields(git, { args: ["ls-tree", "-r", "-l", "-z", tree] })) {
    const found = /^(100644|100755|120000) blob ([0-9a-f]+) +(\d+)\t([\s\S]+)$/.exec(line);
    if (!found) continue; // a nested repository of another program's making
    const [, mode, blob = "", size, path = ""] = found;
    files.set(path, { mode: mode as KeptFile["mode"], blob, size: Number(size) }); // one of the three the pattern names
  }
  return files;
}

/** The contents of some blobs, in the order asked. */
export async function readBlobs(git: GitPlace, blobs: readonly string[]): Promise<Buffer[]> {
  const out = await runGit(git, { args: ["cat-file", "--batch"], stdin: blobs.map((blob) => `${blob}\n`).join("") });
  const contents: Buffer[] = [];
  let at = 0;
  for (const blob of blobs) {
    const lineEnd = out.indexOf(0x0a, at);
    const size = Number(/ blob (\d+)$/.exec(out.toString("latin1", at, lineEnd))?.[1] ?? Number.NaN);
    if (!Number.isFinite(size)) throw new Error(`the checkpoint store has lost ${blob}`);
    contents.push(out.subarray(lineEnd + 1, lineEnd + 1 + size));
    at = lineEnd + 1 + size + 1;
  }
  return contents;
}
