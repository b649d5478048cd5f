// What servers said about the windows of their models, remembered in the home: what they named when they refused a request, for every
// later conversation; what they answered when they were last asked, for whoever does not ask.
import { mkdir, readFile } from "node:fs/promises";
import type { OpenHome } from "../../home/open.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { mapping } from "../providers/settings.ts";
import type { LearnedLimits } from "./context-length.ts";
import { learnedLimits } from "./learned-limits.ts";

type Home = Pick<OpenHome, "paths" | "log">;

export function learnedWindows(home: Home): LearnedLimits {
  const path = home.paths.at("context_length_cache.yaml");
  const refused = learnedLimits({ read: () => readIfThere(path), write: (text) => writeFileAtomic(path, text) });
  return {
    ...refused,
    async lastProbed(baseUrl, model) {
      const tokens = (await readProbed(home))[keyOf(baseUrl, model)];
      return typeof tokens === "number" && tokens > 0 ? tokens : null;
    },
    async noteProbed(baseUrl, model, tokens) {
      const known = await readProbed(home);
      const key = keyOf(baseUrl, model);
      if (known[key] === tokens) return;
      try {
        await mkdir(home.paths.cacheDir, { recursive: true, mode: 0o700 });
        await writeFileAtomic(probedFile(home), `${JSON.stringify({ ...known, [key]: tokens })}\n`);
      } catch (error) {
        home.log.debug("the window a server named could not be remembered", error);
      }
    },
  };
}

/** A file that cannot be understood counts as empty and is replaced. */
async function readProbed(home: Home): Promise<Readonly<Record<string, unknown>>> {
  try {
    return mapping(JSON.parse((await readIfThere(probedFile(home))) ?? "{}"));
  } catch (error) {
    home.log.debug("the remembered windows cannot be read", error);
    return {};
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

const probedFile = ({ paths }: Home) => paths.at("cache", "probed_windows.json");
const keyOf = (baseUrl: string, model: string) => `${model}@${baseUrl.replace(/\/+$/, "")}`;
