// Whole folders through the door a user has: `hermes skills scan DIR`.
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { Command } from "commander";
import { BENIGN } from "../../../test/fixtures/skills-benign/all.ts";
import { MALICIOUS } from "../../../test/fixtures/skills-malicious/all.ts";
import { type SkillFolder, skillMd } from "../../../test/fixtures/skills-malicious/folder.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { define } from "./skills.ts";

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "hermes-scan-"));
});
after(() => rm(root, { recursive: true }));

const PUBLIC = join(import.meta.dirname, "../../../test/fixtures/skills-public");

async function layOut(folder: SkillFolder): Promise<string> {
  const dir = join(root, folder.name);
  const files = { "SKILL.md": skillMd(folder.name, folder.about), ...folder.files };
  const put = async (path: string, write: (place: string) => Promise<unknown>) => {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await write(join(dir, path));
  };
  for (const [path, text] of Object.entries(files)) await put(path, (place) => writeFile(place, text));
  for (const [path, text] of Object.entries(folder.latin1 ?? {}))
    await put(path, (place) => writeFile(place, Buffer.from(text, "latin1")));
  for (const [path, to] of Object.entries(folder.links ?? {})) await put(path, (place) => symlink(to, place));
  for (const path of folder.executable ?? []) await chmod(join(dir, path), 0o755);
  return dir;
}

const scan = async (folder: SkillFolder) => scanDir(await layOut(folder));

async function scanDir(dir: string) {
  let out = "";
  const io = { out: (text: string) => (out += text), err: () => undefined, columns: 80 };
  const command = new Command("skills").exitOverride();
  define(command, { io, cwd: root } as unknown as CliContext); // what the scan uses
  let code = 0;
  try {
    await command.parseAsync(["scan", dir, "--json"], { from: "user" });
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    code = error.exitCode;
  }
  const report: { verdict: string; findings: { id: string; severity: string }[] } = JSON.parse(out);
  return { code, ...report };
}

test("there are at least forty folders of each kind of evil and thirty that are fine", () => {
  assert.ok(MALICIOUS.length >= 40);
  assert.ok(BENIGN.length >= 30);
  assert.equal(new Set([...MALICIOUS, ...BENIGN].map(({ name }) => name)).size, MALICIOUS.length + BENIGN.length);
});

for (const folder of MALICIOUS) {
  test(`${folder.name} is flagged: ${folder.about}`, async () => {
    const { code, verdict, findings } = await scan(folder);
    const ids = findings.map(({ id }) => id);
    for (const id of folder.finds ?? []) assert.ok(ids.includes(id), `${id} is not among ${ids}`);
    assert.notEqual(verdict, "safe");
    assert.equal(code, verdict === "dangerous" ? 2 : 1);
  });
}

for (const folder of BENIGN) {
  test(`${folder.name} passes: ${folder.about}`, async () => {
    const { code, verdict, findings } = await scan(folder);
    const grave = findings.filter(({ severity }) => severity === "high" || severity === "critical");
    assert.deepEqual([code, verdict, grave], [0, "safe", []]);
  });
}

test("of skills as people publish them none is dangerous, and hardly one needs a second look", async () => {
  const names = await readdir(PUBLIC);
  assert.ok(names.length >= 30);
  const verdicts = new Map<string, string[]>();
  for (const name of names) {
    const { verdict, findings } = await scanDir(join(PUBLIC, name));
    const grave = findings.filter(({ severity }) => severity === "high" || severity === "critical");
    const told = [name, ...new Set(grave.map(({ id }) => id))].join(" ");
    verdicts.set(verdict, [...(verdicts.get(verdict) ?? []), told]);
  }
  assert.deepEqual(verdicts.get("dangerous") ?? [], []);
  const doubtful = verdicts.get("caution") ?? [];
  assert.ok(doubtful.length <= 4, doubtful.join("\n"));
});
