// SQLite before 3.51.3 has a WAL-reset bug that can damage a database shared by processes; 3.50.7 and 3.44.6 carry the fix.

/** Whether a new file may be switched to WAL with this SQLite version. */
export function walIsSafe(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  if (major !== 3) return major > 3;
  if (minor === 44) return patch >= 6;
  if (minor === 50) return patch >= 7;
  if (minor === 51) return patch >= 3;
  return minor > 51;
}
