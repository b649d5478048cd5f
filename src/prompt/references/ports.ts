import type { DenyList } from "../files/deny-list.ts";
import type { RunProgram } from "../ports/run-program.ts";
import type { FileAccess } from "../ports.ts";

/** Which entries of a folder a `.gitignore` leaves out, from one directory to the next. */
export interface IgnoreRules {
  ignores(path: string, isDirectory: boolean): boolean;
  enter(directory: string, names: readonly string[]): Promise<IgnoreRules>;
}

export interface ReferenceOptions {
  /** References lead nowhere else. */
  readonly cwd: string;
  readonly userHome: string;
  /** The model's window in tokens; 0 when it is not known. */
  readonly contextLength: number;
  readonly files: FileAccess;
  readonly run: RunProgram;
  readonly denyList: DenyList;
  /** The rules in force at a folder, those above it included. Absent: nothing is ignored. */
  ignoreRules?(folder: string): Promise<IgnoreRules>;
  /** The text of a page, fenced as untrusted. Absent: pages cannot be fetched here. */
  readPage?(url: string): Promise<string>;
}

/** One thing attached, or why it is not. */
export type Attachment =
  | { readonly type: "block"; readonly text: string }
  | { readonly type: "warning"; readonly text: string };

export const warning = (text: string): Attachment => ({ type: "warning", text });
