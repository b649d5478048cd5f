import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { serverFetch } from "./http-fetch.ts";

const owner = { server: "far", cwd: "/", osHome: "/" };
const placeOf = (url: string) => ({
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
  const fetchFn = await serverFetch(placeOf(home), owner);
  await assert.rejects(fetchFn(home), /metadata service/);
  await assert.rejects(fetchFn("http://[::ffff:169.254.169.254]/"), /metadata service/);
});

test("a server on the internet names no address of the local network", async () => {
  // Refused before anything is sent: the addresses are written out, so no name is looked up.
  const fetchFn = await serverFetch(placeOf("https://93.184.215.14/mcp"), owner);
  await assert.rejects(fetchFn("http://127.0.0.1:1/token"), /local network/);
  await assert.rejects(fetchFn("http://[::1]:1/token"), /local network/);
});
