/** A failure in words for the user: what, where, what to do. Doors show the message and nothing else. */
export class UserError extends Error {
  override name = "UserError";
  /** How a command that fails this way ends. */
  readonly exitCode: number = 1;
}
