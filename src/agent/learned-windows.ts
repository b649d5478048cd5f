// Windows that servers named when they refused a request, remembered in the home for every later conversation.
import { readFile } from "node:fs/promises";
import type { OpenHome } from "../home/open.ts";
import { writeFileAtomic } from "../kit/atomic-file.ts";
import type { LearnedLimits } from "../llm/catalogue/context-length.ts";
import { learnedLimits } from "../llm/catalogue/learned-limits.ts";

export function learnedWindows(home: Pick<OpenHome, "paths">): LearnedLimits {
  const path = home.paths.at("context_length_cache.yaml");
  return learnedLimits({
    async read() {
      try {
        return await readFile(path, "utf8");
      } catch (error) {
        if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
        throw error;
      }
    },
    write: (text) => writeFileAtomic(path, text),
  });
}
