// Runs the files of the build, and keeps what V8 compiled of them for the next start. Node has such a cache too, but fills it before a file
// runs: the functions that a start calls are not in it and were compiled again each time, which was a quarter of the way to the first request.
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { constants, Script } from "node:vm";
import { undoFlagsOfRests } from "../kit/memory.ts";

/** Old builds leave their code behind; this many files are kept, the newest. */
const MOST_FILES = 8;
const HEAD_BYTES = 4096;

interface ScriptLoader {
  /** The exports of a file of the build, run once. */
  load(name: string): unknown;
  /**
   * Writes down what was compiled, if a file ran whose code was not kept yet. What was loaded by its first call stays as it is kept then: V8
   * lets go of functions that ran at the start. It never throws: without it the next start is slower.
   */
  keep(): void;
}

interface Loaded {
  readonly script: Script;
  /** As in Node, it is handed out before the file has run to its end, and a file may put other exports into it. */
  readonly module: { exports: object };
}

/**
 * `folder` holds the files of the build, `keptFile` the code of an earlier run. Code is run as it is read, so `keptFile` is used only where
 * nobody but its owner can write it; its name has to tell builds and versions of Node apart, as V8 looks at nothing but the length of a file.
 */
export function scriptLoader(folder: string, keptFile: string | null): ScriptLoader {
  const kept = keptFile === null ? null : new KeptCode(keptFile);
  const loaded = new Map<string, Loaded>();
  const ofNode = createRequire(join(folder, "main.cjs"));
  const require = Object.assign((name: string) => (name.startsWith("./") ? load(name.slice(2)) : ofNode(name)), ofNode);
  let isNew = false;
  const settled = new Set<string>();

  function load(name: string): unknown {
    const before = loaded.get(name);
    if (before) return before.module.exports;
    const filename = join(folder, name);
    const cachedData = kept?.codeOf(name);
    // The build escapes whatever is not ASCII, and makes each file one function with the parameters of Node's own modules.
    const script = new Script(readFileSync(filename, "latin1"), {
      filename,
      cachedData,
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    isNew ||= cachedData === undefined || script.cachedDataRejected === true;
    const module = { exports: {} };
    loaded.set(name, { script, module });
    const run: (...values: unknown[]) => void = script.runInThisContext();
    run.call(module.exports, module.exports, require, module, filename, folder);
    return module.exports;
  }

  return {
    load,
    keep() {
      try {
        if (keptFile !== null && isNew) write(keptFile);
      } catch {
        // a full disk or a home that cannot be written: the next start compiles again
      }
      isNew = false;
      for (const name of loaded.keys()) settled.add(name);
    },
  };

  function write(file: string): void {
    const codes = new Map<string, Buffer>();
    undoFlagsOfRests();
    for (const name of kept?.names() ?? []) {
      const code = kept?.codeOf(name);
      if (code) codes.set(name, code);
    }
    for (const [name, { script }] of loaded)
      if (!settled.has(name) || !codes.has(name)) codes.set(name, script.createCachedData());
    writeKept(file, codes);
  }
}

/** What an earlier run left, read when it is needed: most runs load a part of what all of them together have loaded. */
class KeptCode {
  readonly #file: string;
  #places = new Map<string, { readonly at: number; readonly length: number }>();
  /** Which file the places are of. */
  #identity = "";

  constructor(file: string) {
    this.#file = file;
  }

  names(): readonly string[] {
    return this.#read(() => [...this.#places.keys()]) ?? [];
  }

  codeOf(name: string): Buffer | undefined {
    return this.#read((opened) => {
      const place = this.#places.get(name);
      return place && readPart(opened, place.at, place.length);
    });
  }

  /** Another process may have put its own in place of the file meanwhile. */
  #read<T>(work: (opened: number) => T): T | undefined {
    let opened: number;
    try {
      opened = openSync(this.#file, "r");
    } catch {
      return undefined;
    }
    try {
      const { uid, mode, ino, mtimeMs } = fstatSync(opened);
      if (process.getuid && (uid !== process.getuid() || (mode & 0o022) !== 0)) return undefined;
      if (this.#identity !== `${ino} ${mtimeMs}`) {
        this.#identity = `${ino} ${mtimeMs}`;
        this.#places = placesIn(opened);
      }
      return work(opened);
    } finally {
      closeSync(opened);
    }
  }
}

function readPart(opened: number, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafeSlow(length);
  return readSync(opened, bytes, 0, length, at) === length ? bytes : undefined;
}

function placesIn(opened: number): Map<string, { readonly at: number; readonly length: number }> {
  let at = HEAD_BYTES;
  return new Map(
    parseHead(readPart(opened, 0, HEAD_BYTES)).map(({ name, length }) => {
      at += length;
      return [name, { at: at - length, length }];
    }),
  );
}

interface HeadRow {
  readonly name: string;
  readonly length: number;
}

function parseHead(bytes: Buffer | undefined): readonly HeadRow[] {
  try {
    return bytes ? JSON.parse(bytes.toString("latin1")) : [];
  } catch {
    return []; // not written here, or by another version
  }
}

/** At first name and length of each code as JSON, filled up with blanks; then the codes. */
function writeKept(file: string, codes: ReadonlyMap<string, Buffer>): void {
  const rows = [...codes].map(([name, code]): HeadRow => ({ name, length: code.length }));
  const head = Buffer.from(JSON.stringify(rows).padEnd(HEAD_BYTES), "latin1");
  if (head.length > HEAD_BYTES) throw new Error(`${rows.length} files are too many for the head of kept code`);
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}`;
  try {
    const opened = openSync(temporary, "wx", 0o600);
    try {
      for (const part of [head, ...codes.values()]) writeFileSync(opened, part);
      fsyncSync(opened); // V8 does not check what it is handed: half a file must never bear the name
    } finally {
      closeSync(opened);
    }
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  const others = readdirSync(folder).map((name) => join(folder, name));
  const ages = others.map((path) => ({ path, time: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
  for (const { path } of ages.sort((a, b) => b.time - a.time).slice(MOST_FILES)) rmSync(path, { force: true });
}

/** Where the code of this program is kept: with other compiled code if Node was told where, else in a home that is there already. */
export function keptCodeFile(
  name: string,
  home: string,
  env: Readonly<Record<string, string | undefined>>,
): string | null {
  if (env.NODE_DISABLE_COMPILE_CACHE) return null;
  const folder = env.NODE_COMPILE_CACHE ? join(env.NODE_COMPILE_CACHE, "hermes") : join(home, "cache", "code");
  if (!env.NODE_COMPILE_CACHE && !existsSync(home)) return null;
  return join(folder, `${name}-${process.version}-${process.arch}`);
}
