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
import { registerProvider } from "../toolset/availability.ts";
import type { ToolContext } from "../toolset/context.ts";
import { generateImage } from "./generate-image.ts";
import { speak, splitText } from "./speak.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
let dir = "";
let base = "";
const asked: { path: string; key: string; body: Record<string, unknown> }[] = [];
const server = createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  if (request.url?.endsWith(".png")) return void response.end(Buffer.from(PNG, "base64"));
  const body = JSON.parse(text);
  const key = request.headers.authorization ?? request.headers["xi-api-key"];
  asked.push({ path: request.url ?? "", key: String(key ?? ""), body });
  if (request.url?.includes("/fal-ai/"))
    return void response.end(JSON.stringify({ images: [{ url: `${base}/made.png` }] }));
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

const service = (
  sections: { readonly tts?: object; readonly image_gen?: object },
  env: Readonly<Record<string, string>> = {},
) => {
  const config = { ...defaultConfig(), tts: {}, image_gen: {}, ...sections };
  return toolContext({ homeDir: dir, config: config as never, pay, env: (name) => env[name] }); // free sections
};

test("FAL makes pictures by its own protocol, and one that waits on the server's machine is fetched from there", async () => {
  const image_gen = { provider: "fal", base_url: base, model: "fal-ai/flux-2" };
  const made = JSON.parse(
    await generateImage({ prompt: "a cat", aspect_ratio: "square" }, service({ image_gen }, { FAL_KEY: "fal-key" })),
  );
  assert.equal(made.success, true, made.error);
  assert.equal((await readFile(made.image)).toString("base64"), PNG);
  const { path, key, body } = asked.at(-1) ?? {};
  assert.deepEqual([path, key], ["/v1/fal-ai/flux-2", "Key fal-key"]);
  assert.deepEqual(body, { prompt: "a cat", image_size: "square_hd", num_images: 1 });
});

test("ElevenLabs speaks by its own protocol, ten thousand characters at once", async () => {
  const tts = { provider: "elevenlabs", elevenlabs: { base_url: base, voice_id: "rachel/1" } };
  const ctx = service({ tts }, { ELEVENLABS_API_KEY: "eleven-key" });
  const whole = JSON.parse(await speak({ text: "This is a sentence. ".repeat(450) }, ctx));
  assert.equal(await readFile(whole.file_path, "utf8"), "SOUND");
  const { path, key, body } = asked.at(-1) ?? {};
  assert.deepEqual([path, key], ["/v1/v1/text-to-speech/rachel%2F1?output_format=mp3_44100_128", "eleven-key"]);
  assert.equal(body?.model_id, "eleven_multilingual_v2");
  await speak({ text: "x", output_path: join(dir, "x.ogg") }, ctx);
  assert.match(asked.at(-1)?.path ?? "", /output_format=opus_48000_64$/);
  assert.equal(await readFile(join(dir, "x.ogg"), "utf8"), "SOUND");
});

test("the only key there is decides; a provider that is named needs its own, and one nobody knows is refused in words", async () => {
  const before = asked.length;
  assert.match(
    JSON.parse(await generateImage({ prompt: "x" }, service({ image_gen: { provider: "fal" } }))).error,
    /FAL has no key.*FAL_KEY/,
  );
  assert.match(
    JSON.parse(await speak({ text: "x" }, service({ tts: { provider: "elevenlabs" } }))).error,
    /ELEVENLABS_API_KEY/,
  );
  assert.match(JSON.parse(await generateImage({ prompt: "x" }, service({}))).error, /OPENAI_API_KEY.*FAL_KEY/);
  assert.match(
    JSON.parse(await speak({ text: "x" }, service({ tts: { provider: "edge" } }))).error,
    /tts\.provider in config\.yaml is "edge", which is not there\. Use openai, elevenlabs,/,
  );
  assert.equal(asked.length, before);
  paid.length = 0;
  const only = service({}, { FAL_KEY: "fal-key" });
  await generateImage({ prompt: "x" }, { ...only, pay: async (_task, call) => Promise.reject(paid.push(call)) }).catch(
    () => 0,
  );
  assert.deepEqual([paid[0]?.provider, paid[0]?.baseUrl], ["fal", "https://fal.run"]);
  assert.deepEqual(paid[0]?.keyHosts, ["fal.run"], "a key from the environment goes nowhere else");
});

test("what a plugin brings makes pictures and speech when it is named, under the same caps", async (t) => {
  const wishes: unknown[] = [];
  const painter = {
    generate: async (request: object) => Buffer.from(PNG, "base64").subarray(0, wishes.push(request) * 1000),
  };
  const speaker = {
    mostChars: 10,
    speak: async (request: { text: string }) => new TextEncoder().encode(`<${request.text}>`),
  };
  const broken = { speak: async () => "no bytes", generate: () => Promise.reject(new Error("out of paint")) };
  for (const undo of [
    registerProvider("image_gen", "crayon", async () => painter),
    registerProvider("tts", "parrot", async () => speaker),
    registerProvider("image_gen", "broken", async () => broken),
    registerProvider("tts", "broken", async () => broken),
    registerProvider("tts", "empty", async () => ({})),
  ])
    t.after(undo);
  paid.length = 0;
  const ctx = service({ image_gen: { provider: "crayon", model: "wax" }, tts: { provider: "parrot" } });
  const { image } = JSON.parse(await generateImage({ prompt: "a cat" }, ctx));
  assert.equal((await readFile(image)).toString("base64"), PNG);
  assert.deepEqual(wishes, [{ prompt: "a cat", aspectRatio: "landscape", model: "wax", signal: ctx.signal }]);
  const { file_path } = JSON.parse(await speak({ text: "one two three four" }, ctx));
  assert.equal(await readFile(file_path, "utf8"), "<one two ><three four>");
  assert.deepEqual(
    paid.map(({ provider, model }) => [provider, model]),
    [
      ["crayon", "wax"],
      ["parrot", "parrot"],
      ["parrot", "parrot"],
    ],
  );
  const bad = service({ image_gen: { provider: "broken" }, tts: { provider: "broken" } });
  assert.match(
    JSON.parse(await generateImage({ prompt: "x" }, bad)).error,
    /"broken", which a plugin provides, failed: out of paint/,
  );
  assert.match(JSON.parse(await speak({ text: "x" }, bad)).error, /not a sequence of bytes/);
  assert.match(
    JSON.parse(await speak({ text: "x" }, service({ tts: { provider: "empty" } }))).error,
    /has no speak\(\)/,
  );
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
