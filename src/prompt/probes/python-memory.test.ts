import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../kit/clock.ts";
import { localFiles } from "../../tools/files/access.ts";
import type { RunProgram } from "../ports.ts";
import { rememberedPythonProbe } from "./python.ts";

function machine(python: { id: string; exitCode?: number }) {
  let runs = 0;
  let kept: string | null = null;
  const files = {
    ...localFiles,
    facts: async (path: string) =>
      path === "/bin/python3" ? ({ type: "file", size: 1, mtimeMs: 0, version: python.id } as const) : null,
  };
  const run: RunProgram = async () => {
    runs++;
    return { exitCode: python.exitCode ?? 0, stdout: "3.11.7\n0\n0\n", stderr: "", timedOut: false };
  };
  const probe = () =>
    rememberedPythonProbe(
      { run, files, clock: systemClock, path: "/bin", delimiter: ":", safeDirectory: "/" },
      {
        read: async () => kept ?? Promise.reject(new Error("nothing yet")),
        write: async (text) => {
          kept = text;
        },
      },
    );
  return { probe, runs: () => runs };
}

test("the same programs are not asked twice, changed ones are", async () => {
  const python = { id: "1:1" };
  const { probe, runs } = machine(python);
  const first = await probe().line();
  const asked = runs();
  assert.ok(asked > 0);
  assert.equal(await probe().line(), first);
  assert.equal(runs(), asked);
  python.id = "1:2";
  await probe().line();
  assert.ok(runs() > asked);
});

test("what was broken is asked again", async () => {
  const python: { id: string; exitCode?: number } = { id: "1:1", exitCode: 1 };
  const { probe } = machine(python);
  assert.match((await probe().line()) ?? "", /python3=broken \(exit code 1\)/);
  python.exitCode = 0;
  assert.match((await probe().line()) ?? "", /python3=3\.11\.7/);
});
