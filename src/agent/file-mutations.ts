// Models like to say that a file was written when it was not. What failed and was never made good is said at the end of the answer.

import { pathsOfBatch } from "../tools/toolset/batch-plan.ts";
import type { HookedCall } from "../tools/toolset/context.ts";

const MOST_LISTED = 10;
const PREVIEW = 180;

export class FileMutations {
  readonly #failed = new Map<string, string>();
  readonly #place: { readonly cwd: string; readonly home: string };

  /** `place` is asked with every call: its directory moves. */
  constructor(place: { readonly cwd: string; readonly home: string }) {
    this.#place = place;
  }

  record({ name, args }: HookedCall, result: string, failed: boolean): void {
    if (name !== "write_file" && name !== "patch") return;
    const { cwd, home } = this.#place;
    for (const path of pathsOfBatch([{ name, arguments: JSON.stringify(args) }], cwd, { home })) {
      if (failed) this.#failed.set(path, preview(result));
      else this.#failed.delete(path);
    }
  }

  /** Null when every change that was tried has landed. */
  footer(): string | null {
    if (this.#failed.size === 0) return null;
    const listed = [...this.#failed].slice(0, MOST_LISTED).map(([path, error]) => `- ${path}: ${error}`);
    const more = this.#failed.size - listed.length;
    return ["⚠ Not written in this turn:", ...listed, ...(more > 0 ? [`- and ${more} more`] : [])].join("\n");
  }
}

function preview(result: string): string {
  const points = [...(errorOf(result) ?? result).replace(/\s+/g, " ").trim()];
  return points.length <= PREVIEW ? points.join("") : `${points.slice(0, PREVIEW - 1).join("")}…`;
}

function errorOf(result: string): string | null {
  try {
    const { error } = JSON.parse(result) as { error?: unknown }; // read only if it is a text
    return typeof error === "string" ? error : null;
  } catch {
    return null;
  }
}
