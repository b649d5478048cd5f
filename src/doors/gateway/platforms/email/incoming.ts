// What a mail says, who wrote it, and whether anybody waits for an answer. Pure: no server is asked here.
import { plainMarkdown } from "../../../../tools/web/plain-text.ts";
import { domainOf, isMessageId, type MailPlace, messageIdsIn, placeOf, withoutReplyMarks } from "./threads.ts";

/** What the parser makes of a mail, as far as it is used here. */
export interface ParsedMail {
  readonly headers: readonly { readonly key: string; readonly value: string }[];
  readonly from?: { readonly name?: string | undefined } | undefined;
  readonly subject?: string | undefined;
  readonly text?: string | undefined;
  readonly html?: string | undefined;
}

interface Reading {
  /** Our own. */
  readonly address: string;
  /** The name under which our server writes `Authentication-Results`; null: senders are taken at their word. */
  readonly authServer: string | null;
}

export type ReadMail =
  | { readonly type: "skipped"; readonly reason: string }
  | ({
      readonly type: "mail";
      readonly from: string;
      readonly name?: string;
      readonly messageId: string | null;
      readonly references: readonly string[];
      readonly subject: string;
      readonly text: string;
      /** What others wrote: a forwarded mail, or what this one answers. */
      readonly context?: string;
    } & MailPlace);

const ROBOT = /^(?:no[-_.]?reply|do[-_.]?not[-_.]?reply|mailer-daemon|postmaster|bounces?)(?:[-+=_.]|@)/i;
const MAX_CONTEXT = 20_000;

export function readMail(mail: ParsedMail, { address, authServer }: Reading): ReadMail {
  const all = (name: string) => mail.headers.filter(({ key }) => key === name).map(({ value }) => value);
  const one = (name: string) => all(name)[0];
  const sender = senderOf(all("from"));
  if ("problem" in sender) return { type: "skipped", reason: sender.problem };
  const reason =
    robotReason(sender.address, address, mail.headers) ??
    (authServer !== null && !isProven(all("authentication-results"), authServer, domainOf(sender.address))
      ? `${authServer} does not confirm that it is from ${sender.address}`
      : null);
  if (reason !== null) return { type: "skipped", reason };

  const [messageId = null] = messageIdsIn(one("message-id"));
  const answered = messageIdsIn(one("in-reply-to"));
  const references = [...new Set([...messageIdsIn(one("references")), ...answered])].filter(isMessageId);
  const subject = (mail.subject ?? "").replace(/\s+/g, " ").trim();
  const place = placeOf(messageId ?? `${sender.address} ${one("date")} ${subject}`, references, address);
  const { own, quoted } = splitQuoted(bodyOf(mail));
  const name = (mail.from?.name ?? "").replace(/\s+/g, " ").trim();
  const isCommand = own.startsWith("/");
  // A subject is often the question itself; in an answer it is only the name of the thread.
  const heading = place.answersUs || isCommand || subject === "" ? "" : `Subject: ${subject}`;
  return {
    type: "mail",
    from: sender.address,
    ...(name === "" ? {} : { name }),
    messageId,
    references,
    subject: withoutReplyMarks(subject),
    text: [heading, own].filter((part) => part !== "").join("\n\n"),
    ...(quoted === "" || place.answersUs ? {} : { context: quoted.slice(0, MAX_CONTEXT) }),
    ...place,
  };
}

/** The one address a mail is from, in small letters, or why there is none: where programs could read two, nobody is believed. */
function senderOf(headers: readonly string[]): { readonly address: string } | { readonly problem: string } {
  const [header = ""] = headers;
  if (headers.length !== 1) return { problem: `it has ${headers.length} senders` };
  const bare = withoutQuotes(header).trim();
  const inBrackets = /^[^<>,;:]{0,500}<([^<>,;:\s"]{1,320})>$/.exec(bare);
  const address = (inBrackets?.[1] ?? bare).toLowerCase();
  if (!/^[^<>,;:\s"@()]{1,64}@[^<>,;:\s"@()]{1,255}$/.test(address))
    return { problem: "its sender is not one plain address" };
  return { address };
}

function robotReason(from: string, address: string, headers: ParsedMail["headers"]): string | null {
  if (from === address.toLowerCase()) return "it is our own";
  if (ROBOT.test(from)) return `nobody reads answers at ${from}`;
  for (const { key, value } of headers) {
    const said = value.trim().toLowerCase();
    if (key === "auto-submitted" && !/^no\b/.test(said)) return "a program sent it (Auto-Submitted)";
    if (key.startsWith("list-")) return "it is from a mailing list";
    if (key === "precedence" && /^(?:bulk|list|junk|auto_reply)\b/.test(said)) return `its precedence is ${said}`;
    if (key === "return-path" && said === "<>") return "it reports about another mail";
    if (key === "x-autoreply" || key === "x-autorespond") return "a program sent it (automatic reply)";
  }
  return null;
}

/**
 * Whether the receiving server has confirmed the domain of the sender (RFC 8601). Its line is the first with its name: it removes those that
 * others wrote in its name.
 */
function isProven(headers: readonly string[], server: string, domain: string): boolean {
  const [results] = headers
    .map((header) => withoutQuotes(header).split(";"))
    .filter(([name = ""]) => name.trim().split(/\s/)[0]?.toLowerCase() === server.toLowerCase());
  if (!results) return false;
  const methods = results.slice(1).map((result) => {
    const words = result.trim().toLowerCase().split(/\s+/);
    const [method = "", outcome = ""] = (words[0] ?? "").split("=");
    return { method, outcome, about: new Map(words.slice(1).map((word) => pairOf(word))) };
  });
  if (methods.some(({ method, outcome }) => method === "dmarc" && outcome === "fail")) return false;
  const covers = (signed: string | undefined) => {
    const by = domainOf((signed ?? "").replace(/[<>]/g, ""));
    return by !== "" && (by === domain || (by.includes(".") && domain.endsWith(`.${by}`)));
  };
  return methods.some(({ method, outcome, about }) => {
    if (outcome !== "pass") return false;
    if (method === "dmarc") return covers(about.get("header.from") ?? domain);
    if (method === "dkim") return covers(about.get("header.d") ?? about.get("header.i"));
    return method === "spf" && covers(about.get("smtp.mailfrom"));
  });
}

function pairOf(word: string): readonly [string, string] {
  const at = word.indexOf("=");
  return at === -1 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
}

/** A header without its comments, and with a single quote mark for each text in quotes: neither can pass for something else. */
function withoutQuotes(header: string): string {
  let result = "";
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < header.length; at++) {
    const char = header.charAt(at);
    if (char === "\\" && (quoted || depth > 0)) at++;
    else if (quoted) quoted = char !== '"';
    else if (char === "(") depth++;
    else if (char === ")" && depth > 0) depth--;
    else if (depth > 0) continue;
    else if (char === '"') {
      quoted = true;
      result += '"';
    } else result += char;
  }
  return result;
}

/** The plain text, or what a reader sees of the HTML. */
function bodyOf({ text = "", html = "" }: ParsedMail): string {
  const plain = text.replaceAll("\r\n", "\n").trim();
  if (plain !== "" || html === "") return plain;
  return plainMarkdown(html, NOWHERE).markdown;
}

/** Links of a mail that lead nowhere by themselves have nothing to lead from. */
const NOWHERE = new URL("about:blank");

const FORWARDED =
  /^(?:-{2,20}\s{0,3}(?:original message|forwarded message|ursprüngliche nachricht|weitergeleitete nachricht|message d'origine|原始邮件)\s{0,3}-{2,20}|begin forwarded message:|_{20,80})$/i;

/** What the writer wrote, and at the end of it what others did. Quotes between lines of the writer's own stay where they are. */
export function splitQuoted(text: string): { readonly own: string; readonly quoted: string } {
  const lines = text.split("\n");
  const mark = lines.findIndex((line, at) => FORWARDED.test(line.trim()) && isMark(line, lines[at + 1]));
  let start = mark === -1 ? lines.length : mark;
  const isQuote = (line: string | undefined) => /^\s{0,3}>/.test(line ?? "");
  let quotes = start;
  while (quotes > 0 && (isQuote(lines[quotes - 1]) || lines[quotes - 1]?.trim() === "")) quotes--;
  if (lines.slice(quotes, start).some(isQuote)) start = attributionAbove(lines, quotes);
  const join = (some: readonly string[]) => some.join("\n").trim();
  return { own: join(lines.slice(0, start)), quoted: join(lines.slice(start)) };
}

/** A line of underscores is one only above the head of a mail. */
const isMark = (line: string, next: string | undefined) => !line.startsWith("_") || /^\S{2,12}:\s/.test(next ?? "");

/** `On Tue, 3 March 2026, Ann <ann@example.com> wrote:`, perhaps in two lines; where it begins, or the quote itself. */
function attributionAbove(lines: readonly string[], quotes: number): number {
  let above = quotes;
  while (above > 0 && lines[above - 1]?.trim() === "") above--;
  if (!/[:：]$/.test(lines[above - 1]?.trim() ?? "")) return quotes;
  for (const count of [1, 2, 3]) {
    const said = lines.slice(Math.max(0, above - count), above).join(" ");
    if (said.length > 400) break;
    if (/@|\d{1,2}:\d{2}|\d{4}/.test(said) && startsSentence(lines[above - count])) return above - count;
  }
  return quotes;
}

const startsSentence = (line: string | undefined) => /^[\p{Lu}\p{Lo}\d"]/u.test(line?.trim() ?? "");
