// Secrets that are named: NAME=value, JSON fields, form bodies.
import { isHarmless, isMarked, type Marks } from "./marks.ts";

/**
 * An unquoted value ends at what ends a word in a shell: the redactor also serves approval questions, where `TOKEN=x;rm …` must
 * not hide the second command. It ends at a backslash too, because in JSON the next line follows as `\n`.
 * Names that are no secret are passed over at once: matched, they would swallow a secret that stands in their value.
 */
const ASSIGNMENT =
  /(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))(?=[A-Z0-9_]{0,127}?(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)|(?:[A-Z0-9_]{0,126}_)?(?:KEYS?|AUTH)(?:_[A-Z0-9_]{0,126})?=)([A-Z_][A-Z0-9_]{1,127})=(?:(\\?["'])((?:(?!\2)(?:\\.|[^\n\\]))+)(\2)?|([^\s"'`\\;|&<>()]+))/g;

export function redactAssignments(text: string, marks: Marks): string {
  return text.replace(
    ASSIGNMENT,
    (whole, name: string, open?: string, quoted?: string, close?: string, bare?: string) => {
      const value = quoted ?? bare ?? "";
      if (isMarked(value) || isHarmless(value)) return whole;
      return `${name}=${open ?? ""}${marks.hidden}${close ?? ""}`;
    },
  );
}

const FIELD = /"([A-Za-z0-9_.-]{3,64})"(\s{0,20}:\s{0,20})"((?:[^"\\\n]|\\.)+)"/g;
const ESCAPED_FIELD = /\\"([A-Za-z0-9_.-]{3,64})\\"(\s{0,20}:\s{0,20})\\"([^"\\]+)\\"/g;
const SECRET_FIELD =
  /(?:^|[_.-])(?:(?:api|access|secret|private|auth|signing|encryption)[_-]?key(?:[_-]?(?:pem|data))?|apikey|token|secret|password|passwd|passphrase|credentials?|bearer)$/i;

export function redactFields(text: string, marks: Marks): string {
  const mask = (whole: string, name: string, between: string, value: string, quote: string) => {
    if (!isSecretField(name) || isMarked(value) || isHarmless(value)) return whole;
    return `${quote}${name}${quote}${between}${quote}${marks.token(value, "")}${quote}`;
  };
  return text
    .replace(FIELD, (whole, name: string, between: string, value: string) => mask(whole, name, between, value, '"'))
    .replace(ESCAPED_FIELD, (whole, name: string, between: string, value: string) =>
      mask(whole, name, between, value, '\\"'),
    );
}

/** The last word of the name says what the field holds: `accessToken` is one, `tokenCount` is not. */
function isSecretField(name: string): boolean {
  return SECRET_FIELD.test(name.replace(/([a-z0-9])([A-Z])/g, "$1_$2"));
}

const FORM_KEYS: ReadonlySet<string> = new Set([
  "access_token",
  "refresh_token",
  "id_token",
  "token",
  "api_key",
  "apikey",
  "client_secret",
  "password",
  "auth",
  "jwt",
  "secret",
  "private_key",
  "authorization",
  "key",
]);

const FORM_BODY = /^(?:[\w.[\]%-]{1,64}=[^&\s?]*(?:&(?!$)|$)){2,}$/;

/** A text that is a form body as a whole (`a=b&c=d`); the query of an ordinary URL is none. */
export function redactFormBody(text: string, marks: Marks): string {
  if (!FORM_BODY.test(text)) return text;
  return text.replace(/([^&=]+)=([^&]*)/g, (whole, name: string, value: string) => {
    const secret = FORM_KEYS.has(name.toLowerCase()) && value !== "" && !isMarked(value) && !isHarmless(value);
    return secret ? `${name}=${marks.hidden}` : whole;
  });
}
