// Another process swaps folders and files for links while the file tools work. What was looked at is what is written and read.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { patch as patchTool } from "../../src/tools/patch.ts";
import { readFile as readTool } from "../../src/tools/read-file.ts";
import { writeFile as writeTool } from "../../src/tools/write-file.ts";
import { type FileRig, fileRig, parsed } from "../support/file-workspace.ts";
import { fewer } from "../support/sample.ts";

// A folder, a file and a missing folder, each in turn the real thing and a link to what must not be touched.
const SWAPPER = `
const fs = require("node:fs");
const [project, secret, hidden] = process.argv.slice(1);
process.chdir(project);
const tries = (act) => { try { act(); } catch {} };
const link = (target, name) => tries(() => { fs.rmSync("new-link", { force: true }); fs.symlinkSync(target, "new-link"); fs.renameSync("new-link", name); });
process.stdout.write("ready");
for (;;) {
  tries(() => fs.renameSync("folder", "aside"));
  tries(() => fs.symlinkSync(secret, "folder"));
  link(secret + "/authorized_keys", "file.txt");
  link(hidden, "peek.txt");
  tries(() => fs.symlinkSync(secret, "fresh"));
  tries(() => fs.unlinkSync("folder"));
  tries(() => fs.renameSync("aside", "folder"));
  link("plain.txt", "file.txt");
  link("plain.txt", "peek.txt");
  tries(() => fs.rmSync("fresh", { recursive: true, force: true }));
}`;

let rig: FileRig;
let swapper: ChildProcess;
let secret: string;
before(async () => {
  rig = await fileRig();
  secret = join(rig.userHome, ".ssh");
  await mkdir(secret);
  await mkdir(rig.at("folder"));
  await writeFile(join(secret, "authorized_keys"), "a key of the user\n");
  await writeFile(join(secret, "in.txt"), "a secret of the user\n");
  await writeFile(rig.at("plain.txt"), "plain\n");
  const hidden = join(rig.userHome, ".hermes", ".env");
  await writeFile(hidden, "WORD=not for the model\n");
  swapper = spawn(process.execPath, ["-e", SWAPPER, rig.dir, secret, hidden], { stdio: ["ignore", "pipe", "ignore"] });
  await once(swapper.stdout as NonNullable<typeof swapper.stdout>, "data"); // it has a pipe there
});
after(async () => {
  swapper.kill("SIGKILL");
  await once(swapper, "exit");
  await rig.close();
});

async function untouched(): Promise<void> {
  assert.deepEqual((await readdir(secret)).sort(), ["authorized_keys", "in.txt"]);
  assert.equal(await readFile(join(secret, "authorized_keys"), "utf8"), "a key of the user\n");
  assert.equal(await readFile(join(secret, "in.txt"), "utf8"), "a secret of the user\n");
}

const ROUNDS = fewer(1200, 3);

test("write_file never lands behind a link that was put in its way", async () => {
  let written = 0;
  for (let n = 0; n < ROUNDS; n++) {
    const path = ["folder/out.txt", "file.txt", "fresh/deep/out.txt"][n % 3] as string;
    const result = parsed(await writeTool({ path, content: `round ${n}\n` }, rig.context()));
    if (result.error === undefined) written++;
  }
  await untouched();
  assert.ok(written > 0, "no write came through at all");
});

test("patch neither changes, moves nor removes behind such a link", async () => {
  for (let n = 0; n < ROUNDS / 4; n++) {
    const text = `*** Begin Patch\n*** Add File: folder/added-${n}.txt\n+x\n*** Move File: plain.txt -> folder/moved.txt\n*** End Patch`;
    await patchTool({ mode: "patch", patch: text }, rig.context());
    await patchTool(
      { mode: "patch", patch: "*** Begin Patch\n*** Delete File: folder/in.txt\n*** End Patch" },
      rig.context(),
    );
    await patchTool({ path: "file.txt", old_string: "key", new_string: "changed" }, rig.context());
    await writeFile(rig.at("plain.txt"), "plain\n").catch(() => undefined);
  }
  await untouched();
});

test("what is read is the file that was looked at", async () => {
  for (let n = 0; n < ROUNDS; n++) {
    const result = await readTool({ path: "peek.txt", offset: 1 + (n % 2), limit: 1 + n }, rig.context());
    assert.doesNotMatch(String(result), /WORD/);
  }
});
