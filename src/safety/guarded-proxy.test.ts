import assert from "node:assert/strict";
import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { after, before, beforeEach, test } from "node:test";
import { type AddressCheck, startGuardedProxy } from "./guarded-proxy.ts";
import type { ProxySettings } from "./url-fetch.ts";

/** Knows `open.test` (at the site's address), `far.test` (a name that only the network's proxy knows), and nothing else. */
const check: AddressCheck = async (url) => {
  const { hostname } = new URL(url);
  if (hostname === "open.test") return { allowed: true, addresses: ["127.0.0.1"], isPrivate: true };
  if (hostname === "far.test") return { allowed: true, addresses: [], isPrivate: false };
  return { allowed: false, reason: "closed here" };
};
const seen: string[] = [];
const site = createServer((asked, response) =>
  response.end(`site got ${asked.method} ${asked.url}${asked.headers["proxy-authorization"] ?? ""}`),
);
/** Sends everything to the site, whatever it was asked for. */
const network = createServer((asked, response) => {
  seen.push(`${asked.method} ${asked.url} ${asked.headers["proxy-authorization"] ?? "-"}`);
  response.end(`network got ${asked.url}`);
});
network.on("connect", (asked, socket: Duplex) => {
  seen.push(`CONNECT ${asked.url} ${asked.headers["proxy-authorization"] ?? "-"}`);
  if (String(asked.url).startsWith("far.test:444")) return socket.end("HTTP/1.1 407 Who are you\r\n\r\n");
  const out = connect(portOf(site), "127.0.0.1", () => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    socket.pipe(out).pipe(socket);
  });
  out.on("error", () => socket.destroy());
  socket.on("error", () => out.destroy());
});
const portOf = (server: Server) => (server.address() as AddressInfo).port; // they listen on ports
const listen = (server: Server) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
before(() => Promise.all([listen(site), listen(network)]));
beforeEach(() => void seen.splice(0));
after(() => {
  for (const server of [site, network]) {
    server.closeAllConnections();
    server.close();
  }
});

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function through(settings: ProxySettings | undefined, work: (proxy: URL) => Promise<Answer>) {
  const refused: string[] = [];
  const guard = await startGuardedProxy({ check, onRefused: ({ host }) => refused.push(host), network: settings });
  try {
    return { ...(await work(new URL(guard.url))), refused };
  } finally {
    await guard.close();
  }
}

const read = async (stream: NodeJS.ReadableStream) => {
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text;
};

const get = (url: string) => (proxy: URL) =>
  new Promise<Answer>((resolve, reject) => {
    const headers = { host: new URL(url).host, "proxy-authorization": "Basic b3VyczpvdXJz" };
    request({ host: proxy.hostname, port: proxy.port, path: url, headers }, async (answer) =>
      resolve({ status: answer.statusCode ?? 0, text: await read(answer) }),
    )
      .on("error", reject)
      .end();
  });

/** A plain request inside a tunnel: enough to see where it leads. */
const tunnel = (target: string) => (proxy: URL) =>
  new Promise<Answer>((resolve, reject) => {
    request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: target })
      .on("connect", async ({ statusCode = 0 }, socket) => {
        if (statusCode !== 200) return resolve({ status: statusCode, text: "" });
        socket.write("GET /inside HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        resolve({ status: statusCode, text: await read(socket) });
      })
      .on("error", reject)
      .end();
  });

test("without a proxy of the network, connections go to the addresses that were checked, and no login of ours goes along", async () => {
  const plain = await through(undefined, get(`http://open.test:${portOf(site)}/a?b`));
  assert.deepEqual([plain.status, plain.text], [200, "site got GET /a?b"]);
  const secure = await through(undefined, tunnel(`open.test:${portOf(site)}`));
  assert.match(secure.text, /site got GET \/inside$/);
  assert.equal((await through(undefined, tunnel("far.test:443"))).status, 502);
});

test("a proxy of the network makes the connections, and is told who asks", async () => {
  const settings = () => ({
    http_proxy: `http://me:p%40ss@127.0.0.1:${portOf(network)}`,
    https_proxy: `http://127.0.0.1:${portOf(network)}`,
  });
  const plain = await through(settings(), get("http://far.test/a?b"));
  assert.deepEqual([plain.status, plain.text], [200, "network got http://far.test/a?b"]);
  const secure = await through(settings(), tunnel("far.test:443"));
  assert.match(secure.text, /site got GET \/inside$/);
  assert.equal((await through(settings(), tunnel("far.test:444"))).status, 502);
  const known = Buffer.from("me:p@ss").toString("base64");
  assert.deepEqual(seen, [
    `GET http://far.test/a?b Basic ${known}`,
    "CONNECT far.test:443 -",
    "CONNECT far.test:444 -",
  ]);
});

test("what may not be opened reaches no proxy, and what is exempt from it goes direct", async () => {
  const settings = () => ({ http_proxy: `http://127.0.0.1:${portOf(network)}`, no_proxy: "open.test" });
  const closed = await through(settings(), get("http://closed.test/"));
  assert.deepEqual([closed.status, closed.text, closed.refused], [403, "closed here", ["closed.test"]]);
  const direct = await through(settings(), get(`http://open.test:${portOf(site)}/direct`));
  assert.equal(direct.text, "site got GET /direct");
  assert.deepEqual(seen, []);
});

test("errands of the browser itself end at the guard, whoever could make the connection", async () => {
  const settings = { https_proxy: `http://127.0.0.1:${portOf(network)}` };
  const errand = await through(settings, tunnel("browser.invalid:443"));
  assert.deepEqual([errand.status, errand.refused, seen], [502, [], []]);
});

test("a proxy that is not there is told in words", async () => {
  const gone = await through({ http_proxy: "http://127.0.0.1:9" }, get("http://far.test/"));
  assert.equal(gone.status, 502);
  assert.match(gone.text, /ECONNREFUSED/);
});
