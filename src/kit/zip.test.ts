import assert from "node:assert/strict";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { readZip, ZipError, ZipWriter } from "./zip.ts";

let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "hermes-zip-"));
});
after(() => rm(dir, { recursive: true, force: true }));

async function* once(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
}

async function pack(name: string, members: readonly (readonly [string, Uint8Array])[]): Promise<string> {
  const path = join(dir, name);
  const file = await open(path, "w");
  const zip = new ZipWriter(file);
  for (const [member, bytes] of members)
    await zip.add({ name: member, mode: 0o100640, modified: new Date(2026, 0, 2, 3, 4, 6) }, once(bytes));
  await zip.finish();
  await file.close();
  return path;
}

async function unpack(path: string): Promise<[string, Buffer][]> {
  const found: [string, Buffer][] = [];
  for (const entry of await readZip(path)) found.push([entry.name, Buffer.concat(await Array.fromAsync(entry.read()))]);
  return found;
}

test("what was packed comes out again, whatever it is", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.tuple(fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }), fc.uint8Array({ maxLength: 500 })),
      ),
      async (members) => {
        const path = await pack("law.zip", members);
        const expected = members.map(([name, bytes]) => [name.toWellFormed(), Buffer.from(bytes)]);
        assert.deepEqual(await unpack(path), expected);
      },
    ),
    { numRuns: 30 },
  );
});

test("the mode of a member is kept", async () => {
  const [entry] = await readZip(await pack("mode.zip", [["a", Buffer.from("x")]]));
  assert.equal(entry?.mode, 0o100640);
});

// Written by another program: deflated, stored with a Chinese name, a link, a folder.
const FOREIGN =
  "UEsDBBQAAAAIAC4hcl1tXoX/DwAAAMgAAAASAAAAaGVybWVzL2NvbmZpZy55YW1sy81PSc2xUqiu5cod0iwAUEsDBBQAAAgAAIMYIlzPYiAZBQAAAAUAAAAOAAAAaGVybWVzL+WQjS50eHRwbGFpblBLAwQUAAAAAAAAACEACrkfKQsAAAALAAAACwAAAGhlcm1lcy9saW5rL2V0Yy9wYXNzd2RQSwMEFAAAAAgALiFyXQAAAAACAAAAAAAAAAsAAABoZXJtZXMvZGlyLwMAUEsBAhQDFAAAAAgALiFyXW1ehf8PAAAAyAAAABIAAAAAAAAAAAAAAIABAAAAAGhlcm1lcy9jb25maWcueWFtbFBLAQIUAxQAAAgAAIMYIlzPYiAZBQAAAAUAAAAOAAAAAAAAAAAAAACAgT8AAABoZXJtZXMv5ZCNLnR4dFBLAQIUAxQAAAAAAAAAIQAKuR8pCwAAAAsAAAALAAAAAAAAAAAAAAD/oXAAAABoZXJtZXMvbGlua1BLAQIUAxQAAAAIAC4hcl0AAAAAAgAAAAAAAAALAAAAAAAAAAAAEAD9QaQAAABoZXJtZXMvZGlyL1BLBQYAAAAABAAEAO4AAADPAAAAAAA=";

test("archives of other programs are read", async () => {
  const path = join(dir, "foreign.zip");
  await writeFile(path, Buffer.from(FOREIGN, "base64"));
  const entries = await readZip(path);
  assert.deepEqual(
    entries.map(({ name, isLink, isDirectory }) => [name, isLink, isDirectory]),
    [
      ["hermes/config.yaml", false, false],
      ["hermes/名.txt", false, false],
      ["hermes/link", true, false],
      ["hermes/dir/", false, true],
    ],
  );
  const [config, plain] = await unpack(path);
  assert.equal(config?.[1].toString(), "model: {}\n".repeat(20));
  assert.equal(plain?.[1].toString(), "plain");
});

test("a damaged archive is refused, at its directory or at the member", async () => {
  const path = await pack("whole.zip", [["a", Buffer.from("hello ".repeat(100))]]);
  const whole = await readFile(path);
  const broken = join(dir, "broken.zip");
  const reading = async (bytes: Buffer) => {
    await writeFile(broken, bytes);
    return unpack(broken);
  };
  await assert.rejects(reading(Buffer.from("not a zip")), ZipError);
  await assert.rejects(reading(whole.subarray(0, whole.length - 30)), ZipError);
  // Every byte of the packed data, of its sum and of its size.
  for (let at = 31; at < whole.length - 22; at++) {
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] ?? 0) ^ 0xff;
    try {
      const found = await reading(changed);
      assert.deepEqual(found[0]?.[1].toString(), "hello ".repeat(100), `byte ${at}`);
    } catch (error) {
      assert.ok(error instanceof ZipError, `byte ${at}: ${error}`);
    }
  }
  const lies = Buffer.from(whole);
  const directory = lies.readUInt32LE(lies.length - 6);
  lies.writeUInt32LE(10, directory + 24);
  await assert.rejects(reading(lies), /damaged/); // unpacks to more than it says
});
