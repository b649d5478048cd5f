// What a stored prompt depended on, as data: whether it can be used again is never read out of its text, which a project file could forge.
import { createHash } from "node:crypto";
import type { Confinement, Environment } from "../sandbox/environment.ts";

/** Raised only when stored tool schemas no longer fit the built-in tools; new texts alone never rebuild a prompt. */
export const PROMPT_VERSION = 1;

export interface PromptFingerprint {
  readonly v: number;
  readonly model: string;
  readonly provider: string;
  readonly platform: string;
  readonly cwd: string | null;
  /** What of this machine commands see; `none` = all of it. */
  readonly sandbox?: string;
  /** Of the tool array as it is sent. */
  readonly toolsHash?: string;
  /** Of what the user chose. */
  readonly toolSelection?: string;
  /** Of the prompt's text. */
  readonly promptHash: string;
}

interface ToolChoice {
  readonly toolsets: readonly string[];
  readonly disabledToolsets: readonly string[];
  readonly disabledTools: readonly string[];
  readonly mcpServers: readonly string[];
}

type Compared = "v" | "model" | "provider" | "platform" | "cwd" | "sandbox" | "toolSelection";
const COMPARED: readonly Compared[] = ["v", "model", "provider", "platform", "cwd", "sandbox", "toolSelection"];

export function sandboxStamp(sandbox: Pick<Confinement, "writable" | "network"> | undefined): string {
  return sandbox ? JSON.stringify([sandbox.writable, sandbox.network]) : "none";
}

/** Undefined where commands run elsewhere than on this machine. */
export function environmentStamp({
  confinement,
  files,
}: Pick<Environment, "confinement" | "files">): string | undefined {
  return confinement || !files ? sandboxStamp(confinement) : undefined;
}

/** Hex SHA-256 of a text's UTF-8 bytes, or of bytes. */
export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** Of a list that nobody changes any more: it is asked for several times in each turn. */
export function hashTools(tools: readonly unknown[]): string {
  const known = toolHashes.get(tools) ?? sha256(JSON.stringify(tools));
  toolHashes.set(tools, known);
  return known;
}

const toolHashes = new WeakMap<readonly unknown[], string>();

export function hashToolChoice(choice: ToolChoice): string {
  const sorted = (names: readonly string[]) => [...new Set(names)].sort();
  return sha256(
    JSON.stringify([
      sorted(choice.toolsets),
      sorted(choice.disabledToolsets),
      sorted(choice.disabledTools),
      sorted(choice.mcpServers),
    ]),
  );
}

/**
 * What speaks against using a stored prompt again, in a fixed order; empty = use it byte for byte. A field that is missing on either
 * side does not count, so a prompt that nobody stamped (an older program wrote it) is taken as it is.
 */
export function fingerprintChanges(stored: unknown, wanted: Partial<PromptFingerprint>): readonly Compared[] {
  if (typeof stored !== "object" || stored === null) return [];
  const known = stored as Partial<Record<Compared, unknown>>; // read back from the store, every field checked below
  return COMPARED.filter((field) => isKnown(known[field]) && isKnown(wanted[field]) && known[field] !== wanted[field]);
}

/** Whether the text is the one that was stamped; if not, another program rewrote it and its layers are unknown. */
export function isStampedText(stored: unknown, prompt: string): boolean {
  if (typeof stored !== "object" || stored === null || !("promptHash" in stored)) return false;
  return stored.promptHash === sha256(prompt);
}

const isKnown = (value: unknown) => value !== undefined && value !== null;
