/**
 * A failure in words for the user: what, where, what to do. Doors show the message and nothing else. Every error that a user may see is one
 * of these; what is none of them is a defect of ours.
 */
export class UserError extends Error {
  override name = "UserError";
  /** How a command that fails this way ends. */
  readonly exitCode: number = 1;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system's name of a failure: ENOENT, EACCES ... */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Nothing stands at a path. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}
