// Writes docs/reference/config.md from the schema of config.yaml.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { configReference } from "../src/home/config/reference.ts";

const file = join(dirname(dirname(fileURLToPath(import.meta.url))), "docs", "reference", "config.md");
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, configReference());
process.stdout.write(`${file}\n`);
