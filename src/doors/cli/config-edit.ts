// hermes config edit: the user's editor on config.yaml, and a look at the result.
import { open, readFile } from "node:fs/promises";
import { CONFIG_VERSION } from "../../home/config/schema.ts";
import { loadYaml, parseText } from "../../home/config/yaml-text.ts";
import { refusal } from "../../home/managed.ts";
import { type CliContext, ExitError } from "./context.ts";
import { findEditor, runEditor } from "./editor.ts";

export async function editConfig({ home, io }: CliContext): Promise<void> {
  const path = home.paths.configFile;
  if (home.managed) throw new ExitError(1, refusal(home.managed, path));
  await createIfAbsent(path);
  const editor = await findEditor(home);
  if (!editor) throw new ExitError(1, `No editor found. Set EDITOR, or edit the file yourself: ${path}`);
  const code = await runEditor(editor, path, home.environment());
  if (code !== 0) throw new ExitError(1, `${editor} ended with code ${code}; ${path} is as it left it.`);

  const parsed = parseText(await loadYaml(), await readFile(path, "utf8"));
  if (!parsed.ok) {
    const { line, column, message } = parsed.problem;
    throw new ExitError(
      1,
      `✗ Line ${line}, column ${column}: ${message}\n  Nothing reads ${path} until this is mended.`,
    );
  }
  home.config();
  for (const { message } of home.configFindings()) io.err(`⚠ ${message}\n`);
  io.out(`✓ ${home.display(path)} is fine\n`);
}

async function createIfAbsent(path: string): Promise<void> {
  try {
    const file = await open(path, "wx", 0o600);
    await file.writeFile(`_config_version: ${CONFIG_VERSION}\n`);
    await file.close();
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}
