// A process that writes to a memory and says each number once its write has succeeded.
// Arguments: home, name, add | replace, count (0 = for ever), the step on the file system before which it ends (0 = never).
// `add` adds entries; `replace` adds one and replaces it by the next.
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { defaultConfig } from "../../src/home/config/schema.ts";
import { homePaths } from "../../src/home/paths.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { openMemory } from "../../src/memory/open.ts";
import { recordedLog } from "./session-store.ts";

const [dir = "", name = "", how = "add", given = "0", step = "0"] = process.argv.slice(2);
if (step !== "0") await dieBeforeStep(Number(step));
const memory = await openMemory({
  paths: homePaths(dir, dir, "default"),
  config: defaultConfig,
  clock: systemClock,
  log: recordedLog(),
});
const count = Number(given) || Number.POSITIVE_INFINITY;
for (let n = 1; n <= count; n++) {
  const content = `${name}${n}`;
  const args =
    how === "replace" && n > 1
      ? { action: "replace", old_text: `${name}${n - 1}`, content }
      : { action: "add", content };
  const result = await memory.write(args, { origin: "foreground" });
  if (!result.success) throw new Error(JSON.stringify(result));
  process.stdout.write(`${n}\n`);
}

/** Ends this process before the nth step that changes something on disk. Of a write, half gets through. */
async function dieBeforeStep(fatal: number): Promise<void> {
  let steps = 0;
  // biome-ignore lint/suspicious/noExplicitAny: functions of Node, whatever they take
  const watch = (target: any, methods: readonly string[]) => {
    for (const method of methods) {
      const original = target[method];
      target[method] = async function (...args: unknown[]) {
        if (++steps < fatal) return original.apply(this, args);
        const text = args.findLast((arg) => typeof arg === "string") ?? "";
        if (/^(write|append)File$/.test(method)) await original.call(this, text.slice(0, text.length / 2));
        process.kill(process.pid, "SIGKILL");
        return new Promise(() => undefined);
      };
    }
  };
  const file = await fs.open(process.execPath);
  watch(Object.getPrototypeOf(file), ["writeFile", "appendFile", "write", "truncate", "sync", "datasync"]);
  await file.close();
  watch(fs, ["open", "rename", "rm", "unlink", "link", "mkdir", "truncate", "copyFile", "chmod"]);
  syncBuiltinESMExports();
}
