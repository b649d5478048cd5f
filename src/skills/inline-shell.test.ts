import assert from "node:assert/strict";
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openRequest } from "../../test/support/open-request.ts";
import { tempHome } from "../../test/support/temp-home.ts";
import { openAgent } from "../agent/open.ts";
import { openHome } from "../home/open.ts";
import type { Environment } from "../sandbox/environment.ts";
import { openLocalEnvironment } from "../sandbox/local.ts";
import { inlineShell } from "./inline-shell.ts";

async function world(files: Readonly<Record<string, string>> = {}) {
  const temp = await tempHome(files);
  const env = { HERMES_HOME: temp.dir, HOME: temp.osHome, PATH: process.env.PATH ?? "" };
  const home = await openHome({ argv: [], env, osHome: temp.osHome, cwd: temp.project });
  const environment = openLocalEnvironment({
    environment: home.environment(),
    cwd: temp.project,
    sessionId: () => "s",
  });
  return { temp, home, environment: await environment };
}

/** This machine under another name: a place of its own, as far as anybody can tell. */
function elsewhere(environment: Environment, given: Partial<Environment> = {}): Environment {
  return new Proxy(environment, {
    get(target, key) {
      if (key === "kind") return "elsewhere";
      if (Object.hasOwn(given, key)) return given[key as keyof Environment];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("commands of a skill run where the conversation's commands run", async () => {
  const { temp, home, environment } = await world();
  let ran = 0;
  const context = elsewhere(environment, {
    execute: (command, options) => {
      ran++;
      return environment.execute(command, options);
    },
  });
  const run = inlineShell(home, context);
  const options = { cwd: temp.project, timeoutMs: 20_000 };
  const here = await run("pwd", options);
  assert.equal(here.type === "done" && here.stdout.trim(), await realpath(temp.project));
  assert.equal(ran, 1);
  assert.deepEqual(await run("exit 3", options), { type: "failed", reason: "the command ended with code 3" });
  assert.deepEqual(await run("sleep 30", { ...options, timeoutMs: 200 }), { type: "timeout" });
  const before = ran;
  const refused = await run("bash --norc -c 'echo ran'", options);
  assert.match(refused.type === "failed" ? refused.reason : "", /^not run: /);
  assert.equal(ran, before, "what somebody would be asked about does not reach the place");
  await environment.cleanup();
});

test("a skill's folder is looked for inside: under its own path, then as a copy in the home there", async () => {
  const { temp, home, environment } = await world({ "skills/a/SKILL.md": "A" });
  const there = join(temp.osHome, "there");
  await mkdir(join(there, ".hermes/skills/a"), { recursive: true });
  const asked: string[] = [];
  const files = {
    async facts(path: string) {
      asked.push(path);
      return path.startsWith(there) ? { type: "directory", size: 0, mtimeMs: 0, version: "1" } : null;
    },
  } as unknown as NonNullable<Environment["files"]>; // only this is asked for
  const run = inlineShell(home, elsewhere(environment, { files, home: there }));
  const found = await run("pwd", { cwd: join(temp.dir, "skills/a"), timeoutMs: 20_000 });
  assert.equal(found.type === "done" && found.stdout.trim(), await realpath(join(there, ".hermes/skills/a")));
  assert.deepEqual(asked, [join(temp.dir, "skills/a"), join(there, ".hermes/skills/a")]);
  assert.deepEqual(await run("pwd", { cwd: "/not/in/the/home", timeoutMs: 20_000 }), {
    type: "failed",
    reason: "not run: the skill's folder cannot be seen from inside (elsewhere)",
  });
  await environment.cleanup();
});

test("commands of a preloaded skill run when the user switched that on", async () => {
  const { temp, environment } = await world({
    "config.yaml": "skills:\n  inline_shell: true\n",
    ".no-bundled-skills": "",
    "skills/a/SKILL.md": "---\nname: a\ndescription: A\n---\nToday: !`echo it-$((1 + 1))`\n",
  });
  await environment.cleanup();
  const { store, request } = await openRequest(temp);
  const open = await openAgent({ ...request, skills: ["a"] });
  await open.agent.chat("hello");
  const [first] = await store.load(open.agent.sessionId);
  assert.match(JSON.stringify(first), /Today: it-2/);
  await open.close("cli_close");
  await store.close();
});
