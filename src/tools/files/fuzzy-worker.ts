// Finds and replaces in a large file on a thread of its own: strategy after strategy takes most of a second there, and the screen stands still.
import { parentPort, workerData } from "node:worker_threads";
import { fuzzyReplace } from "../../kit/fuzzy/replace.ts";

const { text, old, replacement, replaceAll } = workerData as {
  // What apply-patch.ts hands over.
  readonly text: string;
  readonly old: string;
  readonly replacement: string;
  readonly replaceAll: boolean;
};
parentPort?.postMessage(fuzzyReplace(text, old, replacement, { replaceAll }));
