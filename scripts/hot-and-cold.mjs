// Which lazily imported modules a plain run needs before its first request, and which wait in a file of their own.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/** Imported on the way to the first request, though lazily. */
const ON_THE_WAY = [
  "doors/cli/program.ts",
  "doors/cli/chat.ts",
  "doors/cli/one-shot.ts",
  "agent/open.ts",
  "skills/bounded.ts",
  "sandbox/bubblewrap.ts",
  "sandbox/leaving.ts",
  "sessions/open.ts",
  "llm/providers/local.ts",
  "llm/wires/chat.ts",
  "llm/wires/anthropic/protocol.ts",
  "llm/wires/responses/protocol.ts",
];

const STATIC = /^(?:import|export)(?! type)[^;]*? from "(\.[^"]+\.ts)";/gm;
/** However the formatter breaks its line; test/lazy-imports.test.ts holds it against a parser. */
export const LAZY = /(?<!typeof\s+)\bimport\(\s*"(\.[^"]+\.ts)",?\s*\)/g;

/** Paths below `source`, with `/`. */
export function hotAndCold(source) {
  const targetsIn = (file, pattern) =>
    [...readFileSync(join(source, file), "utf8").matchAll(pattern)].map(([, path]) =>
      join(dirname(file), path).split(sep).join("/"),
    );
  const hot = new Set(ON_THE_WAY);
  for (const file of hot) for (const target of targetsIn(file, STATIC)) hot.add(target);
  const files = readdirSync(source, { recursive: true }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  const lazy = new Set(files.flatMap((file) => targetsIn(file, LAZY)));
  return {
    isHot: (path) => hot.has(relative(source, path).split(sep).join("/")),
    cold: [...lazy].filter((path) => !hot.has(path)).sort(),
  };
}
