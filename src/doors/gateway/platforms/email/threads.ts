// Which mails belong together. A thread of mails is one conversation: its id is a hash of the first Message-ID, and every mail of ours carries
// it in its own Message-ID, so that an answer is recognised even when its writer's program keeps nothing but `In-Reply-To`.
import { createHash } from "node:crypto";

const OURS = /^<hermes\.[0-9a-f]{32}(?:\.([0-9a-f]{20}))?@([^@<>\s]{1,255})>$/;
const IDS = /<[^<>\s]{1,900}>/g;
const THREAD = /^[0-9a-f]{20}$/;

const hash = (text: string, length: number) => createHash("sha256").update(text).digest("hex").slice(0, length);

/** The same for every repeat of a part: servers that know it keep one copy. */
export function messageIdFor(key: string, address: string, threadId: string | undefined): string {
  const thread = threadId !== undefined && THREAD.test(threadId) ? `.${threadId}` : "";
  return `<hermes.${hash(`${address}\n${key}`, 32)}${thread}@${domainOf(address)}>`;
}

export const messageIdsIn = (header: string | undefined): readonly string[] => header?.match(IDS) ?? [];

export const isMessageId = (text: string | undefined): text is string =>
  text !== undefined && /^<[^<>\s]{1,900}>$/.test(text);

export const domainOf = (address: string) => address.slice(address.lastIndexOf("@") + 1).toLowerCase();

export interface MailPlace {
  /** Absent: an answer to a mail of ours that belongs to no thread, such as the result of a job. */
  readonly threadId?: string;
  /** It answers a mail of ours: what it quotes is known. */
  readonly answersUs: boolean;
}

/** `references`: all ids a mail names before its own, oldest first. */
export function placeOf(own: string, references: readonly string[], address: string): MailPlace {
  const ours = references.map((id) => OURS.exec(id)).filter((found) => found?.[2] === domainOf(address));
  const last = ours.at(-1);
  if (last) return { answersUs: true, ...(last[1] === undefined ? {} : { threadId: last[1] }) };
  return { answersUs: false, threadId: hash(references[0] ?? own, 20) };
}

/** One `Re: ` in front, whatever others have put there. */
export const replySubject = (subject: string) => `Re: ${withoutReplyMarks(subject)}`;

export const withoutReplyMarks = (subject: string) =>
  subject.replace(/^(?:(?:re|aw|sv|antw|odp|回复|答复)(?:\[\d{1,3}\])?\s{0,3}[:：]\s{0,3}){1,20}/i, "").trim();

const SUBJECT_LENGTH = 70;

/** For a mail that answers none: the first line that says something. */
export function subjectFrom(text: string): string {
  const lines = text.split("\n").map((line) => line.replace(/^[\s#>*-]+/, "").trim());
  const first = lines.find((line) => /[\p{L}\p{N}]/u.test(line)) ?? "Message";
  const words = first.replace(/[*_`]{1,3}/g, "").replace(/\s+/g, " ");
  return words.length <= SUBJECT_LENGTH ? words : `${[...words].slice(0, SUBJECT_LENGTH - 1).join("")}…`;
}
