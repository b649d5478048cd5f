// Several test files in one process: most cost more to load than to run. Each is a suite of its own, so its hooks are its own.
import { createRequire } from "node:module";
import { relative } from "node:path";
import { describe } from "node:test";
import { root } from "./setup.mjs";

const require = createRequire(import.meta.url);

export async function batch(files) {
  const awaiting = [];
  for (const file of files)
    describe(relative(root, file), () => {
      try {
        // Not imported: what is loaded at once knows which suite it stands in.
        require(file);
      } catch (error) {
        if (error.code !== "ERR_REQUIRE_ASYNC_MODULE") throw error;
        awaiting.push(file);
      }
    });
  for (const file of awaiting) await import(file);
}
