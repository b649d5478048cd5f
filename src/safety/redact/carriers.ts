// Secrets known by what carries them: headers, URLs, bot tokens; and telephone numbers.
import { isHarmless, isMarked, type Marks } from "./marks.ts";

const AUTHORIZATION =
  /(\bauthorization\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?)(?:((?:bearer|basic|token|digest|apikey|negotiate)\s{1,8})([^\s"'\\,;]+)|([A-Za-z0-9._~+/=-]{16,}))/gi;
const BEARER = /(\bBearer\s{1,8})([A-Za-z0-9._~+/-]{20,}={0,2})/g;
const KEY_HEADER =
  /(\b(?:x-)?(?:goog-)?api-key\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?|\bx-auth-token\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?)([^\s"'\\,;]+)/gi;

export function redactHeaders(text: string, marks: Marks): string {
  const mask = (value: string) => (isMarked(value) || isHarmless(value) ? value : marks.token(value, ""));
  return text
    .replace(AUTHORIZATION, (_whole, head: string, scheme?: string, value?: string, bare?: string) =>
      scheme === undefined ? head + mask(bare ?? "") : head + scheme + mask(value ?? ""),
    )
    .replace(BEARER, (_whole, head: string, value: string) => head + mask(value))
    .replace(KEY_HEADER, (_whole, head: string, value: string) => head + mask(value));
}

// Begins at the colon: a pattern that began with the scheme would walk a long word once per letter.
const URL_PASSWORD = /(?<=[A-Za-z0-9]):\/\/([^\s/:@"'<>\\]{0,256}):([^\s/@"'<>\\]{1,1024})@/g;

export function redactUrlPasswords(text: string, marks: Marks): string {
  return text.replace(URL_PASSWORD, (whole, user: string, password: string) =>
    isMarked(password) ? whole : `://${user}:${marks.hidden}@`,
  );
}

const TELEGRAM = /(?<![A-Za-z0-9])(bot)?(\d{8,20}):[A-Za-z0-9_-]{30,}/g;

export function redactTelegramTokens(text: string, marks: Marks): string {
  return text.replace(TELEGRAM, (_whole, bot: string | undefined, id: string) => `${bot ?? ""}${id}:${marks.hidden}`);
}

const PHONE = /(?<![\w+])\+[1-9]\d{6,14}(?!\w)/g;

/** International numbers; what is left is enough to tell two of them apart. */
export function redactPhones(text: string): string {
  return text.replace(PHONE, (phone) =>
    phone.length <= 8 ? `${phone.slice(0, 2)}****${phone.slice(-2)}` : `${phone.slice(0, 4)}****${phone.slice(-4)}`,
  );
}
