/** One thing the doctor saw. `fix` says what to type or change. */
export interface Finding {
  readonly level: "ok" | "warn" | "error";
  readonly text: string;
  readonly fix?: string;
}
