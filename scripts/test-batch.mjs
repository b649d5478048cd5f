// Several test files in one process: most cost more to load than to run. Each is a suite of its own, so its hooks are its own.
import { createRequire } from "node:module";
import { relative } from "node:path";
import { describe } from "node:test";
import { root } from "./setup.mjs";

const require = createRequire(import.meta.url);

/** None of them waits at its top level: what is loaded at once knows which suite it stands in. */
export function batch(files) {
  for (const file of files) describe(relative(root, file), () => void require(file));
}
