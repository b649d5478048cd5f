// A process that writes to a memory and says each number once its write has succeeded. Arguments: home, name, count (0 = for ever).
// With a count it adds entries; for ever it replaces its one entry by the next.
import { defaultConfig } from "../../src/home/config/schema.ts";
import { silentLogger } from "../../src/home/log.ts";
import { homePaths } from "../../src/home/paths.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { openMemory } from "../../src/memory/open.ts";

const [dir = "", name = "", given = "0"] = process.argv.slice(2);
const memory = await openMemory({
  paths: homePaths(dir, dir, "default"),
  config: defaultConfig,
  clock: systemClock,
  log: silentLogger,
});
const count = Number(given) || Number.POSITIVE_INFINITY;
for (let n = 1; n <= count; n++) {
  const content = `${name}${n}`;
  const args =
    count === Number.POSITIVE_INFINITY && n > 1
      ? { action: "replace", old_text: `${name}${n - 1}`, content }
      : { action: "add", content };
  const result = await memory.write(args, { origin: "foreground" });
  if (!result.success) throw new Error(JSON.stringify(result));
  process.stdout.write(`${n}\n`);
}
