// Links a terminal can open (OSC 8). Their address always stands beside them: words may say anything.
import { detectCapabilities } from "@earendil-works/pi-tui";
import { cut } from "../terminal-text.ts";

// Only links of this process pass the last look at what is drawn: a text cannot know the mark. It needs no more than not to be guessed.
const MARK = `h${Math.random().toString(36).slice(2, 12)}`;
const SHORT = 60;

/** Sequences of ours besides colours, for the last look at lines. */
export const OWN_LINKS = `\\u001b\\]8;id=${MARK}\\d{1,9};[!-~]{1,2000}\\u001b\\\\|\\u001b\\]8;;\\u001b\\\\`;

let able: boolean | null = null;

/** The terminal makes links; found out once, from what it says of itself. In tmux it is not known, so not assumed. */
function canLink(): boolean {
  able ??= detectCapabilities(() => false).hyperlinks;
  return able;
}

/** For tests, and for whoever knows better. */
export function assumeLinks(yes: boolean | null): void {
  able = yes;
}

/** The words as a link where the terminal has them; elsewhere as they are. */
function linked(words: string, address: string): string {
  if (!canLink() || !isWebAddress(address)) return words;
  return `\u001b]8;id=${MARK}${hash(address)};${address}\u001b\\${words}\u001b]8;;\u001b\\`;
}

/** Words and address of a link: `words (https://…)`, the address alone where both are the same. */
export function linkText(
  words: string,
  address: string,
  { plainWords, paint, dim }: { readonly plainWords: string; paint(text: string): string; dim(text: string): string },
): string {
  const same = [address, address.replace(/^mailto:/, ""), address.replace(/^https?:\/\//, "").replace(/\/$/, "")];
  if (same.includes(plainWords.trim())) return linked(words, address);
  // Where a click leads there, its beginning is enough to see where.
  const shown = canLink() && isWebAddress(address) ? cut(address, SHORT, "…") : address;
  return `${linked(words, address)}${paint(" ")}${linked(dim(`(${shown})`), address)}`;
}

const isWebAddress = (address: string) => /^(?:https?:\/\/|mailto:)[!-~]{1,1900}$/.test(address);

/** The same link is drawn the same way every time. */
function hash(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at++) sum = (sum * 31 + text.charCodeAt(at)) % 999_999_937;
  return sum;
}
