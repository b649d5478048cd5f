const PASSED = new Set(["PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR"]);
/** Without these no program starts on Windows. */
const WINDOWS = new Set([
  "SYSTEMROOT",
  "WINDIR",
  "COMSPEC",
  "PATHEXT",
  "TEMP",
  "TMP",
  "APPDATA",
  "LOCALAPPDATA",
  "USERPROFILE",
]);

/** What a server's process sees: a few harmless variables and what the user gave it. Keys of ours never get there by themselves. */
export function serverEnvironment(
  parent: Readonly<Record<string, string>>,
  configured: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const passed = Object.entries(parent).filter(
    ([name]) =>
      PASSED.has(name) || name.startsWith("XDG_") || (platform === "win32" && WINDOWS.has(name.toUpperCase())),
  );
  return { ...Object.fromEntries(passed), ...configured };
}
