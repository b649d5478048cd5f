// Whether a platform accepts what it was set up with, asked before it is kept. One question over HTTP, which disturbs no bot that runs.
import { asRecord, type Json } from "../../kit/json.ts";
import { PlatformError } from "./contract.ts";
import { CallFailedError, callWeb } from "./web-calls.ts";

interface Question {
  readonly url: string;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Json | string;
}

interface Meaning {
  /** How the platform calls the bot; null: the answer is a refusal, whatever its status. */
  who(answer: Json): string | null;
  /** What the platform says to a refusal. */
  words?(answer: Json): unknown;
  /** What is wrong then, and which variable to set: "Telegram does not accept TELEGRAM_BOT_TOKEN". */
  readonly refusal: string;
  /** Besides 401 and 403. */
  readonly refusedBy?: readonly number[];
}

const SECONDS = 15;

/** Resolves to who the bot is. Rejects with a `PlatformError`; with a retryable one, when nobody could be asked. */
export async function askWho(question: Question, { who, words, refusal, refusedBy = [] }: Meaning): Promise<string> {
  const { url, ...call } = question;
  const reply = await callWeb(url, { ...call, seconds: SECONDS }).catch((error: unknown) => {
    if (!(error instanceof CallFailedError)) throw error;
    throw new PlatformError("unreachable", error.message, { retryable: true, cause: error });
  });
  const { status } = reply;
  const answer = asRecord(reply.json);
  const name = status === 200 ? who(answer) : null;
  if (name !== null) return name;
  if (status !== 200 && ![401, 403, ...refusedBy].includes(status))
    throw new PlatformError("unreachable", `${new URL(url).host} answered with status ${status}`, { retryable: true });
  const said = words?.(answer);
  const why = typeof said === "string" && said !== "" ? `: ${said}` : "";
  throw new PlatformError("auth", `${refusal}${why}`, { retryable: false });
}

/** A text of an answer; null when it is none. */
export const named = (value: unknown, before = ""): string | null =>
  typeof value === "string" && value !== "" ? before + value : null;
