import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { HookedCall } from "../tools/toolset/context.ts";
import { isUntrusted, TextOrigins } from "./foreign-text.ts";

const ORIGINS: Readonly<Record<string, "web" | "mcp" | "local">> = { mcp_files_read: "mcp", news: "web" };

function origins(trusted: readonly string[] = ["/project"]) {
  const made = new TextOrigins({
    tools: {
      textOrigin: (name) => ORIGINS[name],
      serverOf: (name) => (name === "mcp_files_read" ? "files" : null),
    },
    environment: { home: "/home/me", tempDir: "/tmp/h" },
    store: null,
    isTrusted: (path) => trusted.some((folder) => path === folder || path.startsWith(`${folder}/`)),
  });
  let calls = 0;
  return async (
    name: string,
    args: HookedCall["args"],
    { text = '{"output":"x"}', cwd = "/project", failed = false, id = `c${++calls}` } = {},
  ) => (await made.outside({ call: { id, name, args }, text, cwd, failed }))?.from ?? null;
}

const CASES: readonly (readonly [
  name: string,
  args: HookedCall["args"],
  from: string | null,
  facts?: { readonly text?: string; readonly cwd?: string; readonly failed?: boolean },
])[] = [
  ["web_extract", { urls: ["https://a.example/x", "https://b.example"] }, "web_extract a.example b.example"],
  ["web_search", { query: "q" }, "web_search"],
  ["browser_navigate", { url: "https://a.example/" }, "browser a.example"],
  ["browser_snapshot", {}, "browser"],
  ["vision_analyze", { image_url: "https://a.example/p.png" }, "vision_analyze a.example"],
  ["mcp_files_read", {}, "MCP server files"],
  ["news", {}, "news"],
  ["read_file", { path: "README.md" }, null],
  ["read_file", { path: "/home/me/Downloads/x/README.md" }, "file ~/Downloads/x/README.md"],
  ["read_file", { path: "~/Downloads/x.md" }, "file ~/Downloads/x.md"],
  ["read_file", { path: "../other/x.md" }, "file /other/x.md"],
  ["read_file", { path: "/elsewhere/x" }, null, { failed: true }],
  ["search_files", { pattern: "x" }, null],
  ["search_files", { pattern: "x", path: "/elsewhere" }, "files in /elsewhere"],
  ["terminal", { command: "cat README.md" }, null],
  ["terminal", { command: "cat README.md" }, "a command that reads in /elsewhere", { cwd: "/elsewhere" }],
  ["terminal", { command: "cat README.md", workdir: "/elsewhere" }, "a command that reads in /elsewhere"],
  ["terminal", { command: "cat ~/Downloads/x/README.md" }, "a command that reads in ~/Downloads/x/README.md"],
  ["terminal", { command: "cd ~/Downloads/x && cat README.md" }, "a command that reads in ~/Downloads/x"],
  ["terminal", { command: "cp /elsewhere/a . && echo done" }, null],
  ["terminal", { command: "echo hi" }, null, { cwd: "/elsewhere" }],
  ["terminal", { command: "make" }, null, { cwd: "/elsewhere", text: '{"output":"","exit_code":0}' }],
  ["terminal", { command: "curl https://a.example" }, "curl a.example"],
  ["terminal", { command: "curl https://a.example" }, null, { text: '{"output":"","exit_code":-1,"error":"no"}' }],
  ["execute_code", { code: "print(1)" }, null],
  ["execute_code", { code: "print(1)" }, "a script that reads in /elsewhere", { cwd: "/elsewhere" }],
  ["execute_code", { code: "print(open('/elsewhere/x').read())" }, "a script that reads in /elsewhere/x"],
  ["execute_code", { code: "print(open('/project/x').read(), 'a/b')" }, null],
  ["execute_code", { code: "import requests" }, "a script that uses the network"],
  ["todo", {}, null, { cwd: "/elsewhere" }],
  ["memory", {}, null, { cwd: "/elsewhere" }],
];

for (const [name, args, from, facts] of CASES) {
  test(`${name} ${JSON.stringify(args)} ${JSON.stringify(facts ?? {})} is from ${from ?? "us"}`, async () => {
    assert.equal(await origins()(name, args, facts), from);
  });
}

test("what the conversation wrote itself is its own, also where nothing is trusted", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-origin-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "mine.md"), "x");
  await mkdir(join(folder, "d"));
  await symlink(join(folder, "mine.md"), join(folder, "d", "link.md"));
  const from = origins();
  assert.match((await from("read_file", { path: join(folder, "mine.md") })) ?? "", /^file /);
  await from("write_file", { path: join(folder, "mine.md"), content: "x" });
  assert.equal(await from("read_file", { path: join(folder, "d", "link.md") }), null);
});

test("what a command of ours printed into a file is ours, what it fetched is not", async () => {
  const from = origins();
  await from("terminal", { command: "npm test > /nowhere/own.log" });
  await from("terminal", { command: "curl https://a.example > /nowhere/page" });
  assert.equal(await from("terminal", { command: "tail /nowhere/own.log" }), null);
  assert.equal(await from("read_file", { path: "/nowhere/own.log" }), null);
  assert.equal(await from("read_file", { path: "/nowhere/page" }), "file /nowhere/page");
});

test("a background process keeps the origin of its command, and a long result that of its call", async () => {
  const from = origins();
  await from("terminal", { command: "curl https://a.example", background: true }, { text: '{"session_id":"p1"}' });
  await from("terminal", { command: "npm run dev", background: true }, { text: '{"session_id":"p2"}' });
  assert.equal(await from("process", { action: "log", session_id: "p1" }), "curl a.example");
  assert.equal(await from("process", { action: "log", session_id: "p2" }), null);
  await from("web_extract", { urls: ["https://a.example"] }, { id: "page" });
  await from("terminal", { command: "npm test" }, { id: "own" });
  assert.equal(await from("read_file", { path: "/tmp/h/hermes-results/s/page.txt" }), "web_extract a.example");
  assert.equal(await from("read_file", { path: "/tmp/h/hermes-results/s/own.txt" }), null);
  assert.equal(
    await from("read_file", { path: "/tmp/h/hermes-results/s/x.txt" }),
    "file /tmp/h/hermes-results/s/x.txt",
  );
});

for (const name of ["web_extract", "web_search", "vision_analyze", "browser_snapshot", "mcp_github_issue"]) {
  test(`${name} is from outside whatever it was asked for`, () => assert.ok(isUntrusted(name)));
}
