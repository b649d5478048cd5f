// Repositories of strangers: an archive may hold a .git whose configuration names programs. Looking at it must run none of them.
// Each row also says with which plain git command its program does run, so that the row is an attack and not a wish.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { readWorkspace } from "../../src/prompt/coding.ts";
import { programRunner } from "../../src/prompt/ports.ts";
import { expandReferences } from "../../src/prompt/references/expand.ts";
import { withRepository } from "../../src/prompt/repository.ts";
import { localFiles } from "../../src/tools/files/access.ts";
import { runHermes } from "../support/run-hermes.ts";
import { oneOf, sampleOf } from "../support/sample.ts";
import { tempHome } from "../support/temp-home.ts";
import { tempTree } from "../support/temp-tree.ts";
import { tellWhenDone } from "../support/trust-figures.ts";

interface Row {
  readonly id: string;
  readonly why: string;
  readonly control: "status" | "diff" | "log" | null;
  readonly row: {
    readonly config: string;
    readonly files?: Readonly<Record<string, string>>;
    readonly scripts?: readonly string[];
    readonly layout?: "submodule" | "gitfile" | "bare below";
    readonly signed?: boolean;
    readonly missingObject?: boolean;
  };
}

const text = await readFile(new URL("../fixtures/trust/repository.jsonl", import.meta.url), "utf8");
const all: readonly Row[] = text
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
// Each row is a repository of its own; `npm run trust` tries all of them.
const rows = sampleOf(all, 3, "hostile repositories");

const run = promisify(execFile);
const env = {
  PATH: process.env.PATH ?? "",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  ...{ GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@x", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@x" },
};

const SIGNATURE = "-----BEGIN PGP SIGNATURE-----\n \n iQEzBAABCAAdFiEE\n -----END PGP SIGNATURE-----";

/** An unpacked archive with one changed file, and a program that leaves a mark when it runs. */
async function unpack(t: TestContext, { row }: Row) {
  const tree = await tempTree(t, { "w/a.txt": "one\n", "w/b.txt": "same\n" });
  const root = tree.at("w");
  const mark = tree.at("ran");
  const program = tree.at("program.sh");
  await writeFile(program, `#!/bin/sh\n: > ${mark}\n`);
  await chmod(program, 0o755);
  const git = (cwd: string, ...args: string[]) => run("git", args, { cwd, env, timeout: 20_000 });
  const put = async (base: string, name: string, content: string) => {
    const path = join(base, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content.replaceAll("$RUN", program).replaceAll("$TREE", root));
  };
  const commit = async (folder: string) => {
    await git(folder, "init", "-q", "-b", "main");
    await git(folder, "add", "-A");
    await git(folder, "commit", "-qm", "First");
  };
  const hostile = row.layout === "submodule" || row.layout === "bare below" ? join(root, "sub") : root;
  if (hostile !== root) await put(hostile, "a.txt", "inner\n");
  await commit(hostile);
  if (row.layout === "submodule") {
    await put(root, ".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n');
    await commit(root);
  }
  if (row.signed) {
    const files = (await git(root, "rev-parse", "HEAD^{tree}")).stdout.trim();
    const who = "a <a@x> 1700000000 +0000";
    const object = `tree ${files}\nauthor ${who}\ncommitter ${who}\ngpgsig ${SIGNATURE}\n\nSigned\n`;
    await writeFile(tree.at("commit"), object);
    const id = (await git(root, "hash-object", "-t", "commit", "-w", tree.at("commit"))).stdout.trim();
    await git(root, "update-ref", "refs/heads/main", id);
  }
  if (row.missingObject) {
    const blob = (await git(root, "rev-parse", "HEAD:a.txt")).stdout.trim();
    await rm(join(root, ".git", "objects", blob.slice(0, 2), blob.slice(2)), { force: true });
  }
  const gitDir = join(hostile, ".git");
  const config = await readFile(join(gitDir, "config"), "utf8");
  await put(gitDir, "config", `${config}${row.config}`);
  for (const [name, content] of Object.entries(row.files ?? {})) await put(hostile, name, content);
  for (const name of row.scripts ?? []) {
    await put(hostile, name, `#!/bin/sh\n: > ${mark}\n`);
    await chmod(join(hostile, name), 0o755);
  }
  // As long as before, so that git has to look inside.
  await writeFile(join(hostile, "a.txt"), hostile === root ? "two\n" : "other\n");
  // Not changed, and newer than the index says: a plain git status writes the index anew.
  await utimes(join(root, "b.txt"), 1, 1);
  if (row.layout === "gitfile") {
    await rename(gitDir, join(root, "data"));
    await writeFile(gitDir, "gitdir: data\n");
  }
  if (row.layout === "bare below") {
    await rename(gitDir, join(root, "bare"));
    await rm(hostile, { recursive: true });
    await rename(join(root, "bare"), hostile);
  }
  const ran = async () => (await stat(mark).catch(() => null)) !== null;
  return { root, hostile, git, ran, forget: () => rm(mark, { force: true }) };
}

const PLAIN = { status: ["status"], diff: ["diff"], log: ["log", "-p", "--show-signature"] } as const;

const held = tellWhenDone(
  { kind: "hostile repositories" },
  rows.map(({ id }) => id),
);

for (const row of rows) {
  test(`${row.id}: ${row.why} is not run by a look at the folder or a reference to it`, async (t) => {
    const { root, hostile, git, ran, forget } = await unpack(t, row);
    const runner = programRunner({ ...env, HOME: root });
    const index = await readFile(join(root, ".git", "index")).catch(() => null); // elsewhere in some layouts
    for (const folder of new Set([root, hostile])) {
      await readWorkspace({ root: folder, files: localFiles, run: runner, scan: () => [] });
      await expandReferences("@diff @staged @git:3", {
        cwd: folder,
        userHome: root,
        contextLength: 100_000,
        files: localFiles,
        run: runner,
        denyList: { isDenied: async () => false, isHidden: () => false },
      });
    }
    assert.equal(await ran(), false, "a program of the repository ran");
    assert.deepEqual(await readFile(join(root, ".git", "index")).catch(() => null), index, "its index was written");
    held(row.id);
    if (row.control === null) return;
    await forget();
    await git(root, ...PLAIN[row.control]).catch(() => null); // it may fail; what counts is whether the program ran
    assert.equal(await ran(), true, "the row is no attack: plain git does not run its program either");
  });
}

test("no further file that the settings name is read", async (t) => {
  const tree = await tempTree(t, { "w/a.txt": "one\n", elsewhere: '[branch "main"]\n\tremote = elsewhere\n' });
  const root = tree.at("w");
  await run("git", ["init", "-q", "-b", "main"], { cwd: root, env });
  await writeFile(join(root, ".git", "config"), "[core]\n\tbare = false\n[include]\n\tpath = ../../elsewhere\n");
  const runner = programRunner({ ...env, HOME: root });
  const asked = await withRepository(root, { run: runner, timeoutMs: 10_000 }, ({ git }) =>
    git("config", "--get", "branch.main.remote"),
  );
  assert.equal(asked?.stdout, "");
});

const started = all.filter(({ id }) => /00[1267]|015|019$/.test(id));
for (const row of oneOf(started, "repositories at a start")) {
  test(`${row.id}: ${row.why} is not run by a start of the program`, async (t) => {
    const { root, ran } = await unpack(t, row);
    await using home = await tempHome({ "config.yaml": "checkpoints:\n  enabled: true\n" });
    for (const args of [
      ["-z", "write x to b.txt"],
      ["prompt", "show"],
      ["-z", "look at @diff and @git:2"],
    ]) {
      const { stderr } = await runHermes(args, { home, cwd: root });
      assert.equal(await ran(), false, `${args.join(" ")}: ${stderr}`);
    }
  });
}
