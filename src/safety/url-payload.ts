// What an address may carry away: opening one sends its path and query to whoever owns the host.

/** So many characters are worth a question; a page number or a search word is shorter. */
const WORTH_ASKING = 64;
const LONG_SEGMENT = 64;
const ENCODED_SEGMENT = 32;
const LONG_PATH = 200;

/**
 * Whether the address carries so much text nobody has seen before that it may be a message to its host. `wasSeen` knows what the user and
 * earlier results said: an address that was copied from there tells nothing new.
 */
export function carriesAway(address: string, wasSeen: (text: string) => boolean): boolean {
  if (address.length < WORTH_ASKING || wasSeen(address)) return false;
  const url = URL.parse(address);
  if (!url) return false; // the tool refuses it
  const parts = [...hostParts(url), ...pathParts(url), ...queryParts(url)];
  const unseen = parts.filter((part) => !wasSeen(part) && !wasSeen(decoded(part)));
  return unseen.reduce((sum, part) => sum + part.length, 0) >= WORTH_ASKING;
}

function hostParts({ hostname, username, password }: URL): readonly string[] {
  const labels = hostname.split(".").slice(0, -2);
  const hidden = labels.join(".").length >= ENCODED_SEGMENT ? [labels.join(".")] : [];
  return [...hidden, ...[username, password].filter((part) => part !== "")];
}

/** Words with dashes are titles of pages; what is long or looks encoded is not. */
function pathParts({ pathname }: URL): readonly string[] {
  if (pathname.length >= LONG_PATH) return [pathname];
  return pathname.split("/").filter((segment) => {
    const plain = decoded(segment);
    if (segment.length >= ENCODED_SEGMENT && looksEncoded(segment)) return true;
    return segment.length >= LONG_SEGMENT && !isTitle(plain);
  });
}

const isTitle = (text: string) => /^[\w.~-]+$/.test(text) && text.split(/[-_.~]/).length > 3;

const queryParts = ({ search, searchParams }: URL): readonly string[] =>
  search.length < WORTH_ASKING ? [] : [...searchParams].flat();

function looksEncoded(text: string): boolean {
  if (/^[0-9a-f]+$/i.test(text)) return true;
  return /^[\w+/=~-]+$/.test(text) && /[0-9]/.test(text) && /[a-z]/.test(text) && /[A-Z]/.test(text);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text; // a stray percent sign
  }
}
