// The user's own editor on a file.
import { spawn } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { OpenHome } from "../../home/open.ts";

/** Null when none is set and none of the usual ones is installed. */
export async function findEditor(home: OpenHome): Promise<string | null> {
  return home.env("EDITOR")?.trim() || home.env("VISUAL")?.trim() || (await firstEditor(home.env("PATH") ?? ""));
}

async function firstEditor(path: string): Promise<string | null> {
  for (const name of ["nano", "vim", "vi", "code", "notepad"]) {
    for (const dir of path.split(delimiter)) {
      const found =
        dir !== "" &&
        (await access(join(dir, name), constants.X_OK).then(
          () => true,
          () => false,
        ));
      if (found) return name === "code" ? "code --wait" : name;
    }
  }
  return null;
}

/** The setting may carry arguments ("code --wait"), so a shell takes it apart; the path goes in as an argument of its own. */
export function runEditor(editor: string, path: string, env: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const child =
      process.platform === "win32"
        ? spawn(`${editor} "${path}"`, { stdio: "inherit", env: { ...env }, shell: true })
        : spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", path], { stdio: "inherit", env: { ...env } });
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}
