// Which Chromium drives the tools.
import { access, constants } from "node:fs/promises";
import { findProgram } from "../../sandbox/find-program.ts";

const NAMES = [
  "chromium",
  "chromium-browser",
  "google-chrome-stable",
  "google-chrome",
  "microsoft-edge",
  "brave-browser",
];
const ELSEWHERE: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["Google Chrome", "Chromium", "Microsoft Edge", "Brave Browser"].map(
    (name) => `/Applications/${name}.app/Contents/MacOS/${name}`,
  ),
  win32: [
    "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
    "C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe",
  ],
};

export interface ProgramWish {
  /** `browser.engine`: auto, a program's name or its path. */
  readonly engine: string;
  readonly path: string;
  readonly platform?: NodeJS.Platform;
}

/** Null when there is none. */
export async function findChromium({ engine, path, platform = process.platform }: ProgramWish): Promise<string | null> {
  const wanted = engine.trim();
  if (wanted !== "" && wanted !== "auto") return findProgram(wanted, path);
  for (const name of NAMES) {
    const found = await findProgram(name, path);
    if (found !== null) return found;
  }
  for (const candidate of ELSEWHERE[platform] ?? []) if (await isThere(candidate)) return candidate;
  return null;
}

export function missingChromium(engine: string): string {
  const named = engine.trim() !== "" && engine.trim() !== "auto";
  return named
    ? `No browser: browser.engine in config.yaml names "${engine}", which is not there. Set it to the path of a Chromium or to auto.`
    : "No browser: neither Chromium nor Chrome is installed here. Install one (Debian: apt install chromium), or name its path in " +
        "browser.engine in config.yaml, or connect to a running one with browser.cdp_url.";
}

function isThere(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
