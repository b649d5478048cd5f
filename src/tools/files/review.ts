// Edits that somebody looks at before they are made. Nobody waits with the files locked: the plan is made, shown, and made again.
import { UserError } from "../../kit/errors.ts";
import { DO_NOT_RETRY } from "../../safety/decision.ts";
import type { FileEdit, ToolContext } from "../toolset/context.ts";
import { withFileLocks } from "./access.ts";

/** To be called with everything a step is about to change, before it changes anything. */
export type Reviewed = (edits: readonly FileEdit[]) => void;

/** A file that changes each time somebody looks is being written by another program. */
const MOST_LOOKS = 3;

type Reviewing = Pick<ToolContext, "reviewEdits" | "callId" | "signal">;

/**
 * Runs a step alone on some files. What it hands to `reviewed` is shown to whoever looks at edits; a yes counts for exactly these texts.
 * Rejects with a sentence for the model when the answer is no. `isConfirmed`: the user was asked about a file and said yes.
 */
export async function reviewedStep<T>(
  paths: readonly string[],
  { reviewEdits, callId, signal }: Reviewing,
  isConfirmed: (path: string) => boolean,
  step: (reviewed: Reviewed) => Promise<T>,
): Promise<T> {
  if (!reviewEdits) return withFileLocks(paths, () => step(() => undefined));
  let approved: string | null = null;
  for (let look = 0; look < MOST_LOOKS; look++) {
    const done = await withFileLocks(paths, () => tried(step, approved));
    if (!(done instanceof Unseen)) return done;
    const { edits } = done;
    const confirmed = edits.every(({ path }) => isConfirmed(path));
    const verdict = await reviewEdits(edits, { callId, signal, confirmed });
    signal.throwIfAborted();
    if (verdict !== "yes") throw new EditRefusedError(verdict, edits);
    approved = JSON.stringify(edits);
  }
  throw new UserError("The file was changed by another program each time the edit was shown. Read it again.");
}

/** The step got as far as an edit that nobody has seen. */
class Unseen extends Error {
  readonly edits: readonly FileEdit[];
  constructor(edits: readonly FileEdit[]) {
    super("not seen yet");
    this.edits = edits;
  }
}

async function tried<T>(step: (reviewed: Reviewed) => Promise<T>, approved: string | null): Promise<T | Unseen> {
  try {
    return await step((edits) => {
      if (JSON.stringify(edits) !== approved) throw new Unseen(edits);
    });
  } catch (error) {
    if (error instanceof Unseen) return error;
    throw error;
  }
}

class EditRefusedError extends UserError {
  override name = "EditRefusedError";
  constructor(verdict: "no" | "silence", edits: readonly FileEdit[]) {
    const files = edits.map(({ path }) => path).join(", ");
    super(
      verdict === "no"
        ? `DENIED: the user refused this edit (${files}). ${DO_NOT_RETRY} as it is, and do not write it in another way: say what you wanted to change and why.`
        : `DENIED: nobody answered in time, and silence is a no (${files}). ${DO_NOT_RETRY}: say what you wanted to change and why.`,
    );
  }
}
