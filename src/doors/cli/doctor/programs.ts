import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { CliContext } from "../context.ts";
import type { Finding } from "./finding.ts";

const PROGRAMS: readonly { readonly name: string; readonly use: string; readonly needed: boolean }[] = [
  { name: "bash", use: "runs the agent's commands", needed: true },
  { name: "git", use: "worktrees, checkpoints, diffs", needed: false },
];

export async function checkPrograms(ctx: CliContext): Promise<readonly Finding[]> {
  const folders = (ctx.home.environment().PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return Promise.all(
    PROGRAMS.map(async ({ name, use, needed }): Promise<Finding> => {
      const place = await findIn(folders, name);
      if (place) return { level: "ok", text: `${name}: ${place}` };
      return {
        level: needed ? "error" : "warn",
        text: `${name} is not on the PATH (${use})`,
        fix: `install ${name} with your system's package manager`,
      };
    }),
  );
}

async function findIn(folders: readonly string[], name: string): Promise<string | null> {
  for (const folder of folders) {
    const path = join(folder, name);
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {
      // not here; the next folder may have it
    }
  }
  return null;
}
