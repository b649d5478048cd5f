// Where the answer to a delivery goes: the log, a comment on GitHub, or a target of another platform.
import { createHash } from "node:crypto";
import { asList, asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ChatTarget, SendResult } from "../../contract.ts";
import { type AnswerHeaders, CallFailedError, callWeb, retryAfter, type WebReply } from "../../web-calls.ts";
import { fill, valueAt } from "./payload.ts";
import { isLogged, type Route } from "./routes.ts";

const GITHUB = "github_comment";

/** A place of our own, a target string for others, or why there is none. */
export type Destination =
  | { readonly type: "log" }
  | { readonly type: "own"; readonly target: ChatTarget }
  | { readonly type: "other"; readonly target: string }
  | { readonly type: "none"; readonly reason: string };

export function destinationOf(route: Route, payload: Json, event: string): Destination {
  if (isLogged(route)) return { type: "log" };
  const extra = (key: string) => {
    const text = fill(route.deliverExtra[key] ?? "", payload, event).trim();
    return /\{[\w.]+\}/.test(text) ? "" : text;
  };
  if (route.deliver === GITHUB) return onGithub(extra, payload, event);
  const chat = extra("chat_id");
  if (route.deliver.includes(":")) return { type: "other", target: route.deliver };
  if (chat === "" && route.deliverExtra.chat_id !== undefined)
    return { type: "none", reason: `the payload has nothing for deliver_extra.chat_id of the route ${route.name}` };
  const thread = extra("thread_id");
  return { type: "other", target: [route.deliver, chat, chat && thread].filter((part) => part !== "").join(":") };
}

/** What is not said is taken from where GitHub itself puts it. */
function onGithub(extra: (key: string) => string, payload: Json, event: string): Destination {
  const found = (path: string) => String(valueAt(payload, path, event) ?? "");
  const repo = extra("repo") || found("repository.full_name");
  const number = extra("pr_number") || found("pull_request.number") || found("issue.number");
  const target = githubTarget(`${repo}#${number}`);
  if (target !== null) return { type: "own", target };
  return {
    type: "none",
    reason: "there is no repository or number for the comment: set deliver_extra.repo, .pr_number",
  };
}

const PLACE = /^([\w-][\w.-]{0,99}\/[\w-][\w.-]{0,99})#(\d{1,10})$/;

function githubTarget(place: string): ChatTarget | null {
  return PLACE.test(place) ? { chatId: `${GITHUB}:${place}` } : null;
}

/** `github_comment:owner/repository#7`. */
export function parseOwnTarget(text: string): ChatTarget | null {
  return text.startsWith(`${GITHUB}:`) ? githubTarget(text.slice(GITHUB.length + 1)) : null;
}

// Comments on GitHub.

export interface Github {
  readonly url: string;
  readonly token: string;
  readonly signal?: AbortSignal | undefined;
}

const commentsOf = ({ url }: Github, { chatId }: ChatTarget): string | null => {
  const [, repo, number] = PLACE.exec(chatId.slice(GITHUB.length + 1)) ?? [];
  return repo && number ? `${url}/repos/${repo}/issues/${number}/comments` : null;
};

/** Unseen in the comment; finds it again. */
const markOf = (key: string) => `<!-- hermes ${createHash("sha256").update(key).digest("hex").slice(0, 20)} -->`;

const headersFor = ({ token }: Github) => ({
  accept: "application/vnd.github+json",
  "x-github-api-version": "2022-11-28",
  "user-agent": "hermes-agent",
  ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
});

export async function comment(
  github: Github,
  target: ChatTarget,
  text: string,
  key: string,
  now: number,
): Promise<SendResult> {
  const url = commentsOf(github, target);
  if (url === null) return { failed: "refused", error: `${target.chatId} is not a place on GitHub` };
  try {
    const body = { body: `${text}\n\n${markOf(key)}` };
    const reply = await callWeb(url, { method: "POST", headers: headersFor(github), body, signal: github.signal });
    return reply.status === 201 ? { messageId: String(asRecord(reply.json).id ?? "") } : refusal(reply, github, now);
  } catch (error) {
    if (!(error instanceof CallFailedError)) throw error;
    return { failed: error.kind, error: error.message };
  }
}

function refusal(reply: WebReply, { token }: Github, now: number): SendResult {
  const { status, headers } = reply;
  const error = `GitHub answered ${status}: ${asText(asRecord(reply.json).message).slice(0, 200) || "no reason given"}`;
  const wait = retryAfter(headers, now) ?? untilReset(headers, now);
  if (status === 429 || (status === 403 && wait !== undefined))
    return { failed: "rate_limited", error, retryAfter: wait ?? 60 };
  if (status >= 500) return { failed: "unreachable", error };
  const hint = token === "" ? "; set GITHUB_TOKEN to a token that may write comments there" : "";
  return { failed: "refused", error: `${error}${[401, 403, 404].includes(status) ? hint : ""}` };
}

function untilReset(headers: AnswerHeaders, now: number): number | undefined {
  if (headers.get("x-ratelimit-remaining") !== "0") return undefined;
  return Math.max(1, Number(headers.get("x-ratelimit-reset") ?? 0) - now / 1000);
}

const PAGES = 10;

/** Whether the comment is there. The newest are on the last pages, so it is asked for what was written since. */
export async function findComment(
  github: Github,
  target: ChatTarget,
  key: string,
  since: number,
): Promise<string | null | undefined> {
  const url = commentsOf(github, target);
  if (url === null) return null;
  const from = new Date(since * 1000).toISOString();
  for (let page = 1; page <= PAGES; page++) {
    const query = new URLSearchParams({ since: from, per_page: "100", page: String(page) });
    const reply = await callWeb(`${url}?${query}`, { headers: headersFor(github), signal: github.signal });
    if (reply.status !== 200) return undefined;
    const comments = asList(reply.json).map(asRecord);
    const found = comments.find(({ body }) => asText(body).includes(markOf(key)));
    if (found) return String(found.id ?? "");
    if (comments.length < 100) return null;
  }
  return undefined;
}
