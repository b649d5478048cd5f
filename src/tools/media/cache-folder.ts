// Where media files are kept. A home that has the folders of an older version goes on with them.
import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { HomePaths } from "../../home/paths.ts";

const OLD_NAMES = {
  images: "image_cache",
  audio: "audio_cache",
  documents: "document_cache",
  screenshots: "browser_screenshots",
  vision: "temp_vision_images",
} as const;

/** The folder, made if it is missing. */
export async function cacheFolder(home: HomePaths, kind: keyof typeof OLD_NAMES): Promise<string> {
  const old = home.at(OLD_NAMES[kind]);
  const isThere = await access(old).then(
    () => true,
    () => false,
  );
  const folder = isThere ? old : join(home.cacheDir, kind);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}
