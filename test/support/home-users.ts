// A user of the machine with a home folder of their own, for tests that open a home in this process.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { type OpenHomeOptions, openHome } from "../../src/home/open.ts";

/** Users in one folder, which is removed at the end of the file. */
export function homeUsers() {
  const base = mkdtempSync(join(tmpdir(), "hermes-home-"));
  after(() => rmSync(base, { recursive: true, force: true }));
  let count = 0;

  /** A fresh user with, maybe, a home that has these files. */
  return function user(files: Readonly<Record<string, string>> = {}) {
    const osHome = join(base, `user${count++}`);
    const cwd = join(osHome, "work");
    mkdirSync(cwd, { recursive: true });
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(osHome, name, ".."), { recursive: true });
      writeFileSync(join(osHome, name), text);
    }
    const open = (options: Partial<OpenHomeOptions> = {}) => openHome({ argv: [], env: {}, osHome, cwd, ...options });
    return {
      osHome,
      open,
      at: (name: string) => join(osHome, name),
      read: (name: string) => readFileSync(join(osHome, name), "utf8"),
    };
  };
}
