// Servers that are reached over HTTP.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { smallServer } from "./support/mcp/http-server.ts";
import { hubRig, realServer } from "./support/mcp/hub-rig.ts";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** The reference server on a port of its own; resolves when it listens. */
async function startReference(kind: "streamableHttp" | "sse"): Promise<{ port: number; child: ChildProcess }> {
  const port = await freePort();
  const { command, args } = realServer("everything", kind);
  const child = spawn(command, args, { env: { ...process.env, PORT: String(port) }, stdio: "ignore" });
  for (let n = 0; n < 500; n++) {
    const there = await fetch(`http://127.0.0.1:${port}/nowhere`).then(
      () => true,
      () => false,
    );
    if (there) return { port, child };
    await sleep(20);
  }
  child.kill();
  throw new Error("the reference server did not start");
}

for (const kind of ["streamableHttp", "sse"] as const) {
  test(`the reference server answers over ${kind}`, async () => {
    const { port, child } = await startReference(kind);
    try {
      const address =
        kind === "sse"
          ? { url: `http://127.0.0.1:${port}/sse`, transport: "sse" }
          : { url: `http://127.0.0.1:${port}/mcp` };
      await using rig = await hubRig({ every: address });
      assert.equal(rig.server("every").status.state, "connected", rig.lines.join("\n"));
      assert.equal(await rig.call("every", "echo", { message: "hi" }), '{"result":"Echo: hi"}');
      const args = { duration: 0.1, steps: 1 };
      assert.match(await rig.call("every", "trigger-long-running-operation", args), /completed/);
    } finally {
      child.kill();
    }
  });
}

test("headers reach the server, and a forgotten session is renewed once without the model noticing", async () => {
  const server = await smallServer();
  {
    await using rig = await hubRig({
      small: { url: server.url, headers: { "X-Key": "mine", Authorization: "Bearer t" } },
    });
    assert.equal(await rig.call("small", "ping"), '{"result":"pong"}');
    assert.equal(server.seen.at(-1)?.["x-key"], "mine");
    server.sessions.clear();
    assert.equal(await rig.call("small", "ping"), '{"result":"pong"}');
    assert.deepEqual(server.calls, ["ping", "ping"]);
    // It forgets at once, again and again: one retry, then an error.
    server.intercept = (_request, response) => {
      queueMicrotask(() => server.sessions.clear());
      response.on("close", () => server.sessions.clear());
      return false;
    };
    assert.match(await rig.call("small", "ping"), /MCP server "small": /);
  }
  await server.close();
});

test("a redirect to another origin takes no credentials along, one within the origin keeps them", async () => {
  const target = await smallServer();
  const door = await smallServer();
  door.intercept = (_request, response) => {
    response.writeHead(307, { location: target.url }).end();
    return true;
  };
  {
    const headers = { Authorization: "Bearer secret-token", "X-Key": "mine" };
    await using rig = await hubRig({ far: { url: door.url, headers } });
    assert.equal(rig.server("far").status.state, "connected", rig.lines.join("\n"));
    assert.ok(door.seen.every((one) => one.authorization === "Bearer secret-token"));
    assert.ok(target.seen.every((one) => one.authorization === undefined && one["x-key"] === undefined));
  }
  target.seen.length = 0;
  target.intercept = (request, response) => {
    if (request.url !== "/old") return false;
    response.writeHead(308, { location: "/mcp" }).end();
    return true;
  };
  {
    await using rig = await hubRig({ near: { url: `${target.origin}/old`, headers: { "X-Key": "mine" } } });
    assert.equal(rig.server("near").status.state, "connected", rig.lines.join("\n"));
    assert.ok(target.seen.every((one) => one["x-key"] === "mine"));
  }
  await Promise.all([target.close(), door.close()]);
});

test("wrong credentials and nobody there are told apart, with what to do", async () => {
  const server = await smallServer();
  server.intercept = (_request, response) => {
    response.writeHead(401).end();
    return true;
  };
  const gone = await freePort();
  const clock = {
    now: () => Date.now(),
    random: () => 0,
    sleep: (_ms: number, signal?: AbortSignal) => sleep(1, undefined, signal ? { signal } : {}),
  };
  {
    await using rig = await hubRig(
      { closed: { url: server.url }, gone: { url: `http://127.0.0.1:${gone}/mcp?api_key=abc123` } },
      {
        clock: {
          ...clock,
          sleep: (ms, signal) =>
            ms > 100_000 ? sleep(1e6, undefined, signal ? { signal } : {}) : clock.sleep(ms, signal),
        },
      },
    );
    assert.match(
      rig.server("closed").status.reason ?? "",
      /refused the credentials \(401\).*mcp_servers\.closed\.headers.*hermes mcp login closed/,
    );
    assert.equal(rig.server("closed").status.state, "needs_reauth");
    assert.match(rig.server("gone").status.reason ?? "", /MCP server "gone": .*mcp_servers\.gone\.url/);
    assert.doesNotMatch(rig.lines.join("\n"), /abc123/);
    assert.match(await rig.call("gone", "ping"), /no tool/);
  }
  await server.close();
});
