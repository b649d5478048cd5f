import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { serverFetch } from "./http-fetch.ts";

const owner = { server: "far", cwd: "/", osHome: "/" };
const endpointOf = (url: string) => ({
  type: "http" as const,
  url: new URL(url),
  headers: {},
  verify: true,
  clientCert: null,
  clientKey: null,
  oauth: null,
});

test("no server sends its client to a metadata service, neither by redirect nor by naming it", async (t) => {
  const server = createServer((_request, response) =>
    response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data/" }).end(),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // it listens on a port
  const home = `http://127.0.0.1:${port}/mcp`;
  const fetchFn = await serverFetch(endpointOf(home), owner);
  await assert.rejects(fetchFn(home), /metadata service/);
  await assert.rejects(fetchFn("http://[::ffff:169.254.169.254]/"), /metadata service/);
});

test("a server on the internet names no address of the local network", async () => {
  // Refused before anything is sent: the addresses are written out, so no name is looked up.
  const fetchFn = await serverFetch(endpointOf("https://93.184.215.14/mcp"), owner);
  await assert.rejects(fetchFn("http://127.0.0.1:1/token"), /local network/);
  await assert.rejects(fetchFn("http://[::1]:1/token"), /local network/);
});

test("a server that nobody runs is a TypeError, which the SDK understands, and says what is wrong", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  await new Promise((resolve) => server.close(resolve));
  const url = `http://127.0.0.1:${port}/mcp`;
  const fetch = await serverFetch(endpointOf(url), owner);
  await assert.rejects(fetch(url), {
    name: "TypeError",
    message: `127.0.0.1:${port} refused the connection (ECONNREFUSED)`,
  });
});

test("an answer that was compressed unasked is read all the same, and an aborted request ends with the signal's reason", async (t) => {
  const server = createServer((request, response) => {
    if (request.url === "/slow") return;
    response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("hello"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const fetch = await serverFetch(endpointOf(url), owner);
  assert.equal(await (await fetch(url)).text(), "hello");
  const stop = new AbortController();
  const waiting = fetch(`${url}/slow`, { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});
