// Why a memory write failed, for the person who asked for it. The result itself speaks to a model.

import type { MemoryFailure } from "./entries.ts";
import { FILE_NAMES, type MemoryTarget } from "./format.ts";

/** `show` is how the user looks at the entries here, e.g. `hermes memory show`. */
export function tellUser(
  failure: MemoryFailure,
  about: { readonly target: MemoryTarget; readonly show: string },
): string {
  const file = FILE_NAMES[about.target];
  switch (failure.code) {
    case "over_limit":
      return (
        `There is not enough room in ${file}: ${failure.usage ?? "all"} characters are used. Nothing was changed. Say it shorter, or ` +
        `remove an entry first (${about.show} lists them).`
      );
    case "threat": {
      const what = /'([^']+)'|character (U\+\w+)/.exec(failure.error);
      return (
        `This text looks like an instruction that somebody slipped in (${what?.[1] ?? what?.[2] ?? "unknown pattern"}). Memory is part of every ` +
        "prompt, so it was not saved. Say it in other words."
      );
    }
    case "delimiter":
      return "A line with nothing but § separates entries. Add the parts one by one.";
    case "missing_content":
    case "empty_content":
      return "The entry is empty. Nothing was changed.";
    case "target_disabled":
      return `${file} is switched off (${about.target === "memory" ? "memory.memory_enabled" : "memory.user_profile_enabled"} in config.yaml). Nothing was changed.`;
    case "unavailable":
      return "Memory is switched off (memory.memory_enabled and memory.user_profile_enabled in config.yaml).";
    case "no_match":
    case "ambiguous":
      return `The entry is not there any more: somebody changed ${file} meanwhile. ${about.show} lists what is there.`;
    case "drift":
      return `${failure.error} ${failure.remediation?.replace("Tell the user. ", "") ?? ""}`.trim();
    default:
      return failure.error;
  }
}
