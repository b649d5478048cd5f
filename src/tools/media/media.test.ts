import assert from "node:assert/strict";
import { mkdtemp, realpath, rm, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { toolContext } from "../../../test/support/tool-context.ts";
import { defaultConfig } from "../../home/config/schema.ts";
import type { AuxiliaryQuestion, ToolContext } from "../toolset/context.ts";
import { analyzeImage, imageType } from "./pictures.ts";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
let dir = "";
let origin = "";
const server = createServer((request, response) => {
  if (request.url === "/pic.png") return void response.end(PNG);
  if (request.url === "/huge.png")
    return void response.writeHead(200, { "content-length": 60 * 1024 * 1024 }).flushHeaders();
  if (request.url === "/to-metadata")
    return void response.writeHead(302, { location: "http://169.254.169.254/" }).end();
  response.writeHead(404).end("no");
});
before(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), "hermes-media-")));
  await writeFile(join(dir, "pic.txt"), PNG);
  await writeFile(join(dir, "fake.png"), "no image at all");
  await writeFile(join(dir, "drawing.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>");
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
});
after(async () => {
  await rm(dir, { recursive: true, force: true });
  await new Promise((resolve) => server.close(resolve));
});

const rig = (given: Partial<ToolContext> = {}, allowPrivate = true) => {
  const asked: AuxiliaryQuestion[] = [];
  const config = defaultConfig();
  const plain = toolContext({ homeDir: dir });
  const ctx = toolContext({
    homeDir: join(dir, "home"),
    environment: { ...plain.environment, kind: "local", cwd: dir, home: dir },
    config: { ...config, security: { ...config.security, allow_private_urls: allowPrivate } },
    askAuxiliary: async (question) => `seen ${asked.push(question)}`,
    ...given,
  });
  return {
    asked,
    look: async (image_url: string) => analyzeImage({ image_url, question: "what?" }, ctx),
    error: async (image_url: string) =>
      JSON.parse(String(await analyzeImage({ image_url, question: "what?" }, ctx))).error,
  };
};

test("an image in a file or on the web is described by the model for it, whatever its name says", async () => {
  const { look, asked } = rig();
  for (const source of ["pic.txt", `${origin}/pic.png`]) {
    assert.match(String(await look(source)), /"success":true.*"analysis":"seen/);
  }
  assert.equal(asked[0]?.task, "vision");
  assert.match(JSON.stringify(asked[0]?.messages), /data:image\/png;base64,iVBOR/);
});

test("a model that sees gets the image itself", async () => {
  const { look, asked } = rig({ seesImages: true });
  const output = await look("pic.txt");
  assert.ok(typeof output !== "string");
  assert.deepEqual(
    output.content.map(({ type }) => type),
    ["text", "image_url"],
  );
  assert.match(output.text_summary ?? "", /was shown/);
  assert.equal(asked.length, 0);
});

test("what cannot be looked at is refused in words", async () => {
  const { error } = rig();
  assert.match(await error("missing.png"), /not found/i);
  assert.match(await error("fake.png"), /not an image/);
  assert.match(await error("drawing.svg"), /image\/svg\+xml.*Convert/);
  assert.match(await error(`${origin}/nothing`), /404/);
  assert.match(await error(`${origin}/to-metadata`), /metadata/);
  assert.match(await error("ftp://x/y.png"), /Only http and https/);
  assert.match(await error("/dev/zero"), /device/);
  assert.match(await rig({}, false).error(`${origin}/pic.png`), /security\.allow_private_urls/);
});

test("what is too large is refused: 50 MB as it comes, 20 MB as it is sent", async () => {
  const { error, asked } = rig();
  for (const [name, megabytes] of [
    ["huge.png", 51],
    ["large.png", 16],
  ] as const) {
    await writeFile(join(dir, name), PNG);
    await truncate(join(dir, name), megabytes * 1024 * 1024);
  }
  assert.match(await error("huge.png"), /too large: 53477376 bytes, 50 MB/);
  assert.match(await error("large.png"), /22 MB encoded, 20 are allowed/);
  assert.match(await error(`${origin}/huge.png`), /longer than 50 MB/);
  assert.equal(asked.length, 0);
});

test("what the browser may open is not what images are fetched from", async () => {
  const config = defaultConfig();
  const near = rig({ config: { ...config, browser: { ...config.browser, allow_private_urls: true } } });
  assert.match(await near.error(`${origin}/pic.png`), /security\.allow_private_urls/);
});

test("without anyone to ask the result says so, and a refusal of the model is passed on", async () => {
  const deaf = rig({ askAuxiliary: () => Promise.reject(new Error("set auxiliary.vision.provider")) });
  assert.match(await deaf.error("pic.txt"), /auxiliary\.vision\.provider/);
});

const KINDS: readonly (readonly [string, string | null])[] = [
  ["\x89PNG\r\n\x1a\n", "image/png"],
  ["\xff\xd8\xff\xe0", "image/jpeg"],
  ["GIF89a", "image/gif"],
  ["RIFF0000WEBP", "image/webp"],
  ["BM00", "image/bmp"],
  ["II*\0", "image/tiff"],
  ["<?xml version='1.0'?><svg ", "image/svg+xml"],
  ["<html>", null],
  ["", null],
];
for (const [head, kind] of KINDS)
  test(`${JSON.stringify(head)} begins ${kind ?? "no image"}`, () => {
    assert.equal(imageType(Buffer.from(head, "latin1")), kind);
  });
