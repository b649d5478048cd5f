// Files that go with a card: kept beside the board, one folder for each card, and listed in its file.
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rm, writeFile } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { messageOf } from "../kit/errors.ts";
import { isWithin } from "../kit/files.ts";
import type { Connection } from "../sessions/connection.ts";
import { BoardError, cardOf, note } from "./cards.ts";
import type { BoardFile, Change } from "./schema.ts";

/** A row of `task_attachments`. */
interface CardAttachment {
  readonly id: number;
  readonly task_id: string;
  readonly filename: string;
  readonly stored_path: string;
  readonly content_type: string | null;
  readonly size: number | null;
  readonly uploaded_by: string | null;
  readonly created_at: number;
}

export const MOST_ATTACHED_BYTES = 25 * 1024 * 1024;
const MOST_NAME = 120;
const MOST_OF_A_NAME = 1000;

/** Where the files of all cards lie. */
type Place = { readonly attachments: string };

export const attachmentsOf = (db: Connection, id: string): readonly CardAttachment[] =>
  db.all<CardAttachment>("SELECT * FROM task_attachments WHERE task_id = ? ORDER BY id", id);

/** One line of plain characters that no system reads as a path, an option or a hidden file. */
function safeName(given: string): string {
  let plain = basename(given.replaceAll("\\", "/").normalize("NFC"))
    .replace(/[\p{C}\p{Z}]+/gu, " ")
    .replace(/[<>:"|?*]/g, "_")
    .replace(/^[.\-~ ]+/, "");
  while (/[. ]$/.test(plain)) plain = plain.slice(0, -1);
  const name = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i.test(plain) ? `_${plain}` : plain;
  if (name === "") return "file";
  const end = extname(name).slice(0, 20);
  const points = [...name.slice(0, name.length - extname(name).length)];
  return `${points.slice(0, MOST_NAME - end.length).join("")}${end}`;
}

/** A file that was put where the card's files lie, and that no row names yet. */
export interface KeptFile {
  readonly filename: string;
  readonly stored_path: string;
  readonly size: number;
}

/** Puts a file there under a name that is free. `write` fails with EEXIST where it is not. */
async function keep(
  place: Place,
  id: string,
  given: string,
  write: (path: string) => Promise<void>,
): Promise<{ readonly filename: string; readonly stored_path: string }> {
  // Ids come from models too.
  if (!/^[\w-]{1,64}$/.test(id)) throw new BoardError(`no card has the id "${id}".`);
  const folder = join(place.attachments, id);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const name = safeName(given);
  const end = extname(name);
  const stem = name.slice(0, name.length - end.length);
  for (let at = 1; at <= MOST_OF_A_NAME; at++) {
    const filename = at === 1 ? name : `${stem}-${at}${end}`;
    const path = join(folder, filename);
    try {
      await write(path);
      return { filename, stored_path: path };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      await rm(path, { force: true });
      throw new BoardError(`${filename} could not be kept in ${folder}: ${messageOf(error)}`);
    }
  }
  throw new BoardError(`${id} has ${MOST_OF_A_NAME} files called ${name} already; choose another name.`);
}

const tooLarge = (name: string, size: number) =>
  new BoardError(
    `${name} has ${Math.ceil(size / 1024 / 1024)} MB; an attachment has at most ${MOST_ATTACHED_BYTES / 1024 / 1024} MB.`,
  );

export async function keepBytes(place: Place, id: string, name: string, bytes: Uint8Array): Promise<KeptFile> {
  if (bytes.length > MOST_ATTACHED_BYTES) throw tooLarge(name, bytes.length);
  const kept = await keep(place, id, name, (path) => writeFile(path, bytes, { flag: "wx", mode: 0o600 }));
  return { ...kept, size: bytes.length };
}

/**
 * Copies a file of this machine. `within`: one that lies there when it is read, whatever stood at its path a moment before; processes of a
 * worker may exchange it for a link at any time.
 */
export async function keepCopy(place: Place, id: string, from: string, within?: string): Promise<KeptFile> {
  const unreadable = (error: unknown) => new BoardError(`${from} cannot be read: ${messageOf(error)}`);
  // A pipe without a writer would never open otherwise.
  const file = await open(from, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    throw unreadable(error);
  });
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new BoardError(`${from} is no file.`);
    if (found.size > MOST_ATTACHED_BYTES) throw tooLarge(from, found.size);
    if (within !== undefined && !isWithin(await placeOf(file, from), within))
      throw new BoardError(`${from} no longer lies in ${within}.`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(found.size), 0, found.size, 0).catch((error) => {
      throw unreadable(error);
    });
    return await keepBytes(place, id, from, buffer.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
}

/** Where an open file lies, without any link on the way. Empty: not where its path says. */
async function placeOf(file: FileHandle, path: string): Promise<string> {
  if (process.platform === "linux") return readlink(`/proc/self/fd/${file.fd}`);
  const [opened, real] = [await file.stat(), await realpath(path).catch(() => "")]; // exchanged meanwhile
  const found = await lstat(real).catch(() => null); // likewise
  return found?.ino === opened.ino && found.dev === opened.dev ? real : "";
}

export function addAttachment(
  change: Change,
  id: string,
  { file, type, by }: { readonly file: KeptFile; readonly type: string | null; readonly by: string },
): CardAttachment {
  const { db, now } = change;
  cardOf(db, id);
  const { filename, stored_path, size } = file;
  const { lastId } = db.run(
    `INSERT INTO task_attachments (task_id, filename, stored_path, content_type, size, uploaded_by, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ...[id, filename, stored_path, type, size, by, now],
  );
  note(change, { card: id, kind: "attached", payload: { attachment_id: lastId, filename, size, by } });
  return { id: lastId, task_id: id, filename, stored_path, content_type: type, size, uploaded_by: by, created_at: now };
}

/** From a file to a row; where the row cannot be written, the file goes again. */
export async function attach(
  board: BoardFile,
  id: string,
  { keep: put, type, by }: { keep(): Promise<KeptFile>; readonly type: string | null; readonly by: string },
): Promise<CardAttachment> {
  cardOf(board.db, id);
  const file = await put();
  try {
    return await board.change((change) => addAttachment(change, id, { file, type: type ?? typeOf(file.filename), by }));
  } catch (error) {
    await rm(file.stored_path, { force: true });
    throw error;
  }
}

/** The row goes first: a file without a row is only lost room, a row without a file would promise something. */
export async function removeAttachment(board: BoardFile, place: Place, number: number): Promise<CardAttachment> {
  const row = await board.change((change) => {
    const found = change.db.get<CardAttachment>("SELECT * FROM task_attachments WHERE id = ?", number);
    if (!found)
      throw new BoardError(`there is no attachment ${number}. "hermes kanban attachments ID" shows their numbers.`);
    change.db.run("DELETE FROM task_attachments WHERE id = ?", number);
    const { filename, task_id: card } = found;
    note(change, { card, kind: "attachment_removed", payload: { attachment_id: number, filename } });
    return found;
  });
  // A row of another program may name any file of this machine.
  if (isWithin(resolve(row.stored_path), place.attachments)) await rm(row.stored_path, { force: true });
  return row;
}

const TYPES: Readonly<Record<string, string>> = {
  ...{ ".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".html": "text/html", ".xml": "text/xml" },
  ...{ ".json": "application/json", ".pdf": "application/pdf", ".zip": "application/zip", ".svg": "image/svg+xml" },
  ...{ ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp" },
  ...{ ".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".mp4": "video/mp4", ".webm": "video/webm" },
  ...{ ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
  ...{ ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
};

export const typeOf = (name: string): string | null => TYPES[extname(name).toLowerCase()] ?? null;
