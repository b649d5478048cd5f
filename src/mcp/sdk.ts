// The SDK, loaded with the first server.
import type { Logger } from "../home/log.ts";

export type Sdk = typeof import("@modelcontextprotocol/client");

let quieted = false;

export async function loadSdk(log: Pick<Logger, "debug">): Promise<Sdk> {
  const sdk = await import("@modelcontextprotocol/client");
  if (!quieted) {
    quieted = true;
    // It has no other way to warn than the terminal, which belongs to the conversation.
    const warn = console.warn;
    console.warn = (...words: unknown[]) => {
      if (typeof words[0] === "string" && words[0].startsWith("[mcp-sdk]")) log.debug(words.join(" "));
      else warn(...words);
    };
  }
  return sdk;
}
