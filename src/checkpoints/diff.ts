// What changed since a checkpoint.
import { runGit } from "./git.ts";
import { type Checkpoint, readTree } from "./records.ts";
import type { CheckpointStore } from "./store.ts";

const MOST_BYTES = 200_000;

export interface SinceThen {
  /** One line per file with how much of it changed; empty when nothing did. */
  readonly summary: string;
  readonly patch: string;
  /** The patch is longer than this. */
  readonly cut: boolean;
}

export async function diffSince(
  store: CheckpointStore,
  root: string,
  checkpoint: Checkpoint,
  { file, signal }: { readonly file?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<SinceThen> {
  return store.exclusively(async () => {
    const then = await readTree(store.git, checkpoint.tree);
    const { tree } = await store.presentLocked(root, [...then.keys()], signal);
    const of = file === undefined ? [] : ["--", file];
    const common = ["--no-color", "--no-ext-diff", "--no-textconv", "-M", checkpoint.tree, tree, ...of];
    const summary = await runGit(store.git, { args: ["diff", "--stat=100", ...common], most: MOST_BYTES, signal });
    const patch = await runGit(store.git, { args: ["diff", ...common], most: MOST_BYTES, signal });
    const cut = patch.length > MOST_BYTES;
    return {
      summary: summary.toString("utf8").trimEnd(),
      patch: patch.subarray(0, MOST_BYTES).toString("utf8").trimEnd(),
      cut,
    };
  });
}
