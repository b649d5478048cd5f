import assert from "node:assert/strict";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { toolContext } from "../../../test/support/tool-context.ts";
import { defaultConfig } from "../../home/config/schema.ts";
import { CallRefusedError, type PaidCall } from "../../llm/gate.ts";
import type { ToolContext } from "../context.ts";
import { generateImage } from "./generate-image.ts";
import { speak, splitText } from "./speak.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
let dir = "";
let base = "";
const asked: { path: string; key: string; body: Record<string, unknown> }[] = [];
const server = createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  const body = JSON.parse(text);
  asked.push({ path: request.url ?? "", key: request.headers.authorization ?? "", body });
  if (body.prompt === "refuse") return void response.writeHead(400).end('{"error":{"message":"not that"}}');
  if (request.url?.endsWith("/images/generations"))
    return void response.end(JSON.stringify({ data: [{ b64_json: PNG }] }));
  response.end("SOUND");
});
before(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), "hermes-media-")));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  base = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/v1`;
});
after(async () => {
  await rm(dir, { recursive: true, force: true });
  await new Promise((resolve) => server.close(resolve));
});

const paid: PaidCall[] = [];
const pay: ToolContext["pay"] = async (_task, call, send) => {
  paid.push(call);
  return (await send()).value;
};

const context = (platform = "cli", more: Partial<ToolContext> = { pay }) => {
  const settings = { base_url: base, api_key: "media-key-123" };
  const config = { ...defaultConfig(), tts: settings, image_gen: settings };
  return toolContext({ homeDir: dir, platform, config, ...more });
};

test("what is made is paid for: each request goes through whoever keeps the books, and without one nothing is sent", async () => {
  const before = asked.length;
  const refuse = () => Promise.reject(new CallRefusedError("the cap for today is 0 (budget.day.usd)"));
  for (const [more, why] of [
    [{}, /Nobody keeps account/],
    [{ pay: refuse }, /budget\.day\.usd/],
  ] as const) {
    assert.match(JSON.parse(await generateImage({ prompt: "a cat" }, context("cli", more))).error, why);
    assert.match(JSON.parse(await speak({ text: "a cat" }, context("cli", more))).error, why);
  }
  assert.equal(asked.length, before);
  await speak({ text: "Two parts. ".repeat(500) }, context());
  assert.deepEqual(
    paid.map(({ apiMode, model, provider, baseUrl }) => [apiMode, model, provider, baseUrl]),
    Array(2).fill(["speech", "gpt-4o-mini-tts", "custom", base]),
  );
  assert.equal(paid.map(({ input }) => input).join(""), "Two parts. ".repeat(500));
});

test("an image is made, kept in the home and named in the result", async () => {
  const { success, image } = JSON.parse(await generateImage({ prompt: "a cat", aspect_ratio: "portrait" }, context()));
  assert.equal(success, true);
  assert.ok(image.startsWith(join(dir, "cache", "images")));
  assert.equal((await readFile(image)).toString("base64"), PNG);
  assert.deepEqual([asked.at(-1)?.body.size, asked.at(-1)?.key], ["1024x1536", "Bearer media-key-123"]);
  assert.match(JSON.parse(await generateImage({ prompt: "refuse" }, context())).error, /400: not that/);
});

test("a text is spoken: mp3, opus for Telegram, long ones in pieces or cut with a note", async () => {
  const long = "This is a sentence. ".repeat(500);
  const whole = JSON.parse(await speak({ text: long }, context()));
  assert.deepEqual([whole.media_tag, whole.note], [`MEDIA:${whole.file_path}`, undefined]);
  assert.equal(await readFile(whole.file_path, "utf8"), "SOUNDSOUNDSOUND");
  const voice = JSON.parse(await speak({ text: long }, context("telegram")));
  assert.match(voice.file_path, /\.ogg$/);
  assert.equal(asked.at(-1)?.body.response_format, "opus");
  assert.match(voice.note, /only the first \d+ of 10000 characters/);
  assert.match(JSON.parse(await speak({ text: " " }, context())).error, /no text/);
});

test("without a key the result says what to set", async () => {
  const bare = toolContext({ homeDir: dir, env: () => undefined });
  assert.match(JSON.parse(await generateImage({ prompt: "x" }, bare)).error, /Not configured.*OPENAI_API_KEY/);
  assert.match(JSON.parse(await speak({ text: "x" }, bare)).error, /Not configured.*tts\.base_url/);
});

test("pieces of a text are short enough and give it back", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
      const pieces = splitText(`a${text}`, 16);
      assert.ok(pieces.every((piece) => piece.length <= 16 && piece.isWellFormed()));
      assert.equal(pieces.join("").replace(/\s/g, ""), `a${text}`.replace(/\s/g, ""));
    }),
  );
});
