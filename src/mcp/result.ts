// From what a server answered to what the model reads.
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CallToolResult, GetPromptResult, ReadResourceResult } from "@modelcontextprotocol/client";
import { withoutSecrets } from "./errors.ts";

export interface ResultPorts {
  /** Cache folder of the home; images, audio and documents have their own below it. */
  readonly mediaDir: string;
  redact(text: string): string;
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/gif": "gif",
  "image/webp": "webp",
  "image/svg+xml": "svg",
  "audio/mpeg": "mp3",
  "audio/wav": "wav",
  "audio/ogg": "ogg",
  "application/pdf": "pdf",
  "application/zip": "zip",
  "application/gzip": "gz",
  "application/json": "json",
  "text/plain": "txt",
};

type Block = CallToolResult["content"][number];

export async function toolResult(result: CallToolResult, ports: ResultPorts): Promise<string> {
  const text = await joined(result.content ?? [], ports);
  if (result.isError)
    return JSON.stringify({
      error: withoutSecrets(text || "the tool reported an error without a text", (rest) => ports.redact(rest)),
    });
  return JSON.stringify({ result: text, structuredContent: result.structuredContent });
}

export async function resourceResult({ contents }: ReadResourceResult, ports: ResultPorts): Promise<string> {
  const parts = await Promise.all(contents.map((one) => resourceText(one, ports)));
  return JSON.stringify({ result: parts.join("\n\n") });
}

export async function promptResult({ messages, description }: GetPromptResult, ports: ResultPorts): Promise<string> {
  const spoken = await Promise.all(
    messages.map(async ({ role, content }) => ({ role, content: await blockText(content, ports) })),
  );
  return JSON.stringify({ description: description || undefined, messages: spoken });
}

async function joined(content: readonly Block[], ports: ResultPorts): Promise<string> {
  const texts = await Promise.all(content.map((block) => blockText(block, ports)));
  return texts.filter((text) => text !== "").join("\n");
}

async function blockText(block: Block, ports: ResultPorts): Promise<string> {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return `MEDIA:${await keep("images", block.data, block.mimeType, ports)}`;
    case "audio":
      return `MEDIA:${await keep("audio", block.data, block.mimeType, ports)}`;
    case "resource":
      return resourceText(block.resource, ports);
    case "resource_link":
      return `[resource ${block.uri}${block.name ? ` "${block.name}"` : ""}${block.description ? `: ${block.description}` : ""}]`;
  }
}

async function resourceText(resource: ReadResourceResult["contents"][number], ports: ResultPorts): Promise<string> {
  if ("text" in resource && typeof resource.text === "string") return resource.text;
  if (!("blob" in resource) || typeof resource.blob !== "string") return `[resource ${resource.uri} is empty]`;
  const kind = /^image\//.test(resource.mimeType ?? "") ? "images" : "documents";
  const path = await keep(kind, resource.blob, resource.mimeType ?? "", ports);
  return kind === "images" ? `MEDIA:${path}` : `[resource ${resource.uri} saved to ${path}]`;
}

/** The same bytes get the same file: a tool that shows one picture a hundred times fills no disk. */
async function keep(kind: string, data: string, mimeType: string, { mediaDir }: ResultPorts): Promise<string> {
  const bytes = Buffer.from(data, "base64");
  const dir = join(mediaDir, kind);
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 24);
  const path = join(dir, `mcp_${hash}.${EXTENSIONS[mimeType.split(";")[0] ?? ""] ?? "bin"}`);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(path, bytes, { mode: 0o600 });
  return path;
}
