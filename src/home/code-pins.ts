// Code of others that runs inside the program: the user said yes to its bytes. When they change, it does not run until they say it again.
import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../kit/errors.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { isRecord, parseJson } from "../kit/json.ts";
import { withLock } from "./lock.ts";
import type { HomePaths } from "./paths.ts";

/** The files of a folder are others than those the user said yes to. */
export class ChangedCodeError extends Error {
  override name = "ChangedCodeError";
}

/**
 * One pin per plugin folder, in a file of the home that no tool may write.
 *
 * - A folder without a pin gets one when it is first looked at: it was switched on before there were pins.
 * - Every file counts, also packages and hidden files; a link counts by where it leads.
 */
export class CodePins {
  readonly #file: string;

  constructor(paths: Pick<HomePaths, "at">) {
    this.#file = paths.at("plugin_pins.json");
  }

  /** Rejects with `ChangedCodeError`. `enable`: the words that accept it as it is now. */
  async verify(folder: string, enable: string): Promise<void> {
    const hash = await hashFolder(folder);
    const pinned = (await this.#read())[folder];
    if (pinned === hash) return;
    if (pinned === undefined) return this.#write(folder, hash);
    throw new ChangedCodeError(
      `its files changed since you enabled it. Review them; to run the new version: ${enable}`,
    );
  }

  /** Whether `verify` would reject. */
  async isChanged(folder: string): Promise<boolean> {
    const pinned = (await this.#read())[folder];
    return pinned !== undefined && pinned !== (await hashFolder(folder));
  }

  /** The user's yes to the folder as it is now. */
  async pin(folder: string): Promise<void> {
    await this.#write(folder, await hashFolder(folder));
  }

  async forget(folder: string): Promise<void> {
    await this.#write(folder, null);
  }

  async #write(folder: string, hash: string | null): Promise<void> {
    await withLock(`${this.#file}.lock`, async () => {
      const { [folder]: _, ...others } = await this.#read();
      const pins = hash === null ? others : { ...others, [folder]: hash };
      await writeFileAtomic(this.#file, `${JSON.stringify(pins, null, 2)}\n`, { mode: 0o600 });
    });
  }

  /** A file that is there and cannot be read pins everything to nothing: then nothing runs by mistake. */
  async #read(): Promise<Readonly<Record<string, unknown>>> {
    let text: string;
    try {
      text = await readFile(this.#file, "utf8");
    } catch (error) {
      if (codeOf(error) === "ENOENT") return {};
      throw error;
    }
    const read = parseJson(text);
    if (!isRecord(read)) throw new Error(`${this.#file} is damaged. Delete it, then enable your plugins again.`);
    return read;
  }
}

async function hashFolder(folder: string): Promise<string> {
  const hash = createHash("sha256");
  const walk = async (at: string, lead: string): Promise<void> => {
    const names = (await readdir(at)).sort();
    for (const name of names) {
      const path = join(at, name);
      const facts = await lstat(path);
      if (facts.isDirectory()) await walk(path, `${lead}${name}/`);
      else if (facts.isSymbolicLink()) await link(path, `${lead}${name}`);
      else if (facts.isFile()) await add(`${lead}${name}`, path);
    }
  };
  const add = async (label: string, path: string) => {
    hash.update(
      JSON.stringify([
        label,
        createHash("sha256")
          .update(await readFile(path))
          .digest("hex"),
      ]),
    );
  };
  const link = async (path: string, label: string) => {
    hash.update(JSON.stringify([label, "->", await readlink(path)]));
    // What it leads to may lie elsewhere; a folder there is not walked, it may hold anything.
    const target = await realpath(path).catch(() => null); // leads nowhere
    if (target !== null && (await lstat(target)).isFile()) await add(label, target);
  };
  await walk(await realpath(folder), "");
  return hash.digest("hex");
}
