import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import { type ClientSocket, connectWebSocket, type WebSocketOptions } from "./websocket.ts";

interface Heard {
  readonly messages: (string | Uint8Array)[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** Resolves when so many messages are there. */
  count(wanted: number): Promise<void>;
}

async function connect(url: string, more: Partial<WebSocketOptions> = {}): Promise<ClientSocket & Heard> {
  const messages: (string | Uint8Array)[] = [];
  const over = Promise.withResolvers<{ code: number; reason: string }>();
  let looked = (): unknown => undefined;
  const socket = await connectWebSocket(url, {
    connectMs: 5000,
    onMessage(data) {
      messages.push(data);
      looked();
    },
    onClose: (code, reason) => over.resolve({ code, reason }),
    ...more,
  });
  const count = (wanted: number) =>
    new Promise<void>((resolve) => {
      looked = () => (messages.length >= wanted ? resolve() : undefined);
      looked();
    });
  return {
    ...{ messages, count, closed: over.promise },
    ...{
      send: (data) => socket.send(data),
      close: (code, reason) => socket.close(code, reason),
      ping: () => socket.ping(),
      drop: () => socket.drop(),
    },
  };
}

/** The server of another implementation. */
async function wsServer(t: TestContext, connected: (client: WebSocket) => void): Promise<string> {
  const server = new WebSocketServer({
    ...{ host: "127.0.0.1", port: 0, perMessageDeflate: true },
    handleProtocols: (offered) => (offered.has("second") ? "second" : false),
  });
  await once(server, "listening");
  server.on("connection", connected);
  t.after(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  return `ws://127.0.0.1:${(server.address() as { port: number }).port}/path?ticket=1`;
}

/** Upgrades as told, then writes these bytes. */
async function rawServer(t: TestContext, bytes: Buffer | string, head?: (key: string) => string): Promise<string> {
  const server: Server = createServer((socket: Socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (request) => {
      const key = /sec-websocket-key: (\S+)/i.exec(String(request))?.[1] ?? "";
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      const usual = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
      socket.write(Buffer.concat([Buffer.from(head?.(accept) ?? usual), Buffer.from(bytes)]));
    });
    t.after(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `ws://127.0.0.1:${(server.address() as { port: number }).port}`;
}

test("texts and bytes of every size that is written differently come back as they went out", async (t) => {
  const url = await wsServer(t, (client) =>
    client.on("message", (data, isBinary) => client.send(data, { binary: isBinary })),
  );
  const socket = await connect(url);
  const sizes = [0, 1, 125, 126, 127, 65_535, 65_536, 300_000];
  const texts = ["", "grüße 你好 🎮", ...sizes.map((size) => "x".repeat(size))];
  const bytes = sizes.map((size) => Uint8Array.from({ length: size }, (_, at) => at % 251));
  for (const one of [...texts, ...bytes]) assert.equal(socket.send(one), true);
  await socket.count(texts.length + bytes.length);
  assert.deepEqual(socket.messages, [...texts, ...bytes]);
  socket.close(1000, "done");
  assert.deepEqual(await socket.closed, { code: 1000, reason: "done" });
  assert.equal(socket.send("late"), false);
});

test("a message in parts is one, with signs of life between its parts, which are answered", async (t) => {
  const pong = Promise.withResolvers<string>();
  const url = await wsServer(t, (client) => {
    client.on("pong", (data) => pong.resolve(String(data)));
    client.send("eins ü", { fin: false });
    client.ping("still there?");
    client.send(" zwei", { fin: false });
    client.send(" drei", { fin: true });
  });
  const socket = await connect(url);
  await socket.count(1);
  assert.deepEqual(socket.messages, ["eins ü zwei drei"]);
  assert.equal(await pong.promise, "still there?");
  socket.drop();
  assert.equal((await socket.closed).code, 1006);
});

test("what the server says at its end is told, and a line that breaks is told too", async (t) => {
  const said = await connect(await wsServer(t, (client) => client.close(4004, "Authentication failed.")));
  assert.deepEqual(await said.closed, { code: 4004, reason: "Authentication failed." });
  const cut = await connect(await wsServer(t, (client) => client.terminate()));
  assert.deepEqual(await cut.closed, { code: 1006, reason: "" });
});

test("of the protocols that are offered one is taken, and one that nobody offered is refused", async (t) => {
  let taken = "";
  const url = await wsServer(t, (client) => {
    taken = client.protocol;
    client.send("hello");
  });
  const socket = await connect(url, { protocols: ["first", "second"] });
  await socket.count(1);
  assert.equal(taken, "second");
  socket.close();
  const other = await rawServer(
    t,
    "",
    (accept) =>
      `HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: third\r\n\r\n`,
  );
  await assert.rejects(connect(other, { protocols: ["first"] }), /does not speak WebSocket/);
});

test("frames that no server sends end the connection with the code for it", async (t) => {
  const text = (words: string, first = 0x81) => Buffer.concat([Buffer.from([first, words.length]), Buffer.from(words)]);
  const cases: readonly (readonly [string, Buffer, number])[] = [
    ["masked", Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5]), 1002],
    ["bits that nobody agreed on", Buffer.from([0xc1, 1, 65]), 1002],
    ["an unknown kind", Buffer.from([0x83, 1, 65]), 1002],
    ["a goodbye of one byte", Buffer.from([0x88, 1, 3]), 1002],
    ["a sign of life in parts", Buffer.from([0x09, 0]), 1002],
    ["a part of nothing", Buffer.from([0x80, 0]), 1002],
    ["a message inside another", Buffer.concat([text("a", 0x01), text("b")]), 1002],
    ["no UTF-8", Buffer.from([0x81, 2, 0xc3, 0x28]), 1007],
    ["longer than anything", Buffer.from([0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0]), 1009],
  ];
  for (const [what, bytes, code] of cases) {
    const socket = await connect(await rawServer(t, Buffer.concat([text("before"), bytes])));
    assert.equal((await socket.closed).code, code, what);
    assert.deepEqual(socket.messages, ["before"], what);
  }
});

test("frames are read however the network cuts them", async (t) => {
  const words = "ein längerer Text ".repeat(20);
  const payload = Buffer.from(words);
  const frame = Buffer.concat([Buffer.from([0x81, 126, payload.length >> 8, payload.length & 255]), payload]);
  const server = createServer((socket) => {
    socket.setNoDelay();
    socket.once("data", async (request) => {
      const key = /sec-websocket-key: (\S+)/i.exec(String(request))?.[1] ?? "";
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      socket.write(
        `HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      for (const byte of Buffer.concat([frame, frame]))
        await new Promise((done) => socket.write(Buffer.of(byte), done));
    });
    t.after(() => socket.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const socket = await connect(`ws://127.0.0.1:${(server.address() as { port: number }).port}`);
  await socket.count(2);
  assert.deepEqual(socket.messages, [words, words]);
  socket.drop();
});

test("a server that refuses, speaks something else or says nothing is told apart, without the address", async (t) => {
  const refused = await rawServer(t, "", () => "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  await assert.rejects(connect(`${refused}/?ticket=secret`), { message: "the connection was refused (status 401)" });
  const other = await rawServer(
    t,
    "",
    () => "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: no\r\n\r\n",
  );
  await assert.rejects(connect(other), { message: "the server does not speak WebSocket" });
  const silent = await rawServer(t, "", () => "");
  await assert.rejects(connect(silent, { connectMs: 50 }), { message: "no connection within 0.05 seconds" });
  const stop = new AbortController();
  const waiting = connect(silent, { signal: stop.signal });
  stop.abort();
  await assert.rejects(waiting);
  await assert.rejects(connect("ws://127.0.0.1:9"), { message: "refused the connection (ECONNREFUSED)" });
});

test("a sign of life is asked for and heard, and no message", async (t) => {
  const url = await wsServer(t, () => undefined);
  const heard = Promise.withResolvers<void>();
  const socket = await connect(url, { onSign: () => heard.resolve() });
  socket.ping();
  await heard.promise;
  assert.deepEqual(socket.messages, []);
  socket.drop();
});
