import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type EditMode, mayWriteUnasked } from "./edits.ts";

/** What may be written without a question in each mode, by the path as it is written. */
describe("an edit", () => {
  let base: string;
  before(async () => {
    base = await realpath(await mkdtemp(join(tmpdir(), "hermes-edits-")));
    await mkdir(join(base, "project", ".git"), { recursive: true });
    await symlink("/usr", join(base, "project", "out"));
    await symlink(join(base, "project", ".git"), join(base, "project", "plain"));
    await symlink(join(homedir(), ".ssh"), join(base, "project", "keys"));
  });
  after(() => rm(base, { recursive: true, force: true }));

  const cases: readonly (readonly [path: string, modes: readonly EditMode[]])[] = [
    ["a.txt", ["accept_edits", "dont_ask"]],
    ["deep/er/a.txt", ["accept_edits", "dont_ask"]],
    ["../project/a.txt", ["accept_edits", "dont_ask"]],
    ["out/share/a.txt", ["dont_ask"]],
    ["out/../../usr/a.txt", ["accept_edits", "dont_ask"]],
    ["/usr/share/a.txt", ["dont_ask"]],
    [join(tmpdir(), "a.txt"), ["accept_edits", "dont_ask"]],
    [".env", []],
    [".env.production", []],
    ["sub/.ENV", []],
    ["id_rsa", []],
    ["id_ed25519", []],
    ["id_rsa.pub.txt", ["accept_edits", "dont_ask"]],
    [".git/hooks/x", []],
    ["plain/description", []],
    ["keys/config", []],
    [".ssh/config", []],
    [".github/workflows/a.yml", ["accept_edits", "dont_ask"]],
  ];
  for (const [path, modes] of cases)
    test(`of ${path} needs no question in ${modes.join(" and ") || "no mode"}`, async () => {
      const cwd = join(base, "project");
      const edits = [{ path: path.startsWith("/") ? path : `${cwd}/${path}`, before: null, after: "x" }];
      const free = [];
      for (const mode of ["default", "accept_edits", "dont_ask"] as const)
        if (await mayWriteUnasked(mode, edits, cwd)) free.push(mode);
      assert.deepEqual(free, modes);
    });

  test("of several files is asked about when one of them is", async () => {
    const cwd = join(base, "project");
    const edits = [`${cwd}/a.txt`, `${cwd}/.env`].map((path) => ({ path, before: null, after: "x" }));
    assert.equal(await mayWriteUnasked("dont_ask", edits, cwd), false);
  });
});
