// Own attacks on the command policy, everyday lines that must stay free, and places that nobody writes to unasked. All rows are data:
// they are read by the classifier and the file guard, and reach no shell.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { createFileGuard } from "../../src/safety/file-guard.ts";
import { classifyCommand } from "../../src/safety/verdict.ts";
import { tellFigure } from "../support/trust-figures.ts";

interface Row<T> {
  readonly id: string;
  readonly row: T;
  readonly expect: string;
  readonly why: string;
}

const fixtures = join(import.meta.dirname, "..", "fixtures");
const read = <T>(name: string): readonly T[] =>
  readFileSync(join(fixtures, name), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line): T => JSON.parse(line));

const options = { home: "/home/me/.hermes", osHome: "/home/me", sudoPasswordSet: false, denyGlobs: [] };
const verdictOn = (command: string) => classifyCommand(command, options);

test("of our own attacks on the policy at least nine in ten are asked about or blocked", (t) => {
  const rows = read<Row<string>>("trust/policy.jsonl");
  const fallen = rows.filter(({ row }) => verdictOn(row).verdict === "allow");
  t.diagnostic(`${rows.length - fallen.length} of ${rows.length} asked about or blocked`);
  for (const { id, row } of fallen) t.diagnostic(`fell: ${id} ${row}`);
  const isTwoStep = ({ why }: Row<string>) => why.includes("two steps");
  const tell = (kind: string, is: (row: Row<string>) => boolean) =>
    tellFigure({
      ...{ kind, sandbox: "without", rows: rows.filter(is).length },
      fallen: fallen.filter(is).map(({ id }) => id),
    });
  tell("policy", (row) => !isTwoStep(row));
  tell("two steps: kept functions and variables", isTwoStep);
  assert.ok(rows.length >= 250);
  assert.ok(fallen.length <= rows.length / 10, fallen.map(({ id }) => id).join(" "));
});

test("of everyday developer lines at most one in a hundred is asked about", (t) => {
  const own = read<Row<string>>("trust/benign.jsonl");
  const known = ["everyday.jsonl", "everyday-developer.jsonl"]
    .flatMap((name) => read<{ readonly command: string; readonly verdict: string }>(`commands/${name}`))
    .filter(({ verdict }) => verdict === "allow")
    .map(({ command }, index) => ({ id: `everyday-${index + 1}`, row: command }));
  const rows = [...own, ...known];
  const fallen = rows.filter(({ row }) => verdictOn(row).verdict !== "allow");
  t.diagnostic(`${fallen.length} of ${rows.length} asked about`);
  for (const { id, row } of fallen) t.diagnostic(`asked: ${id} ${row}`);
  tellFigure({ kind: "benign developer lines", rows: rows.length, fallen: fallen.map(({ id }) => id) });
  assert.ok(rows.length >= 600);
  assert.ok(fallen.length <= rows.length / 100, fallen.map(({ id }) => id).join(" "));
});

test("what runs at a later start, Hermes' own files and keys are written by no file tool and no shell unasked", async (t) => {
  const home = await realpath(await mkdtemp(join(tmpdir(), "hermes-places-")));
  t.after(() => rm(home, { recursive: true, force: true }));
  await mkdir(join(home, "project"));
  const hermes = join(home, ".hermes");
  const guard = await createFileGuard({ userHome: home, profileHome: hermes, rootHome: hermes });
  const starts = { "~": home, HERMES: hermes, PROJECT: join(home, "project"), "": "" };
  const pathOf = (written: string) => {
    const slash = written.indexOf("/");
    return starts[written.slice(0, slash) as keyof typeof starts] + written.slice(slash);
  };
  const rows = read<Row<{ readonly file?: string; readonly shell?: string }>>("trust/places.jsonl");
  const got = await Promise.all(
    rows.map(async ({ row }) =>
      row.file === undefined ? verdictOn(row.shell ?? "").verdict : (await guard.canWrite(pathOf(row.file))).type,
    ),
  );
  const fallen = rows.filter(({ expect }, index) => got[index] !== expect);
  t.diagnostic(`${rows.length - fallen.length} of ${rows.length} places held`);
  tellFigure({ kind: "places", sandbox: "without", rows: rows.length, fallen: fallen.map(({ id }) => id) });
  assert.ok(rows.length >= 60);
  assert.deepEqual(
    fallen.map(({ id, row }) => `${id} ${JSON.stringify(row)}`),
    [],
  );
});

test("of the ways out of the sandbox the policy alone asks about some; the rest is what the sandbox is for", (t) => {
  const rows = read<Row<{ readonly run: string }>>("trust/sandbox.jsonl");
  const fill = (run: string) =>
    run
      .replaceAll("@OUT@", "/home")
      .replaceAll("@HOME@", "/home/me")
      .replace(/@(?:PORT|PID)@/g, "4000")
      .replaceAll("@ABSTRACT@", "name");
  const fallen = rows.filter(({ row }) => verdictOn(fill(row.run)).verdict === "allow").map(({ id }) => id);
  tellFigure({ kind: "sandbox escapes", sandbox: "without", rows: rows.length, fallen });
  t.diagnostic(`${rows.length - fallen.length} of ${rows.length} asked about or blocked without a sandbox`);
  assert.ok(fallen.length < rows.length / 2);
});

test("a write that the file guard asks about is asked about by the command policy too", async (t) => {
  const home = await realpath(await mkdtemp(join(tmpdir(), "hermes-places-")));
  t.after(() => rm(home, { recursive: true, force: true }));
  const hermes = join(home, ".hermes");
  const guard = await createFileGuard({ userHome: home, profileHome: hermes, rootHome: hermes });
  for (const path of [
    ".vimrc",
    ".config/systemd/user/a.service",
    "project/.git/hooks/it's",
    ".hermes/SOUL.md",
    "x/.envrc",
  ]) {
    const verdict = await guard.canWrite(join(home, path));
    assert.equal(verdict.type, "ask", path);
    const command = verdict.type === "ask" ? verdict.command : "";
    assert.equal(classifyCommand(command, { ...options, home: hermes, osHome: home }).verdict, "ask", command);
  }
});
