import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { toolContext } from "../../../test/support/tool-context.ts";
import { defaultConfig } from "../../home/config/schema.ts";
import { CallRefusedError, type PaidCall } from "../../llm/gate.ts";
import { registerProvider } from "../toolset/availability.ts";
import type { ToolContext } from "../toolset/context.ts";
import { transcribe } from "./transcribe.ts";

let dir = "";
let base = "";
/** Bytes that no text encoding leaves alone. */
const SOUND = Buffer.from([0x4f, 0x67, 0x67, 0x53, 0, 0xff, 0xfe, 13, 10, 0x80]);
let reply: { status?: number; body: string } = { body: '{"text":" Hello there. "}' };
const asked: { path: string; key: string; form: FormData }[] = [];

/** Reads the form by the platform's own parser, as a real endpoint would. */
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const headers = { "content-type": String(request.headers["content-type"]) };
  const form = await new Response(Buffer.concat(chunks), { headers }).formData();
  asked.push({ path: request.url ?? "", key: String(request.headers.authorization), form });
  response.writeHead(reply.status ?? 200).end(reply.body);
});
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "hermes-stt-"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`; // it listens on a port
});
after(async () => {
  await rm(dir, { recursive: true, force: true });
  await new Promise((resolve) => server.close(resolve));
});

const paid: PaidCall[] = [];
const pay: ToolContext["pay"] = async (task, call, send) => {
  assert.equal(task, "transcription");
  paid.push(call);
  return (await send()).value;
};

function listening(stt: object = {}, more: Partial<ToolContext> = { pay }): ToolContext {
  const config = { ...defaultConfig(), stt: { base_url: base, api_key: "stt-key-123", ...stt } };
  return toolContext({ homeDir: dir, config, env: () => undefined, ...more });
}

async function sound(name: string, bytes: Buffer = SOUND): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, bytes);
  return path;
}

test("a voice message goes out as a form, byte for byte, and comes back as its words", async () => {
  const path = await sound("vöice 1.opus");
  assert.equal(await transcribe(path, listening({ language: "de" })), "Hello there.");
  const { path: route, key, form } = asked.at(-1)!;
  assert.deepEqual([route, key], ["/v1/audio/transcriptions", "Bearer stt-key-123"]);
  assert.deepEqual([form.get("model"), form.get("language")], ["whisper-1", "de"]);
  const file = form.get("file") as File;
  assert.deepEqual([file.name, file.type], ["v_ice_1.ogg", "audio/ogg"]);
  assert.deepEqual(Buffer.from(await file.arrayBuffer()), SOUND);
  assert.deepEqual(
    [paid.at(-1)?.apiMode, paid.at(-1)?.model, paid.at(-1)?.baseUrl],
    ["transcription", "whisper-1", base],
  );
});

test("the provider's own settings win, and an answer in plain text is taken too", async () => {
  reply = { body: "just words\n" };
  const ctx = listening({ provider: "custom", custom: { model: "own-whisper" } });
  assert.equal(await transcribe(await sound("a.mp3"), ctx), "just words");
  assert.equal(asked.at(-1)?.form.get("model"), "own-whisper");
  reply = { body: '{"text":"x"}' };
});

test("whatever goes wrong is one sentence", async () => {
  const path = await sound("a.ogg");
  const before = asked.length;
  await assert.rejects(transcribe(path, listening({ enabled: false })), /stt\.enabled is false/);
  await assert.rejects(transcribe(path, listening({ provider: "local", base_url: "" })), /no local transcription/);
  await assert.rejects(transcribe(path, listening({ base_url: "", api_key: "" })), /Not configured.*stt\.base_url/);
  await assert.rejects(transcribe(join(dir, "none.ogg"), listening()), /it is missing/);
  await assert.rejects(transcribe(await sound("b.ogg", Buffer.alloc(0)), listening()), /empty/);
  await assert.rejects(transcribe(await sound("c.ogg", Buffer.alloc(26 * 2 ** 20)), listening()), /larger than 25 MB/);
  await assert.rejects(transcribe(path, listening({}, {})), /Nobody keeps account/);
  const capped = () => Promise.reject(new CallRefusedError("the cap for today is 0 (budget.day.usd)"));
  await assert.rejects(transcribe(path, listening({}, { pay: capped })), /budget\.day\.usd/);
  assert.equal(asked.length, before, "nothing was sent");
  reply = { status: 400, body: '{"error":{"message":"not a sound"}}' };
  await assert.rejects(transcribe(path, listening()), /answered 400: not a sound/);
  reply = { body: '{"text":"  "}' };
  await assert.rejects(transcribe(path, listening()), /No words/);
  reply = { body: "{broken" };
  await assert.rejects(transcribe(path, listening()), /cannot be read/);
  await assert.rejects(transcribe(path, listening({ base_url: "http://127.0.0.1:9/v1" })), /refused the connection/);
  reply = { body: '{"text":"x"}' };
});

test("a plugin that is named transcribes, under the same caps", async (t) => {
  const requests: unknown[] = [];
  const parrot = { transcribe: async (request: object) => `heard ${requests.push(request)}` };
  t.after(registerProvider("transcription", "parrot", async () => parrot));
  t.after(
    registerProvider("transcription", "mute", async () => ({ transcribe: () => Promise.reject(new Error("no ears")) })),
  );
  const path = await sound("a.ogg");
  const ctx = listening({ provider: "parrot" });
  assert.equal(await transcribe(path, ctx), "heard 1");
  assert.deepEqual(requests, [{ path, model: undefined, language: undefined, signal: ctx.signal }]);
  assert.equal(paid.at(-1)?.provider, "parrot");
  await assert.rejects(
    transcribe(path, listening({ provider: "mute" })),
    /"mute", which a plugin provides, failed: no ears/,
  );
});
