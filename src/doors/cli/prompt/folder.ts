import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { sessionCwd } from "../../../agent/session-cwd.ts";
import { type CliContext, ExitError } from "../context.ts";

/** The folder to look from: the given one, else the one a conversation would work in. */
export async function folderOf(given: string | undefined, { home, cwd }: CliContext): Promise<string> {
  if (given === undefined) return (await sessionCwd(home, cwd)).cwd;
  const folder = resolve(cwd, given);
  const found = await stat(folder).catch(() => null); // told below
  if (!found?.isDirectory()) throw new ExitError(2, `There is no folder ${given}. --cwd takes one that exists.`);
  return folder;
}
