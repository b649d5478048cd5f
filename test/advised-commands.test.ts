// Errors, hints, prompts, the guide and the skills send people to commands: `hermes sessions repair`. What they name must be there.
import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Command } from "commander";
import { SUBCOMMANDS } from "../src/doors/cli/program.ts";
import type { CliContext } from "../src/doors/cli-context.ts";

const root = join(import.meta.dirname, "..");

// Commands of other versions of the program; one that is added here is simply found among the commands.
const ELSEWHERE = new Set(
  `acp cron curator dashboard gateway kanban pairing send
  uninstall webhook`.split(/\s+/),
);
/** These speak of commands that others may type, and advise none. */
const NOT_ADVICE = new Set(["src/safety/danger/own.ts", "src/prompt/blocks.ts"]);

test("every command that a text of the program names exists", async () => {
  const known = new Map<string, ReadonlySet<string>>();
  for (const { name, load } of SUBCOMMANDS) {
    const command = new Command(name);
    (await load()).define(command, {} as CliContext); // nothing is run
    known.set(name, new Set(command.commands.flatMap((inner) => [inner.name(), ...inner.aliases()])));
  }
  const missing: string[] = [];
  for await (const file of glob(["src/**/*.ts", "docs/**/*.md", "skills/**/*.md", "README*.md"], { cwd: root })) {
    if (file.endsWith(".test.ts") || NOT_ADVICE.has(file)) continue;
    const lines = (await readFile(join(root, file), "utf8")).split("\n");
    for (const [at, line] of lines.entries()) {
      if (file.endsWith(".ts") && /^\s*(\/\/|\/?\*)/.test(line)) continue;
      for (const [said, name = "", inner] of line.matchAll(
        /(?<![\w-])hermes (?:-p \S+ )?([a-z-]+)(?: ([a-z][a-z-]+))?/g,
      )) {
        const inside = known.get(name);
        const isThere = inside ? inside.size === 0 || inner === undefined || inside.has(inner) : !ELSEWHERE.has(name);
        if (!isThere) missing.push(`${file}:${at + 1}: ${said}`);
      }
    }
  }
  assert.deepEqual(missing, []);
});
