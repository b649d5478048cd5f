// The Web API with one token. Every method takes its arguments as a form, those that have parts as JSON in it, and answers in `ok` whether it
// worked. No repeats and no waiting in here: the outbox does both, and it is on disk.
import type { Agent } from "node:http";
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { AdapterHost } from "../../contract.ts";
import { callWeb, keptConnections, retryAfter } from "../../web-calls.ts";

type Argument = string | number | boolean | object | undefined;

const REQUEST_SECONDS = 30;
const API_URL = "https://slack.com/api/";
/** Where Slack does not say how long a rate limit lasts. */
const WAIT_SECONDS = 30;

/** An answer that says no: Slack's own with a name, that of a server in between with a status alone. */
export class SlackError extends Error {
  override name = "SlackError";
  /** Slack's name of what went wrong. */
  readonly code: string | null;
  readonly status: number;
  /** Seconds. */
  readonly retryAfter: number | undefined;
  constructor(status: number, code: string | null, wait?: number) {
    super(`Slack answered ${code ?? status}`);
    this.code = code;
    this.status = status;
    this.retryAfter = wait;
  }
}

export const apiUrl = (host: AdapterHost) => asText(host.option("api_url", "SLACK_API_URL")) || API_URL;

export class SlackClient {
  readonly #host: AdapterHost;
  readonly #token: string;
  readonly #base: string;
  readonly #agent: Agent;
  readonly #seconds: number;

  constructor(host: AdapterHost, token: string) {
    this.#host = host;
    this.#token = token;
    this.#base = apiUrl(host).replace(/\/?$/, "/");
    this.#agent = keptConnections(this.#base);
    const seconds = Number(host.option("request_timeout"));
    this.#seconds = seconds > 0 ? seconds : REQUEST_SECONDS;
  }

  /** Rejects with `SlackError` where there was an answer, with `CallFailedError` where there was none. */
  async call(method: string, args: Readonly<Record<string, Argument>> = {}, signal?: AbortSignal): Promise<Json> {
    const { status, headers, json } = await callWeb(`${this.#base}${method}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.#token}`,
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
      },
      ...{ body: formOf(args), agent: this.#agent, seconds: this.#seconds, signal },
    });
    if (status === 429) throw new SlackError(429, null, retryAfter(headers, this.#host.clock.now()) ?? WAIT_SECONDS);
    const answer = asRecord(json);
    if (status !== 200) throw new SlackError(status, nameIn(answer));
    if (answer.ok === true) return answer;
    throw new SlackError(200, nameIn(answer));
  }
}

function formOf(args: Readonly<Record<string, Argument>>): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(args))
    if (value !== undefined) form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  return form.toString();
}

/** A page of a proxy in place of an answer has none of Slack's names. */
function nameIn({ error }: Json): string | null {
  const name = asText(error);
  return /^[a-z_0-9]{2,60}$/.test(name) ? name : null;
}
