import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { malwareNotices, packageOf } from "./launch-check.ts";

const npm = (name: string, version: string | null = null) => ({ name, ecosystem: "npm", version });
const pypi = (name: string, version: string | null = null) => ({ name, ecosystem: "PyPI", version });

const cases: readonly [command: string, args: readonly string[], found: object | null][] = [
  ["npx", ["-y", "@scope/server", "/tmp"], npm("@scope/server")],
  ["/usr/bin/npx", ["server@1.2.3"], npm("server", "1.2.3")],
  ["npx.cmd", ["@scope/server@latest"], npm("@scope/server")],
  ["npx", ["--package", "real", "-c", "run"], npm("real")],
  ["npx", ["--package=real@2", "bin"], npm("real", "2")],
  ["npx", ["-p", "real", "bin"], npm("real")],
  ["npx", ["--registry", "https://r.example", "server"], npm("server")],
  ["uvx", ["mcp-server[extra]==1.0"], pypi("mcp-server", "1.0")],
  ["uvx", ["--from", "package", "tool"], pypi("package")],
  ["uvx", ["-p", "3.12", "tool==2"], pypi("tool", "2")],
  ["pipx", ["run", "black"], pypi("black")],
  ["node", ["server.js"], null],
  ["npx", ["-y"], null],
];

for (const [command, args, found] of cases) {
  test(`${command} ${args.join(" ")} fetches ${found ? JSON.stringify(found) : "nothing"}`, () =>
    assert.deepEqual(packageOf(command, args), found));
}

test("only malware notices count, and nobody to ask means none", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    request.setEncoding("utf8").on("data", (text: string) => void asked.push(text));
    request.on("end", () => response.end(JSON.stringify({ vulns: [{ id: "GHSA-1" }, { id: "MAL-2026-1" }] })));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const found = { name: "evil", ecosystem: "npm", version: "1.0.0" } as const;
  const signal = new AbortController().signal;
  assert.deepEqual(await malwareNotices(found, { fetch, signal, url }), ["MAL-2026-1"]);
  assert.deepEqual(JSON.parse(asked.join("")), { package: { name: "evil", ecosystem: "npm" }, version: "1.0.0" });
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  assert.deepEqual(await malwareNotices(found, { fetch, signal, url }), ["MAL-2026-1"], "an answer is kept");
  assert.deepEqual(await malwareNotices({ ...found, name: "other" }, { fetch, signal, url }), []);
});
