// What machine this is, as far as the agent has to know.
import type { HostKind } from "../contract.ts";
import type { FileAccess } from "../ports.ts";

export interface HostFacts {
  readonly platform: NodeJS.Platform;
  /** `os.type()`, for systems without a name of their own here. */
  readonly type: string;
  /** `os.release()`. */
  readonly release: string;
  env(name: string): string | undefined;
}

export interface Host {
  readonly hostName: string;
  readonly hostKind?: HostKind;
}

const NAMES: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  linux: "Linux",
  android: "Android",
  darwin: "macOS",
  win32: "Windows",
};

export async function readHost(facts: HostFacts, files: Pick<FileAccess, "read">): Promise<Host> {
  const { platform, release } = facts;
  if (facts.env("TERMUX_VERSION") || facts.env("PREFIX")?.includes("com.termux"))
    return { hostName: "Termux (Android)", hostKind: "termux" };
  if (platform === "linux" && (await isWsl(release, files)))
    return { hostName: "WSL (Windows Subsystem for Linux)", hostKind: "wsl" };
  const hostName = `${NAMES[platform] ?? facts.type} (${release})`;
  return platform === "win32" ? { hostName, hostKind: "windows" } : { hostName };
}

async function isWsl(release: string, files: Pick<FileAccess, "read">): Promise<boolean> {
  if (/microsoft/i.test(release)) return true;
  const version = await files.read("/proc/version", 64 * 1024);
  return version.type === "bytes" && /microsoft/i.test(new TextDecoder().decode(version.bytes));
}
