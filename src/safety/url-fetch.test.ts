import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { type TestContext, test } from "node:test";
import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import { type WebRequest, webFetch } from "./url-fetch.ts";
import { checkUrl, parseWebUrl } from "./url-guard.ts";

const MB = 1024 * 1024;

async function serve(t: TestContext, listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port; // it listens on a port
}

/** `site.test` is the loopback server; everything else is judged as in life, with the names a test gives. */
function asked(
  names: Readonly<Record<string, readonly string[]>> = {},
  more: Partial<WebRequest> = {},
): WebRequest & { readonly lookups: string[] } {
  const lookups: string[] = [];
  return {
    lookups,
    signal: new AbortController().signal,
    timeoutMs: 20_000,
    async check(text) {
      const url = parseWebUrl(text);
      if (url.hostname === "site.test") return { url, addresses: ["127.0.0.1"], isPrivate: true };
      return checkUrl(text, {
        allowPrivate: false,
        async resolve(host) {
          lookups.push(host);
          return names[host] ?? Promise.reject(Object.assign(new Error("x"), { code: "ENOTFOUND" }));
        },
      });
    },
    ...more,
  };
}

test("the connection goes to the address that was checked; the name is not looked up again", async (t) => {
  const port = await serve(t, (request, response) => response.end(`host ${request.headers.host}`));
  // No name server knows site.test: an answer proves that nobody asked one.
  const answer = await webFetch(`http://site.test:${port}/`, asked());
  assert.equal(answer.body.toString(), `host site.test:${port}`);
});

test("a name is asked for once per connection, and one that turns around at the redirect is refused there", async (t) => {
  let reached = 0;
  const port = await serve(t, (_request, response) => {
    reached++;
    response.writeHead(302, { location: "/again" }).end();
  });
  const answers = ["127.0.0.1", "169.254.169.254", "127.0.0.1"];
  let questions = 0;
  const check: WebRequest["check"] = (url) =>
    checkUrl(url, { allowPrivate: true, resolve: async () => [answers[questions++] ?? ""] });
  await assert.rejects(webFetch(`http://rebind.test:${port}/`, asked({}, { check })), /metadata service/);
  assert.equal(questions, 2);
  assert.equal(reached, 1);
});

test("each redirect is checked: one that leads inside is refused and not followed", async (t) => {
  let inside = 0;
  const port = await serve(t, (request, response) => {
    if (request.url === "/secret") inside++;
    response
      .writeHead(302, {
        location: request.url === "/name" ? `http://near.test:${port}/secret` : `http://127.0.0.1:${port}/secret`,
      })
      .end();
  });
  const names = { "near.test": ["127.0.0.1"] };
  await assert.rejects(webFetch(`http://site.test:${port}/`, asked(names)), /Blocked: 127\.0\.0\.1/);
  await assert.rejects(webFetch(`http://site.test:${port}/name`, asked(names)), /Blocked: near\.test/);
  assert.equal(inside, 0);
});

test("a redirect to another scheme or to nothing is refused", async (t) => {
  const port = await serve(t, (request, response) =>
    response.writeHead(301, { location: request.url === "/file" ? "file:///etc/hostname" : "http://" }).end(),
  );
  await assert.rejects(webFetch(`http://site.test:${port}/file`, asked()), /Only http and https/);
  await assert.rejects(
    webFetch(`http://site.test:${port}/x`, asked()),
    /redirects to something that is not an address/,
  );
});

test("redirects are followed to their end, and a circle has one", async (t) => {
  let requests = 0;
  const port = await serve(t, (request, response) => {
    requests++;
    if (request.url === "/a") response.writeHead(307, { location: "/b" }).end();
    else if (request.url === "/b") response.end("there");
    else response.writeHead(302, { location: "/circle" }).end();
  });
  const answer = await webFetch(`http://site.test:${port}/a`, asked());
  assert.equal(answer.body.toString(), "there");
  assert.equal(answer.url.pathname, "/b");
  requests = 0;
  await assert.rejects(webFetch(`http://site.test:${port}/circle`, asked()), /redirects more than 5 times/);
  assert.equal(requests, 6);
});

const packings: readonly (readonly [name: string, pack: (bytes: Buffer) => Buffer])[] = [
  ["gzip", gzipSync],
  ["deflate", deflateSync],
  // Its best takes a second and is no better on nothing but zeros.
  ["br", (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
];
for (const [name, pack] of packings) {
  test(`${name} is unpacked, and a bomb of it is not`, async (t) => {
    const port = await serve(t, (request, response) => {
      response.setHeader("content-encoding", name);
      response.end(pack(request.url === "/bomb" ? Buffer.alloc(60 * MB) : Buffer.from("small")));
    });
    assert.equal((await webFetch(`http://site.test:${port}/`, asked())).body.toString(), "small");
    await assert.rejects(webFetch(`http://site.test:${port}/bomb`, asked()), /longer than 5 MB/);
  });
}

test("a body packed in an unknown way, twice, or not at all is an error", async (t) => {
  const port = await serve(t, (request, response) => {
    response.setHeader(
      "content-encoding",
      request.url === "/twice" ? "gzip, gzip" : request.url === "/odd" ? "zz" : "gzip",
    );
    response.end("plain text, not packed");
  });
  for (const path of ["/twice", "/odd", "/lie"])
    await assert.rejects(webFetch(`http://site.test:${port}${path}`, asked()), /cannot be unpacked/);
});

test("an endless body ends at the limit, announced or not", async (t) => {
  const port = await serve(t, (request, response) => {
    if (request.url === "/announced") response.setHeader("content-length", String(9 * MB));
    const chunk = Buffer.alloc(64 * 1024, "x");
    const more = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on("drain", more);
    more();
  });
  await assert.rejects(webFetch(`http://site.test:${port}/`, asked()), /longer than 5 MB/);
  await assert.rejects(
    webFetch(`http://site.test:${port}/announced`, asked({}, { maxBytes: 1024 })),
    /longer than 1 KB/,
  );
});

test("a server that never finishes is given up, and an interrupt ends the wait at once", async (t) => {
  const port = await serve(t, (request, response) => {
    if (request.url === "/drip") response.write("a");
  });
  const limited = asked({}, { timeoutMs: 200 });
  await assert.rejects(webFetch(`http://site.test:${port}/silent`, limited), /did not answer within 0\.2 seconds/);
  await assert.rejects(webFetch(`http://site.test:${port}/drip`, limited), /did not answer within 0\.2 seconds/);
  const controller = new AbortController();
  const waiting = webFetch(`http://site.test:${port}/silent`, asked({}, { signal: controller.signal }));
  setTimeout(() => controller.abort(new Error("stop it")), 20);
  await assert.rejects(waiting, /stop it/);
});

test("what goes wrong on the way is said in words", async (t) => {
  const port = await serve(t, (_request, response) => response.socket?.destroy());
  const garbage = createTcpServer((socket) => socket.end("220 mail.example ESMTP\r\n"));
  await new Promise<void>((resolve) => garbage.listen(0, "127.0.0.1", resolve));
  t.after(() => garbage.close());
  const { port: mail } = garbage.address() as AddressInfo; // it listens on a port
  const closed = await new Promise<number>((resolve) => {
    const server = createTcpServer().listen(0, "127.0.0.1", () => {
      const { port: free } = server.address() as AddressInfo; // it listens on a port
      server.close(() => resolve(free));
    });
  });
  await assert.rejects(webFetch(`http://site.test:${port}/`, asked()), /closed the connection/);
  await assert.rejects(webFetch(`http://site.test:${mail}/`, asked()), /does not speak HTTP/);
  await assert.rejects(webFetch(`http://site.test:${closed}/`, asked()), /refused the connection/);
  await assert.rejects(webFetch(`https://site.test:${port}/`, asked()), /site\.test:\d+ /);
  await assert.rejects(webFetch("http://nowhere.test/", asked()), /Host not found: nowhere\.test/);
});

test("a proxy gets the requests, also for names only it knows", async (t) => {
  const seen: string[] = [];
  const proxy = await serve(t, (request, response) => {
    seen.push(String(request.url));
    response.end("from the proxy");
  });
  const settings = { http_proxy: `http://127.0.0.1:${proxy}`, no_proxy: "site.test" };
  const answer = await webFetch("http://only-there.test/page", {
    ...asked({}, { proxy: settings }),
    check: (url) => checkUrl(url, { allowPrivate: false, proxied: true, resolve: async () => [] }),
  });
  assert.equal(answer.body.toString(), "from the proxy");
  assert.deepEqual(seen, ["http://only-there.test/page"]);
});
