// A saved database back into its place. Through SQLite's backup into the live file: replacing the file under an open connection, or beside
// an old write-ahead log, would mix two databases.
import { statSync } from "node:fs";
import { backup } from "node:sqlite";
import { connect } from "./connection.ts";
import { findDamage } from "./file-check.ts";
import { storeError } from "./sqlite-errors.ts";
import { StoreError } from "./store.ts";

export async function restoreDatabase(options: { readonly from: string; readonly to: string }): Promise<void> {
  const { from, to } = options;
  if (!statSync(from, { throwIfNoEntry: false }))
    throw new StoreError("unavailable", `there is no saved database at ${from}`);
  const source = connect({ path: from, readOnly: true });
  try {
    const damage = findDamage(from);
    if (damage.length > 0) {
      throw new StoreError("damaged", `${from} is damaged (${damage[0]}) and was not restored; ${to} was not changed`);
    }
    await backup(source.database, to);
  } catch (error) {
    throw storeError(error, to);
  } finally {
    source.close();
  }
}
