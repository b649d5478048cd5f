import { resolve } from "node:path";
import { sessionCwd } from "../../../agent/session-cwd.ts";
import type { CliContext } from "../context.ts";

/** The folder to look from: the given one, else the one a conversation would work in. */
export async function folderOf(given: string | undefined, { home, cwd }: CliContext): Promise<string> {
  return given === undefined ? (await sessionCwd(home, cwd)).cwd : resolve(cwd, given);
}
