import assert from "node:assert/strict";
import { test } from "node:test";
import { clearedText } from "../../safety/decision.ts";
import type { Environment } from "../../sandbox/environment.ts";
import { backendOf } from "./host.ts";

function place(kind: string, more: Partial<Environment>): Environment {
  return {
    ...{ kind, cwd: "/w", tempDir: "/tmp", home: "/root", isolated: true },
    execute: () => Promise.reject(new Error("nothing is run here")),
    spawn: () => Promise.reject(new Error("nothing is run here")),
    setCwd: () => undefined,
    cleanup: async () => undefined,
    ...more,
  };
}

test("this machine as it is needs no word", async () => {
  assert.equal(await backendOf(place("local", {})), undefined);
});

test("a confined shell says what it may write and whether it has a network", async () => {
  const confinement = {
    ...({ writable: "/p", network: "off" } as const),
    allowsWrite: () => false,
    holdsStill: () => false,
    changedOutside: async () => undefined,
  };
  const backend = await backendOf(place("bubblewrap", { confinement }));
  assert.deepEqual(backend, { type: "sandbox", writable: "/p", network: "off" });
});

test("another machine is asked what it is, once", async () => {
  let asked = 0;
  const files = {} as NonNullable<Environment["files"]>; // only its presence counts here
  const environment = place("docker", {
    files,
    async execute(command) {
      asked++;
      assert.match(clearedText(command), /uname -s/);
      const output = "os=Linux\nkernel=6.1\nhome=/root\ncwd=/w\nuser=root\n";
      return {
        output,
        omittedChars: 0,
        headChars: output.length,
        exitCode: 0,
        timedOut: false,
        interrupted: false,
        cwd: "/w",
      };
    },
  });
  const facts = { os: "Linux", kernel: "6.1", home: "/root", cwd: "/w", user: "root" };
  assert.deepEqual(await backendOf(environment), { type: "remote", name: "docker", facts });
  await backendOf(environment);
  assert.equal(asked, 1);
});
