/** Names that earlier releases stored for what has another name today. */
const RENAMED: Readonly<Record<string, string>> = {
  "world-writable permissions": "world/other-writable permissions",
  "recursive world-writable (long flag)": "recursive world/other-writable (long flag)",
  "stop/disable system service": "stop/restart system service",
  "shell command via -c flag": "shell command via -c/-lc flag",
  "script execution via -e flag": "script execution via -e/-c flag",
  "kill process via pgrep expansion (self-termination)": "kill process via pgrep/pidof expansion (self-termination)",
  "kill process via backtick pgrep expansion (self-termination)":
    "kill process via backtick pgrep/pidof expansion (self-termination)",
};

/** The key an allowlist entry stands for today. */
export function currentKey(entry: string): string {
  const key = entry.trim();
  return Object.hasOwn(RENAMED, key) ? (RENAMED[key] ?? key) : key;
}
