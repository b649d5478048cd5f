// Secrets that would leave with an address or a query. A page can ask the agent to "look up" a key; this is where that ends.
import { redactPhones } from "./redact/carriers.ts";

const SECRET_NAME =
  /(?:^|[_.-])(?:api[_-]?key|key|token|secret|password|passwd|pwd|credentials?|auth|authorization|sig|signature|sid|session[_-]?id|jwt)$/i;
// Words of OAuth that every link of a sign-in page carries, and that are worth nothing alone.
const HARMLESS = /^(?:code|state)$/i;

/** A key of this home, or something that has the form of one, stands in the text, plain or percent-encoded. */
export function holdsSecret(text: string, redact: (text: string) => string): boolean {
  // Word by word: a word for itself is masked for what it is, not for the name in front of it.
  return text.split(/[\s/?&=#;,"'<>()]+/).some((word) => isMasked(word, redact) || isMasked(decode(word), redact));
}

/** The query has a part whose name says that its value is a secret, e.g. of a signed address. */
export function hasSecretQuery(url: URL): boolean {
  return [...url.searchParams].some(
    ([name, value]) =>
      value !== "" && !HARMLESS.test(name) && SECRET_NAME.test(name.replace(/([a-z])([A-Z])/g, "$1_$2")),
  );
}

/** Phone numbers are masked in what is shown, but looking one up is what people do. */
const isMasked = (word: string, redact: (text: string) => string) => word !== "" && redact(word) !== redactPhones(word);

function decode(word: string): string {
  try {
    return decodeURIComponent(word.replaceAll("+", " "));
  } catch {
    return word; // a stray percent sign
  }
}
