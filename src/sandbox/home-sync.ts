// Skills, cache and named credentials of the Hermes home, copied to another machine and what changed there copied back.
import { createHash } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import { access, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { withLock } from "../home/lock.ts";
import { isWithin } from "../kit/files.ts";
import { scriptedTree } from "./scripted-files.ts";
import type { ScriptRunner } from "./scripts.ts";
import { quote } from "./shell-script.ts";

const FOLDERS = ["skills", "cache"];
const EVERY_MS = 5000;
const BATCH_BYTES = 16 * 1024 * 1024;
const MAX_FILE_BYTES = 64 * 1024 * 1024;
const MAX_BACK_BYTES = 2 * 1024 ** 3;

interface HomeSyncOptions {
  readonly scripts: ScriptRunner;
  /** The Hermes home here, and where its copy lies there. */
  readonly here: string;
  readonly there: string;
  /** A directory there that is ours alone. */
  readonly stateDir: string;
  /** Names below the home. */
  readonly credentials: readonly string[];
  readonly now: () => number;
}

interface Seen {
  readonly mtimeMs: number;
  readonly size: number;
}

interface Sent extends Seen {
  readonly hash: string;
}

/**
 * - `send` looks for changes at most every five seconds. What is new arrives all or not at all; what is gone here goes there too.
 * - `fetch` brings back what commands there changed. A file that changed on both sides is the one that was written last.
 * - Both reject with the reason when they cannot do it; nothing is half done then.
 */
export class HomeSync {
  readonly #options: HomeSyncOptions;
  readonly #sent = new Map<string, Sent>();
  #sending: Promise<void> | null = null;
  #looked = Number.NEGATIVE_INFINITY;
  #isSame: boolean | null = null;

  constructor(options: HomeSyncOptions) {
    this.#options = options;
  }

  send(): Promise<void> {
    this.#sending ??= this.#sendChanges().finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  async fetch(): Promise<void> {
    if (this.#isSame !== false) return;
    const changed = await this.#changedThere();
    if (changed.length === 0) return;
    const total = changed.reduce((sum, { size }) => sum + size, 0);
    if (total > MAX_BACK_BYTES)
      throw new Error(`what changed there has ${total} bytes, more than is copied back (${MAX_BACK_BYTES})`);
    const { here } = this.#options;
    await withLock(join(here, ".sync.lock"), async () => {
      const stage = await mkdtemp(join(here, ".sync-"));
      try {
        for (const batch of batchesOf(changed)) await this.#receive(batch, stage);
        for (const file of changed) await this.#keep(file, stage);
      } finally {
        await rm(stage, { recursive: true, force: true });
      }
    });
  }

  async #sendChanges(): Promise<void> {
    const { now, here, credentials } = this.#options;
    if (now() - this.#looked < EVERY_MS) return;
    this.#isSame ??= await this.#isOneFolder();
    if (this.#isSame) return;
    const found = await scan(here, credentials);
    const news = [...found].filter(([path, seen]) => !isLike(this.#sent.get(path), seen));
    const gone = [...this.#sent.keys()].filter((path) => !found.has(path));
    if (news.length > 0 || gone.length > 0) await this.#deliver(news, gone);
    this.#looked = now();
  }

  async #deliver(news: readonly (readonly [string, Seen])[], gone: readonly string[]): Promise<void> {
    const { here, there, stateDir } = this.#options;
    const stage = `${stateDir}/sync`;
    await this.#run(`rm -rf ${quote(stage)}; umask 077; mkdir -p ${quote(stage)}`);
    const sent = new Map<string, Sent>();
    for (const batch of batchesOf(news.map(([path, seen]) => ({ path, ...seen })))) {
      for (const { path, mtimeMs, size } of batch)
        sent.set(path, { mtimeMs, size, hash: await hashOf(join(here, path)) });
      const archive = await pack(
        here,
        batch.map(({ path }) => path),
      );
      await this.#run(`umask 077; tar -C ${quote(stage)} -xf -`, archive);
    }
    // A connection that breaks looks like the end of the data: only what arrived whole is put in its backend.
    await this.#run(`umask 077
[ "$(find ${quote(stage)} -type f | wc -l)" -eq ${sent.size} ] || { echo "not all files arrived" >&2; exit 1; }
chmod -R go-rwx ${quote(stage)}
mkdir -p ${quote(there)} && cp -pR ${quote(`${stage}/.`)} ${quote(`${there}/`)} || exit 1
rm -rf ${quote(stage)}`);
    for (const [path, facts] of sent) this.#sent.set(path, facts);
    for (let at = 0; at < gone.length; at += 200) {
      const paths = gone.slice(at, at + 200);
      await this.#run(`rm -f -- ${paths.map((path) => quote(`${there}/${path}`)).join(" ")}`);
      for (const path of paths) this.#sent.delete(path);
    }
  }

  /** A home on a shared disk, or ssh to this very machine: there is nothing to copy. */
  async #isOneFolder(): Promise<boolean> {
    const { here, there, stateDir } = this.#options;
    const name = `.sync-probe-${posix.basename(stateDir)}`;
    await writeFile(join(here, name), "", { mode: 0o600 });
    try {
      return (await this.#run(`[ -e ${quote(`${there}/${name}`)} ] && echo same; true`)).includes("same");
    } finally {
      await rm(join(here, name), { force: true });
    }
  }

  async #changedThere(): Promise<readonly Changed[]> {
    const { there, credentials, scripts } = this.#options;
    const roots = [...FOLDERS, ...credentials].map(quote).join(" ");
    const listing = await this.#run(`cd ${quote(there)} 2>/dev/null || exit 0
s="sha256sum"; command -v sha256sum >/dev/null 2>&1 || s="shasum -a 256"
for r in ${roots}; do [ -e "$r" ] && [ ! -L "$r" ] && find "$r" -type f -exec $s {} +; done
true`);
    const paths = listing.split("\n").flatMap((line) => {
      const [, hash, path = ""] = /^([0-9a-f]{64})[ *]{2}(.+)$/.exec(line) ?? [];
      return hash !== undefined && isOurs(path, credentials) && this.#sent.get(path)?.hash !== hash ? [path] : [];
    });
    if (paths.length === 0) return [];
    const absolute = paths.map((path) => `${there}/${path}`);
    const times = await scriptedTree(scripts).changeTimes(absolute, new AbortController().signal);
    const sizes = new Map<string, number>();
    for (let at = 0; at < paths.length; at += 200) {
      const some = paths.slice(at, at + 200);
      const counted = await this.#run(
        `cd ${quote(there)} && for f in ${some.map(quote).join(" ")}; do wc -c <"$f" || echo 0; done`,
      );
      for (const [index, text] of counted.trimEnd().split("\n").entries())
        sizes.set(some[index] ?? "", Number(text.trim()));
    }
    return paths.map((path) => ({
      path,
      size: sizes.get(path) ?? 0,
      mtimeMs: times.get(`${there}/${path}`) ?? 0,
    }));
  }

  async #receive(batch: readonly Changed[], stage: string): Promise<void> {
    const { there, scripts } = this.#options;
    const words = batch.map(({ path }) => quote(path)).join(" ");
    const { code, output, errors } = await scripts.run(`cd ${quote(there)} && tar -cf - -- ${words}`);
    if (code !== 0) throw new Error(errors.trim() || `tar ended with code ${code}`);
    const wanted = new Set(batch.map(({ path }) => path));
    await unpack(output, stage, (path) => wanted.has(path));
  }

  /** Puts one file in its place, unless what is here was written later. */
  async #keep({ path, mtimeMs }: Changed, stage: string): Promise<void> {
    const { here } = this.#options;
    const target = join(here, path);
    const present = await stat(target).catch(() => null);
    if (present && !isLike(this.#sent.get(path), present) && present.mtimeMs >= mtimeMs) return;
    await mkdir(dirname(target), { recursive: true });
    // A folder that is a link here must not be a way out of the home.
    const folder = await realpath(dirname(target));
    if (!isWithin(folder, await realpath(here))) return;
    await rename(join(stage, path), target);
  }

  async #run(script: string, stdin?: Uint8Array): Promise<string> {
    const { code, output, errors } = await this.#options.scripts.run(script, { stdin });
    if (code !== 0) throw new Error(errors.trim() || `exit code ${code}`);
    return output.toString("utf8");
  }
}

interface Changed extends Seen {
  readonly path: string;
}

const isLike = (sent: Seen | undefined, seen: Seen) => sent?.size === seen.size && sent.mtimeMs === seen.mtimeMs;

const isOurs = (path: string, credentials: readonly string[]) =>
  posix.normalize(path) === path &&
  !path.split("/").includes("..") &&
  (credentials.includes(path) || FOLDERS.some((folder) => path.startsWith(`${folder}/`)));

/** Regular files below the folders, and the credentials that exist. Links are left out. */
async function scan(home: string, credentials: readonly string[]): Promise<ReadonlyMap<string, Seen>> {
  const found = new Map<string, Seen>();
  const add = async (path: string) => {
    const facts = await stat(join(home, path)).catch(() => null); // gone meanwhile, or not there at all
    if (facts?.isFile() && facts.size <= MAX_FILE_BYTES) found.set(path, { mtimeMs: facts.mtimeMs, size: facts.size });
  };
  const walk = async (folder: string): Promise<void> => {
    const entries = await readdir(join(home, folder), { withFileTypes: true }).catch((): Dirent[] => []);
    for (const entry of entries) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) await walk(path);
      else if (entry.isFile() && (await isReadable(join(home, path)))) await add(path);
    }
  };
  for (const folder of FOLDERS) await walk(folder);
  for (const path of credentials) await add(path);
  return found;
}

const isReadable = (path: string) =>
  access(path, constants.R_OK).then(
    () => true,
    () => false,
  );

async function hashOf(path: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(path))
    .digest("hex");
}

/** Together at most so many bytes and names as one trip takes. */
function* batchesOf<T extends { readonly path: string; readonly size: number }>(files: readonly T[]): Generator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length > 0 && (bytes + file.size > BATCH_BYTES || batch.length >= 200)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(file);
    bytes += file.size;
  }
  if (batch.length > 0) yield batch;
}

async function pack(cwd: string, paths: readonly string[]): Promise<Buffer> {
  const { create } = await import("tar");
  const parts: Buffer[] = [];
  for await (const chunk of create({ cwd, portable: true, noDirRecurse: true }, [...paths]))
    parts.push(Buffer.from(chunk));
  return Buffer.concat(parts);
}

async function unpack(archive: Buffer, cwd: string, wants: (path: string) => boolean): Promise<void> {
  const { extract } = await import("tar");
  await new Promise<void>((resolve, reject) => {
    const unpacking = extract({
      cwd,
      strict: true,
      filter: (path, entry) => wants(path) && "type" in entry && entry.type === "File",
    });
    unpacking.on("error", reject);
    unpacking.on("close", () => resolve());
    unpacking.end(archive);
  });
}
