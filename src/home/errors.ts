/** A settings problem in words for the user: what, where (file, line), what to do. */
export class ConfigError extends Error {
  override name = "ConfigError";
}
