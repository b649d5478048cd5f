// Writes docs/reference/commands.md from the command tree.
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { commandFacts } from "../src/doors/cli/command-facts.ts";
import { commandTree } from "../src/doors/cli/program.ts";
import { commandReference } from "./command-pages.mjs";

const file = join(dirname(dirname(fileURLToPath(import.meta.url))), "docs", "reference", "commands.md");
writeFileSync(file, commandReference(commandFacts(await commandTree({}))));
process.stdout.write(`${file}\n`);
