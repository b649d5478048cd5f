// What goes wrong with a server, in words: which server, what happened, what to do. Never a secret in it.

import { UserError } from "../kit/errors.ts";

/** The kinds that callers tell apart: whether to try again, and what a user has to do first. */
export type McpFailure =
  /** The policy or a malware notice forbids the command. */
  | "blocked"
  /** The user has to sign in. */
  | "needs_reauth"
  /** The program is not there. */
  | "missing"
  /** Anything that may pass by itself. */
  | "unreachable"
  /** The server does not know our session any more. */
  | "expired"
  /** The server answered, with an error. */
  | "refused";

export class McpError extends UserError {
  override name = "McpError";
  readonly kind: McpFailure;
  constructor(kind: McpFailure, message: string) {
    super(message);
    this.kind = kind;
  }
}

const REDACTED = "[REDACTED]";

/** Removes credentials from a text of a server. */
export function withoutSecrets(text: string, redact: (text: string) => string): string {
  const plain = text
    .replace(/\b(Bearer|Basic)\s+[^\s"',;]+/gi, `$1 ${REDACTED}`)
    .replace(/\b([\w-]*(?:api[_-]?key|key|token|password|passwd|secret))=([^\s&"',;]+)/gi, `$1=${REDACTED}`)
    .replace(/\b(?:sk-|ghp_|gho_|github_pat_|xox[a-z]-|glpat-)[A-Za-z0-9_-]{4,}/g, REDACTED);
  return redact(plain);
}

/** The sentence of an unknown error; the SDK's and the system's are usable as they are. */
export function failureText(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** The first line, short enough for a status. */
export function shortly(text: string, most = 300): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
