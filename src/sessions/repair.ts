// `hermes sessions repair`: looks, rebuilds what can be rebuilt, and otherwise rescues what is readable into a new file. The damaged
// file itself is never changed beyond its search index, and nothing is deleted.
import { statSync } from "node:fs";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { Connection, journalMode, settleJournal } from "./connection.ts";
import { findDamage, namesIndex } from "./file-check.ts";
import { checkIndex, type IndexTable } from "./fts.ts";
import { openSessionStore } from "./open.ts";
import { copyReadable, type Rescued } from "./rescue.ts";
import { readShape } from "./shape.ts";
import { isBusy, storeError } from "./sqlite-errors.ts";
import { StoreError } from "./store.ts";
import { rebuildSearch } from "./upgrade.ts";
import { transaction, waitWhileBusy } from "./write-queue.ts";

export interface RepairOptions {
  readonly path: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Look, change nothing. */
  readonly checkOnly?: boolean;
  readonly onProgress?: (text: string) => void;
}

export type RepairReport =
  | { readonly outcome: "sound" }
  | { readonly outcome: "index_rebuilt"; readonly damage: readonly string[] }
  | { readonly outcome: "damaged"; readonly damage: readonly string[] }
  | {
      readonly outcome: "rescued";
      readonly damage: readonly string[];
      readonly file: string;
      readonly rescued: readonly Rescued[];
    };

const PATIENCE_MS = 20_000;

export async function repairDatabase(options: RepairOptions): Promise<RepairReport> {
  const { path } = options;
  const tell = options.onProgress ?? (() => undefined);
  if (!statSync(path, { throwIfNoEntry: false })) {
    throw new StoreError("unavailable", `there is no session database at ${path}; nothing to repair`);
  }
  tell("checking the file");
  const damage = await lookForDamage(options);
  if (damage.length === 0) return { outcome: "sound" };
  if (options.checkOnly) return { outcome: "damaged", damage };
  if (damage.every(namesIndex) && (await rebuildInPlace(options, tell))) return { outcome: "index_rebuilt", damage };
  tell("rescuing readable rows into a new file");
  const { file, rescued } = await rescue(options);
  return { outcome: "rescued", damage, file, rescued };
}

async function lookForDamage(options: RepairOptions): Promise<readonly string[]> {
  try {
    const found = findDamage(options.path, "full");
    return found.length > 0 ? found : await indexesThatDoNotFit(options);
  } catch (error) {
    const told = storeError(error, options.path);
    const readOnly = told instanceof StoreError && told.code === "read_only";
    if (readOnly && options.checkOnly) return []; // the check of the index is a write in SQLite's eyes
    if (readOnly || isBusy(error)) throw told;
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** SQLite's file check looks at an index by itself; whether it fits the messages is a check of its own. */
async function indexesThatDoNotFit({ path, clock }: RepairOptions): Promise<readonly string[]> {
  const db = new Connection({ path });
  try {
    const shape = readShape(db);
    const tables: IndexTable[] = [];
    if (shape.fts5 && shape.main !== "none") tables.push("messages_fts");
    if (shape.fts5 && shape.trigram !== "none") tables.push("messages_fts_trigram");
    const unfit: string[] = [];
    for (const table of tables) {
      await waitWhileBusy({ db, clock, patienceMs: PATIENCE_MS }, () => {
        try {
          checkIndex(db, table);
        } catch (error) {
          if (isBusy(error)) throw error;
          unfit.push(`fts5: ${table} does not fit the messages`);
        }
      });
    }
    return unfit;
  } finally {
    db.close();
  }
}

/** True when the file is sound afterwards. */
async function rebuildInPlace(options: RepairOptions, tell: (text: string) => void): Promise<boolean> {
  tell("rebuilding the search index");
  const db = new Connection({ path: options.path });
  try {
    await waitWhileBusy({ db, clock: options.clock, patienceMs: PATIENCE_MS }, () =>
      transaction(db, () => rebuildSearch(db)),
    );
  } catch (error) {
    options.log.warn("the search index could not be rebuilt in place", error);
    return false;
  } finally {
    db.close();
  }
  return (await lookForDamage(options)).length === 0;
}

async function rescue(options: RepairOptions): Promise<{ file: string; rescued: readonly Rescued[] }> {
  const { path, clock, log } = options;
  const stamp = new Date(clock.now()).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  const file = `${path}.rescued-${stamp}`;
  if (statSync(file, { throwIfNoEntry: false }))
    throw new StoreError("conflict", `${file} exists already; move it away first`);
  const store = await openSessionStore({ path: file, journalMode: "delete", log, clock });
  await store.close();
  const source = openForRescue(path);
  const target = new Connection({ path: file });
  try {
    const rescued = copyReadable(source, target, log);
    takeJournal(source, target, log);
    return { file, rescued };
  } finally {
    source.close();
    target.close();
  }
}

/** The rescued file goes where the damaged one is; it was written as one file without a log so that it can be moved at any time. */
function takeJournal(source: Connection, target: Connection, log: Logger): void {
  try {
    if (journalMode(source) === "wal") settleJournal(target, "wal", process.versions.sqlite ?? "0", log);
  } catch (error) {
    log.warn(`the journal mode of ${source.path} cannot be told`, error);
  }
}

function openForRescue(path: string): Connection {
  try {
    return new Connection({ path, readOnly: true });
  } catch (error) {
    throw storeError(error, path);
  }
}
