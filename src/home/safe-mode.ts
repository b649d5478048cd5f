/** The user wants the program without anybody else's code: no plugins, no hooks, whatever the settings name. */
export function isSafeMode({ env }: { env(name: string): string | undefined }): boolean {
  return ["1", "true", "yes", "on"].includes((env("HERMES_SAFE_MODE") ?? "").toLowerCase());
}
