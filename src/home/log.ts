export type LogLevel = "DEBUG" | "INFO" | "WARNING" | "ERROR";

/** Writes to the log files of the home. Never throws, never blocks, always redacted. */
export interface Logger {
  debug(message: string, error?: unknown): void;
  info(message: string, error?: unknown): void;
  warn(message: string, error?: unknown): void;
  error(message: string, error?: unknown): void;
  /** A logger with a dotted name below this one, e.g. `agent.loop`. */
  child(name: string): Logger;
}
