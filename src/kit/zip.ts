// Zip files, written and read as streams. Ours on node:zlib: packing a folder and unpacking it again takes less code than the checks that a
// package's reader would still leave to us. No Zip64: members and archives stay below 4 GB.
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { pipeline, Readable, Transform } from "node:stream";
import { crc32, createDeflateRaw, createInflateRaw } from "node:zlib";
import { UserError } from "./errors.ts";

/** A zip file that cannot be written or is not one, in words for the user. */
export class ZipError extends UserError {
  override name = "ZipError";
}

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;
const LIMIT = 0xffffffff;
const UTF8_NAMES = 0x0800;
const ENCRYPTED = 0x0001;
const STORED = 0;
const DEFLATED = 8;
const UNIX = 3 << 8;

interface ZipMember {
  /** With `/` between its parts. */
  readonly name: string;
  /** Permissions and file type, as `stat` gives them. */
  readonly mode: number;
  readonly modified: Date;
}

/**
 * Writes members one after the other into an open, empty file; `finish` adds the directory. The caller closes the file, and removes it when
 * something failed.
 */
export class ZipWriter {
  readonly #file: FileHandle;
  readonly #directory: Buffer[] = [];
  #at = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async add(member: ZipMember, content: AsyncIterable<Uint8Array>): Promise<void> {
    const name = Buffer.from(member.name);
    const start = this.#at;
    this.#at += LOCAL_BYTES + name.length; // the header is written last, when sizes and sum are known
    let size = 0;
    let sum = 0;
    const counted = async function* () {
      for await (const chunk of content) {
        size += chunk.length;
        sum = crc32(chunk, sum);
        yield chunk;
      }
    };
    const dataStart = this.#at;
    // An error on either side ends the loop: `pipeline` hands it on to its last stream.
    for await (const chunk of pipeline(Readable.from(counted()), createDeflateRaw(), () => undefined)) {
      await this.#write(chunk as Buffer, this.#at); // a deflate stream gives buffers
      this.#at += (chunk as Buffer).length;
      if (this.#at > LIMIT) throw new ZipError("A zip file cannot hold more than 4 GB.");
    }
    if (size > LIMIT) throw new ZipError(`${member.name} is larger than 4 GB and cannot be stored in a zip file.`);
    const facts = { ...member, name, size, sum, packed: this.#at - dataStart, start };
    await this.#write(localHeader(facts), start);
    this.#directory.push(centralHeader(facts));
  }

  async finish(): Promise<void> {
    const directory = Buffer.concat(this.#directory);
    const count = this.#directory.length;
    if (count > 0xffff) throw new ZipError("A zip file cannot hold more than 65535 files.");
    const end = Buffer.alloc(END_BYTES);
    end.writeUInt32LE(END, 0);
    end.writeUInt16LE(count, 8);
    end.writeUInt16LE(count, 10);
    end.writeUInt32LE(directory.length, 12);
    end.writeUInt32LE(this.#at, 16);
    await this.#write(Buffer.concat([directory, end]), this.#at);
    await this.#file.sync();
  }

  async #write(bytes: Buffer, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; )
      done += (await this.#file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
  }
}

interface MemberFacts {
  readonly name: Buffer;
  readonly mode: number;
  readonly modified: Date;
  readonly size: number;
  readonly packed: number;
  readonly sum: number;
  readonly start: number;
}

/** What both headers have in common, at `at`: version, flags, method, time, sum, sizes, name length. */
function writeCommon(header: Buffer, at: number, { modified, sum, packed, size, name }: MemberFacts): void {
  header.writeUInt16LE(20, at);
  header.writeUInt16LE(UTF8_NAMES, at + 2);
  header.writeUInt16LE(DEFLATED, at + 4);
  header.writeUInt16LE(
    (modified.getHours() << 11) | (modified.getMinutes() << 5) | (modified.getSeconds() >> 1),
    at + 6,
  );
  const year = Math.min(127, Math.max(0, modified.getFullYear() - 1980));
  header.writeUInt16LE((year << 9) | ((modified.getMonth() + 1) << 5) | modified.getDate(), at + 8);
  header.writeUInt32LE(sum, at + 10);
  header.writeUInt32LE(packed, at + 14);
  header.writeUInt32LE(size, at + 18);
  header.writeUInt16LE(name.length, at + 22);
}

function localHeader(facts: MemberFacts): Buffer {
  const header = Buffer.alloc(LOCAL_BYTES);
  header.writeUInt32LE(LOCAL, 0);
  writeCommon(header, 4, facts);
  return Buffer.concat([header, facts.name]);
}

function centralHeader(facts: MemberFacts): Buffer {
  const header = Buffer.alloc(CENTRAL_BYTES);
  header.writeUInt32LE(CENTRAL, 0);
  header.writeUInt16LE(UNIX | 20, 4);
  writeCommon(header, 6, facts);
  header.writeUInt32LE((facts.mode << 16) >>> 0, 38);
  header.writeUInt32LE(facts.start, 42);
  return Buffer.concat([header, facts.name]);
}

/** A member as the directory of an archive describes it. Its name is what somebody wrote: check it before it becomes a path. */
export interface ZipEntry {
  readonly name: string;
  readonly size: number;
  /** 0 where the writer of the archive knew no modes. */
  readonly mode: number;
  readonly isDirectory: boolean;
  readonly isLink: boolean;
  /** The unpacked bytes. Throws `ZipError` when they are not what the directory promises. */
  read(): AsyncIterable<Uint8Array>;
}

/** Reads the directory of an archive. Throws `ZipError` for anything but a whole zip file. */
export async function readZip(path: string): Promise<readonly ZipEntry[]> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const tail = await bytesAt(file, Math.max(0, size - END_BYTES - 0xffff), size);
    const at = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
    if (at < 0 || at + END_BYTES > tail.length) throw new ZipError(`${path} is not a zip file, or is cut off.`);
    const count = tail.readUInt16LE(at + 10);
    const start = tail.readUInt32LE(at + 16);
    if (count === 0xffff || start === LIMIT)
      throw new ZipError(`${path} is a Zip64 file, which is not supported. Unpack it and copy the files.`);
    const directory = await bytesAt(file, start, Math.min(size, start + tail.readUInt32LE(at + 12)));
    return entriesOf(directory, count, path);
  } finally {
    await file.close();
  }
}

function entriesOf(directory: Buffer, count: number, path: string): readonly ZipEntry[] {
  const entries: ZipEntry[] = [];
  let at = 0;
  for (let n = 0; n < count; n++) {
    if (at + CENTRAL_BYTES > directory.length || directory.readUInt32LE(at) !== CENTRAL)
      throw new ZipError(`The directory of ${path} is damaged.`);
    const nameEnd = at + CENTRAL_BYTES + directory.readUInt16LE(at + 28);
    const flags = directory.readUInt16LE(at + 8);
    const raw = directory.subarray(at + CENTRAL_BYTES, nameEnd);
    const name = raw.toString((flags & UTF8_NAMES) === 0 ? "latin1" : "utf8");
    const mode = directory.readUInt32LE(at + 38) >>> 16;
    const facts = {
      name,
      flags,
      method: directory.readUInt16LE(at + 10),
      sum: directory.readUInt32LE(at + 16),
      packed: directory.readUInt32LE(at + 20),
      size: directory.readUInt32LE(at + 24),
      start: directory.readUInt32LE(at + 42),
    };
    entries.push({
      name,
      size: facts.size,
      mode,
      isDirectory: name.endsWith("/") || (mode & 0o170000) === 0o040000,
      isLink: (mode & 0o170000) === 0o120000,
      read: () => contentOf(path, facts),
    });
    at = nameEnd + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  }
  return entries;
}

interface EntryFacts {
  readonly name: string;
  readonly flags: number;
  readonly method: number;
  readonly sum: number;
  readonly packed: number;
  readonly size: number;
  readonly start: number;
}

async function* contentOf(path: string, facts: EntryFacts): AsyncGenerator<Uint8Array> {
  const { name, flags, method, sum, packed, size, start } = facts;
  const damaged = (cause?: unknown) => new ZipError(`${name} in ${path} is damaged.`, { cause });
  if ((flags & ENCRYPTED) !== 0) throw new ZipError(`${name} in ${path} is encrypted.`);
  if (method !== STORED && method !== DEFLATED)
    throw new ZipError(`${name} in ${path} is packed in a way that is not supported (method ${method}).`);
  const from = await dataStart(path, start);
  if (from === null) throw damaged();
  const bytes = packed === 0 ? Readable.from([]) : createReadStream(path, { start: from, end: from + packed - 1 });
  const unpack =
    method === DEFLATED ? createInflateRaw() : new Transform({ transform: (chunk, _, done) => done(null, chunk) });
  let count = 0;
  let found = 0;
  try {
    for await (const chunk of pipeline(bytes, unpack, () => undefined)) {
      count += (chunk as Buffer).length; // both ways give buffers
      if (count > size) throw damaged(); // a bomb unpacks to more than it says
      found = crc32(chunk as Buffer, found);
      yield chunk as Buffer;
    }
  } catch (error) {
    throw error instanceof ZipError ? error : damaged(error);
  }
  if (count !== size || found !== sum) throw damaged();
}

/** The lengths in the local header may differ from those in the directory. */
async function dataStart(path: string, start: number): Promise<number | null> {
  const file = await open(path, "r");
  try {
    const header = await bytesAt(file, start, start + LOCAL_BYTES);
    if (header.length < LOCAL_BYTES || header.readUInt32LE(0) !== LOCAL) return null;
    return start + LOCAL_BYTES + header.readUInt16LE(26) + header.readUInt16LE(28);
  } finally {
    await file.close();
  }
}

async function bytesAt(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.max(0, end - start));
  let done = 0;
  while (done < buffer.length) {
    const { bytesRead } = await file.read(buffer, done, buffer.length - done, start + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return buffer.subarray(0, done);
}
