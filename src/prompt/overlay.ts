// Texts that ride on every request and are never stored with the prompt.
import { truncateCodePoints } from "../kit/code-points.ts";

const CLEARS = ["none", "default", "neutral"];
const MOST_NAME_CHARS = 240;

/** The first of them that says something; the order is the precedence. */
export function chooseEphemeral(...candidates: readonly (string | null | undefined)[]): string | undefined {
  return candidates.find((text) => text?.trim())?.trim();
}

export type Personality =
  | { readonly type: "set"; readonly text: string }
  | { readonly type: "clear" }
  | { readonly type: "unknown"; readonly known: readonly string[] };

/** What `/personality <name>` puts into `agent.system_prompt`. */
export function findPersonality(name: string, personalities: Readonly<Record<string, unknown>>): Personality {
  const wanted = name.trim().toLowerCase();
  if (CLEARS.includes(wanted)) return { type: "clear" };
  const key = Object.keys(personalities).find((known) => known.toLowerCase() === wanted);
  const text = key === undefined ? "" : personalityText(personalities[key]);
  return text === "" ? { type: "unknown", known: Object.keys(personalities).sort() } : { type: "set", text };
}

function personalityText(value: unknown): string {
  if (typeof value === "string") return value.trim();
  if (typeof value !== "object" || value === null) return "";
  const { system_prompt, tone, style } = value as Record<string, unknown>; // each is checked in the next lines
  const line = (label: string, text: unknown) =>
    typeof text === "string" && text.trim() ? [`${label}${text.trim()}`] : [];
  return [...line("", system_prompt), ...line("Tone: ", tone), ...line("Style: ", style)].join("\n");
}

/** A chat's overlay: where it takes place, the channel's own prompt, and what overrides the global one or that one itself. */
export function joinOverlay(parts: {
  readonly sessionContext?: string | null;
  readonly channelPrompt?: string | null;
  readonly channelOverride?: string | null;
  readonly ephemeral?: string | null;
}): string | undefined {
  const texts = [parts.sessionContext, parts.channelPrompt, chooseEphemeral(parts.channelOverride, parts.ephemeral)];
  return texts.flatMap((text) => (text?.trim() ? [text.trim()] : [])).join("\n\n") || undefined;
}

/** Names of chats, topics and users are written by others: one quoted line, however long and whatever is in it. */
export function quoteName(name: string): string {
  return JSON.stringify(truncateCodePoints(name.replace(/[\p{Cc}\u2028\u2029]/gu, " "), MOST_NAME_CHARS));
}
