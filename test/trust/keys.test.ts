// Where the user's keys go: to no child of ours that was not meant to have them.
import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { AgentEvent } from "../../src/agent/events.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { talk } from "../support/talk.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";

const CONFIG = `providers:
  lab: { api: "http://127.0.0.1:1/v1", key_env: LAB_ACCESS }
terminal:
  env_passthrough: [T_LISTED, OPENAI_API_KEY]
hooks_auto_accept: true
hooks:
  pre_tool_call:
    - command: ~/hook.sh
`;
const ENV_FILE =
  "T_DB_WORD=one\nLAB_ACCESS=two\nT_LISTED=three\nOPENAI_API_KEY=four\n_HERMES_FORCE_T_FORCED=five\nT_SHELL=six\n";
const NAMES = /^(?:T_\w+|LAB_ACCESS|OPENAI_API_KEY|_HERMES_FORCE\w*)=.*$/gm;
/** What the shell had, what is listed and what is forced; a name on the blocklist stays out even when it is listed. */
const SEEN = ["T_FORCED=five", "T_LISTED=three", "T_SHELL=of the shell"];

const seenIn = (text: string) => (text.match(NAMES) ?? []).sort();

test("what .env holds or a key_env names reaches no command, script or hook, unless it is listed or forced", async (t) => {
  const { server, say, osHome } = await talk(t, {
    config: CONFIG,
    home: { ".env": ENV_FILE },
    env: { T_SHELL: "of the shell", LAB_ACCESS: "also of the shell" },
  });
  const seenByHook = join(osHome, "seen");
  await writeFile(join(osHome, "hook.sh"), `#!/bin/sh\nenv > ${seenByHook}\n`);
  await chmod(join(osHome, "hook.sh"), 0o700);
  const script = "import os\nprint('\\n'.join(f'{k}={v}' for k, v in os.environ.items()))";
  server.script(
    { toolCalls: [{ name: "terminal", arguments: { command: "env" } }] },
    { toolCalls: [{ name: "execute_code", arguments: { code: script } }] },
    { text: "done" },
  );
  const results = (await say("go")).flatMap((event: AgentEvent) =>
    event.type === "tool_end" ? [String(JSON.parse(event.result).output)] : [],
  );
  assert.equal(results.length, 2);
  assert.deepEqual(seenIn(results[0] ?? ""), SEEN);
  assert.match(results[1] ?? "", /^PATH=/m);
  assert.deepEqual(seenIn(results[1] ?? ""), []);
  assert.deepEqual(seenIn(await readFile(seenByHook, "utf8")), SEEN);
});

test("a file that holds credentials is read masked, and a test value in source code is read as it is", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  await using home = await tempHome({ "config.yaml": modelConfig(server) });
  const files = {
    credentials: "[default]\naws_secret_access_key = plainword\n",
    ".netrc": "machine a.b\nlogin me\npassword swordfish\n",
    kubeconfig:
      "users:\n- name: dev\n  user:\n    token: Zq83hfLw0x\n    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk\n",
    "login.test.ts": 'const login = { password: "hunter2" };\n',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(home.project, name), text);
  const calls = Object.keys(files).map((path) => ({ name: "read_file", arguments: { path } }));
  server.script({ toolCalls: calls }, { text: "done" });
  const { code, stderr } = await runHermes(["-z", "read them"], { home });
  assert.equal(code, 0, stderr);
  const sent = JSON.stringify(server.requests[1]?.body);
  for (const secret of ["plainword", "swordfish", "Zq83hfLw0x", "LS0tLS1"]) assert.ok(!sent.includes(secret), secret);
  assert.match(sent, /aws_secret_access_key = «redacted»/);
  assert.match(sent, /machine a\.b/);
  assert.match(sent, /hunter2/);
});
