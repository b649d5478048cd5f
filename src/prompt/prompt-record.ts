// A prompt as it is stored, and what its stamp tells about the inside of the text.
import { countCodePoints, sliceCodePoints } from "../kit/code-points.ts";
import type { PromptLayout } from "../llm/wire.ts";
import type { PromptRecord } from "../sessions/store.ts";
import type { PromptBuild } from "./contract.ts";
import { isStampedText } from "./fingerprint.ts";

/** Id and length (in UTF-16 units) of each block, in order; between two blocks stands one blank line. */
type StampedBlocks = readonly (readonly [id: string, length: number])[];

export function recordOf(build: PromptBuild & { readonly contextHashes?: readonly string[] }): PromptRecord {
  const blocks: StampedBlocks = build.blocks.map(({ id, text }) => [id, text.length]);
  return {
    prompt: build.full,
    stableChars: countCodePoints(build.stable),
    fingerprint: { ...build.fingerprint, blocks, files: build.contextHashes ?? [] },
  };
}

/** Of the project files in a stored prompt; empty when nothing is known of its inside. */
export function contextHashesOf({ fingerprint }: PromptRecord): readonly string[] {
  const stamped = typeof fingerprint === "object" && fingerprint !== null && "files" in fingerprint;
  return stamped && Array.isArray(fingerprint.files) ? fingerprint.files.map(String) : [];
}

/** Undefined for a text that another program wrote or changed: nothing is known of its inside. */
export function layoutOf({ prompt, stableChars, fingerprint }: PromptRecord): PromptLayout | undefined {
  if (!isStampedText(fingerprint, prompt)) return undefined;
  const stable = sliceCodePoints(prompt, 0, stableChars ?? 0);
  return { stable, blocks: blockSpans(fingerprint, prompt.length) };
}

/** Each block with the gap behind it; empty when the stamp does not fit the text. */
function blockSpans(fingerprint: unknown, length: number): PromptLayout["blocks"] {
  const stamped = typeof fingerprint === "object" && fingerprint !== null && "blocks" in fingerprint;
  const blocks = stamped && Array.isArray(fingerprint.blocks) ? (fingerprint.blocks as StampedBlocks) : []; // summed up below
  const spans = blocks.map(([id, size], at) => ({ id: String(id), length: size + (at < blocks.length - 1 ? GAP : 0) }));
  return spans.reduce((sum, span) => sum + span.length, 0) === length ? spans : [];
}

const GAP = "\n\n".length;
