// Rules of the house that no linter knows: where the environment may be read, where blocking calls may stand.
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const rules = [
  {
    name: "process.env is read in home/ (and handed in by main.ts) only",
    pattern: /\bprocess\.env\b/,
    allowed: /^src\/(home\/|main\.ts$)/,
  },
  {
    name: "blocking *Sync calls stand in start-up code and the store only",
    pattern:
      /\b(readFile|writeFile|appendFile|exists|stat|lstat|readdir|mkdir|rm|rename|copyFile|open|exec|execFile|spawn)Sync\s*\(/,
    allowed: /^src\/(home\/|sessions\/|main\.ts$)/,
  },
  { name: "no any-casts without a reason on the same line", pattern: /\bas any\b(?!.*\/\/)/, allowed: /^$/ },
];

let broken = 0;
for (const file of globSync("src/**/*.ts", { cwd: root }).sort()) {
  if (file.endsWith(".test.ts")) continue;
  const path = relative(root, join(root, file)).replaceAll("\\", "/");
  readFileSync(join(root, file), "utf8")
    .split("\n")
    .forEach((line, index) => {
      for (const rule of rules) {
        if (!rule.pattern.test(line) || rule.allowed.test(path) || /^\s*(\/\/|\*)/.test(line)) continue;
        process.stdout.write(`${path}:${index + 1}: ${rule.name}\n    ${line.trim()}\n`);
        broken++;
      }
    });
}
process.exitCode = broken > 0 ? 1 : 0;
