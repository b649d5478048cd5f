import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Channel } from "./backend.ts";
import { ScriptRunner } from "./scripts.ts";

const { PATH = "" } = process.env;
const { signal } = new AbortController();

/** A channel to a shell on this machine, and how often one was started. */
function counted(): Channel & { started: number } {
  const channel = {
    started: 0,
    async launch(script: string, { shell }: { readonly shell: string }) {
      channel.started++;
      return { program: shell, args: ["-c", script], env: { PATH } };
    },
    recover: () => Promise.reject(new Error("no way there")),
  };
  return channel;
}

test("scripts one after the other share a shell, and none leaves anything to the next", async (t) => {
  const channel = counted();
  const scripts = new ScriptRunner(channel, { persistent: true });
  t.after(() => scripts.close());
  const first = await scripts.run("A=1; cd /; umask 0; exec 2>/dev/null; printf 'no newline'; exit 3");
  assert.deepEqual([first.code, String(first.output), first.errors], [3, "no newline", ""]);
  const second = await scripts.run('printf "%s\\n\\n" "[$A]"; echo bad >&2; false');
  assert.deepEqual([second.code, String(second.output), second.errors], [1, "[]\n\n", "bad\n"]);
  const script = "printf 'a\\000\\377b'; echo \"it's\" `echo x` $(echo y) # not a comment's end\ntrue\n";
  assert.equal((await scripts.run(script)).output.toString("latin1"), "a\0\xffbit's x y\n");
  assert.deepEqual((await scripts.run("cat; exit 0")).output, Buffer.alloc(0), "there is no input");
  const large = await scripts.run("head -c 3000000 /dev/zero");
  assert.deepEqual([large.output.length, large.code], [3_000_000, 0]);
  assert.equal(channel.started, 1);
});

test("greetings of login files are no output, and a mark may come in pieces", async (t) => {
  const channel = counted();
  const { launch } = channel;
  channel.launch = async (script, options) => {
    const started = await launch(script, options);
    // Byte by byte, as a slow line would have it.
    const slow = `(echo welcome; sh -c '${script}') | while IFS= read -r l; do printf %s "$l"; sleep 0.02; printf '\\n'; done`;
    return { ...started, args: ["-c", slow] };
  };
  const scripts = new ScriptRunner(channel, { persistent: true });
  t.after(() => scripts.close());
  for (const word of ["one", "two"]) assert.equal(String((await scripts.run(`echo ${word}`)).output), `${word}\n`);
  assert.equal(channel.started, 1);
});

test("a script whose output is read after its end has begun all the same", async () => {
  const channel = counted();
  const { launch } = channel;
  channel.launch = async (script, options) => ({
    ...(await launch(script, options)),
    args: ["-c", `exec 2>/dev/null; (sleep 0.5; ${script}) & exit 0`],
  });
  const scripts = new ScriptRunner(channel);
  assert.equal(String((await scripts.run("echo late")).output), "late\n");
  const failed = () => new Error("it did not fail");
  for await (const chunk of scripts.stream("echo later", { failed })) assert.equal(String(chunk), "later\n");
  assert.equal(channel.started, 2);
});

test("what has input, and what comes while the shell is busy, gets a shell of its own", async (t) => {
  const channel = counted();
  const scripts = new ScriptRunner(channel, { persistent: true });
  t.after(() => scripts.close());
  assert.equal(String((await scripts.run("cat", { stdin: "given" })).output), "given");
  const both = await Promise.all([scripts.run("echo one"), scripts.run("echo two")]);
  assert.deepEqual(both.map(({ output }) => String(output)).sort(), ["one\n", "two\n"]);
  assert.equal(channel.started, 3);
});

test("a shell that goes away is replaced; a script it took along is not run twice", async (t) => {
  const channel = counted();
  const scripts = new ScriptRunner(channel, { persistent: true });
  t.after(() => scripts.close());
  const broken = await scripts.run("echo begun; kill -9 $$");
  assert.deepEqual([broken.code, String(broken.output)], [255, "begun\n"]);
  assert.equal(String((await scripts.run("echo again")).output), "again\n");
  assert.equal(channel.started, 2);
});

test("an abort ends a script at once, and the next one works", async (t) => {
  const scripts = new ScriptRunner(counted(), { persistent: true });
  t.after(() => scripts.close());
  const abort = new AbortController();
  const waiting = scripts.run("sleep 30", { signal: abort.signal });
  setTimeout(() => abort.abort(), 100);
  await assert.rejects(waiting, { name: "AbortError" });
  await assert.rejects(scripts.run("echo never", { signal: abort.signal }), { name: "AbortError" });
  assert.equal(String((await scripts.run("echo next", { signal })).output), "next\n");
});

test("where no shell can be had, the channel says why", async () => {
  const nowhere: Channel = { ...counted(), launch: async () => ({ program: "/nowhere/sh", args: [], env: {} }) };
  await assert.rejects(new ScriptRunner(nowhere, { persistent: true }).run("echo x"), /no way there/);
});

test("a shell that waits does not keep the program from ending", () => {
  const module = fileURLToPath(new URL("scripts.ts", import.meta.url));
  const code = `import { ScriptRunner } from ${JSON.stringify(module)};
const launch = async (script, { shell }) => ({ program: shell, args: ["-c", script], env: process.env });
const { output } = await new ScriptRunner({ launch }, { persistent: true }).run("echo hi");
process.stdout.write(output);`;
  const ran = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8", timeout: 20_000 });
  assert.deepEqual([ran.stdout, ran.status, ran.signal], ["hi\n", 0, null], ran.stderr);
});
