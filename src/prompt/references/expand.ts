// A message with what it points at attached below it. The user's own text stays as typed.
import { estimateTokens } from "../../llm/catalogue/estimate.ts";
import { attachFile } from "./file.ts";
import { attachFolder } from "./folder.ts";
import { attachGit } from "./git.ts";
import { findReferences, type Reference } from "./grammar.ts";
import { type Attachment, type ReferenceOptions, warning } from "./ports.ts";

const LOCAL_PLATFORMS = ["cli", "tui", "acp", "desktop", ""];
const ASSUMED_WINDOW = 128_000;

export interface Expansion {
  /** What to send; the message as typed when nothing was attached. */
  readonly message: string;
  readonly references: readonly Reference[];
  /** For the user as well; also part of `message`. */
  readonly warnings: readonly string[];
  readonly injectedTokens: number;
  readonly expanded: boolean;
  /** More than half of the window: the message must not be sent, `warnings` says why. */
  readonly blocked: boolean;
}

/** Messages from chats and the API are written by others: there references are text unless the user has allowed them. */
export function expandsReferences(platform: string, settings: { readonly remote: boolean }): boolean {
  return settings.remote || LOCAL_PLATFORMS.includes(platform.toLowerCase());
}

/** From a chat the working directory is the root, and never the user's home. */
export async function isFitForRemote({ cwd, userHome, files }: ReferenceOptions): Promise<boolean> {
  return ((await files.real(cwd)) ?? cwd) !== ((await files.real(userHome)) ?? userHome);
}

/** Never rejects for what a reference points at. */
export async function expandReferences(message: string, options: ReferenceOptions): Promise<Expansion> {
  const references = findReferences(message);
  const plain = { message, references, warnings: [], injectedTokens: 0, expanded: false, blocked: false };
  if (references.length === 0) return plain;
  const distinct = [...new Map(references.map((reference) => [reference.raw, reference])).values()];
  const attached = await Promise.all(distinct.map(async (one) => ({ raw: one.raw, ...(await attach(one, options)) })));
  const blocks = attached.flatMap(({ type, text }) => (type === "block" ? [text] : []));
  const warnings = attached.flatMap(({ type, raw, text }) => (type === "warning" ? [`${raw}: ${text}`] : []));
  const tokens = blocks.reduce((sum, block) => sum + estimateTokens(block), 0);

  const window = options.contextLength > 0 ? options.contextLength : ASSUMED_WINDOW;
  const [soft, hard] = [Math.floor(window / 4), Math.floor(window / 2)];
  if (tokens > hard) {
    const refusal = `@ context injection refused: ${tokens} tokens exceeds the 50% hard limit (${hard}).`;
    return { ...plain, warnings: [...warnings, refusal], blocked: true };
  }
  if (tokens > soft)
    warnings.push(`@ context injection warning: ${tokens} tokens exceeds the 25% soft limit (${soft}).`);
  const parts = [
    message,
    ...(warnings.length > 0 ? [`--- Context Warnings ---\n${warnings.map((text) => `- ${text}`).join("\n")}`] : []),
    ...(blocks.length > 0 ? ["--- Attached Context ---", ...blocks] : []),
  ];
  return { ...plain, message: parts.join("\n\n"), warnings, injectedTokens: tokens, expanded: true };
}

/** The dim line under a message that attached something. */
export function describeExpansion({ references, injectedTokens }: Expansion): string {
  return `[@ context: ${references.length} ref(s), ${injectedTokens} tokens]`;
}

async function attach(reference: Reference, options: ReferenceOptions): Promise<Attachment> {
  try {
    switch (reference.kind) {
      case "file":
        return await attachFile(reference, options);
      case "folder":
        return await attachFolder(reference, options);
      case "url":
        return await attachPage(reference, options);
      default:
        return await attachGit(reference, options);
    }
  } catch (error) {
    return warning(error instanceof Error ? error.message : String(error));
  }
}

async function attachPage({ raw, value }: Reference, { readPage }: ReferenceOptions): Promise<Attachment> {
  if (!readPage) return warning("pages cannot be fetched here");
  const text = (await readPage(value)).trim();
  if (text === "") return warning("no content extracted");
  return { type: "block", text: `🌐 ${raw} (${estimateTokens(text)} tokens)\n${text}` };
}
