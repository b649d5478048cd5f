// The draft in the user's own editor.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Resolves to the edited text. The caller has given the terminal away and takes it back. */
export async function editText(text: string, editor: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hermes-edit-"));
  const path = join(folder, "message.md");
  try {
    await writeFile(path, text, { mode: 0o600 });
    await run(editor, path);
    return (await readFile(path, "utf8")).replace(/\n$/, "");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The variable may hold options ("code --wait"), so a shell reads it. */
function run(editor: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child =
      process.platform === "win32"
        ? spawn(`${editor} "${path}"`, { shell: true, stdio: "inherit" })
        : spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", path], { stdio: "inherit" });
    child.on("error", reject);
    child.on("exit", (code) =>
      code === 0
        ? resolve()
        : reject(new Error(`The editor "${editor}" ended with code ${code}; the draft is unchanged.`)),
    );
  });
}
