// Whole folders through the door a user has: `hermes skills scan DIR`.
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { Command } from "commander";
import { BENIGN } from "../../../test/fixtures/skills-benign/all.ts";
import { MALICIOUS } from "../../../test/fixtures/skills-malicious/all.ts";
import { type SkillFolder, skillMd } from "../../../test/fixtures/skills-malicious/folder.ts";
import { type CliContext, ExitError } from "./context.ts";
import { define } from "./skills.ts";

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "hermes-scan-"));
});
after(() => rm(root, { recursive: true }));

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

async function scan(folder: SkillFolder) {
  let out = "";
  const io = { out: (text: string) => (out += text), err: () => undefined, columns: 80 };
  const command = new Command("skills").exitOverride();
  define(command, { io, cwd: root } as unknown as CliContext); // what the scan uses
  let code = 0;
  try {
    await command.parseAsync(["scan", await layOut(folder), "--json"], { from: "user" });
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    code = error.code;
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
