// Requests to Discord's HTTP API: within its rate limits, each at most once, and every failure with what it means for what was asked.
import { randomUUID } from "node:crypto";
import { type Agent, STATUS_CODES } from "node:http";
import { VERSION } from "../../../../home/paths.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { asRecord, asText } from "../../../../kit/json.ts";
import type { AdapterHost } from "../../contract.ts";
import { CallFailedError, callWeb, keptConnections, mediaTypeOf } from "../../web-calls.ts";
import { LimitedError, RateLimits } from "./limits.ts";
import type { FilePart } from "./shapes.ts";

/** What became of a request. */
export type Failure =
  | { readonly type: "limited"; readonly seconds: number; readonly message: string }
  /** Discord said no, in its own words and with its own code. */
  | { readonly type: "answered"; readonly status: number; readonly code: number; readonly message: string }
  /** Nothing left this machine. */
  | { readonly type: "not_sent"; readonly message: string }
  /** It left, and no answer came. */
  | { readonly type: "no_answer"; readonly message: string };

export class RequestError extends Error {
  override name = "RequestError";
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

interface RestRequest {
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: object;
  readonly files?: readonly FilePart[] | undefined;
  /** Answers to interactions have their right in the path. */
  readonly withoutToken?: boolean;
  readonly signal: AbortSignal;
}

/** The limit is in the signal. */
const SECONDS = 3600;
const MOST_WAIT_MS = 10_000;
const AGENT = `DiscordBot (https://www.npmjs.com/package/hermes-ts, ${VERSION})`;

export class Rest {
  readonly #token: string;
  readonly #address: string;
  readonly #limits: RateLimits;
  readonly #agent: Agent;
  /** Discord bars machines that go on with a token which was refused. */
  #isRefused = false;

  constructor(clock: AdapterHost["clock"], { token, address }: { readonly token: string; readonly address: string }) {
    this.#token = token;
    this.#address = `${address}/v10`;
    this.#limits = new RateLimits(clock);
    this.#agent = keptConnections(address);
  }

  /** Rejects with `RequestError`. Without an answer in words it resolves to undefined, which `T` has to allow then. */
  async request<T>(method: Method, path: string, request: RestRequest): Promise<T> {
    const { withoutToken = false, signal } = request;
    if (this.#isRefused && !withoutToken) throw new RequestError(REFUSED);
    const { status, json, text } = await this.#send(method, path, request).catch((error: unknown) => {
      throw new RequestError(failureFrom(error, signal));
    });
    if (status >= 200 && status < 300) return (text === "" ? undefined : json) as T; // as Discord documents the route
    if (status === 401 && !withoutToken) this.#isRefused = true;
    throw new RequestError(refusalOf(status, json));
  }

  #send(method: Method, path: string, { query = {}, body, files, withoutToken, signal }: RestRequest) {
    const { route, about } = routeOf(method, path);
    const url = new URL(this.#address + path);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    const headers = { "user-agent": AGENT, ...(withoutToken ? {} : { authorization: `Bot ${this.#token}` }) };
    const content = files === undefined || files.length === 0 ? contentOf(body) : formOf(body ?? {}, files);
    return this.#limits.run({
      ...{ route, about, signal, isUncounted: withoutToken === true },
      mayWait: (ms) => ms <= MOST_WAIT_MS && !isRepeatedByOthers(route),
      send: () => {
        const call = { method, headers: { ...headers, ...content.headers }, body: content.body };
        return callWeb(url, { ...call, signal, agent: this.#agent, seconds: SECONDS });
      },
    });
  }
}

const REFUSED: Failure = { type: "answered", status: 401, code: 0, message: "Discord refused the token" };

/** The outbox repeats messages, and who types is told again anyway. */
const isRepeatedByOthers = (route: string) =>
  /^(?:POST \/channels\/:id\/typing|POST \/channels\/:id\/messages|PATCH \/channels\/:id\/messages\/:id)$/.test(route);

/** A path without what only tells one thing of a kind from another, and the thing that has limits of its own. */
export function routeOf(method: string, path: string): { readonly route: string; readonly about: string } {
  const [, about = ""] = /^\/(?:channels|guilds|webhooks|interactions)\/(\d+)/.exec(path) ?? [];
  const plain = path
    .replace(/^(\/(?:webhooks|interactions)\/\d+)\/[^/]+/, "$1/:token")
    .replace(/\/reactions\/[^/]+/, "/reactions/:emoji")
    .replace(/\/\d+(?=\/|$)/g, "/:id");
  return { route: `${method} ${plain}`, about };
}

interface Content {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Blob | undefined;
}

function contentOf(body: object | undefined): Content {
  if (body === undefined) return { headers: {}, body: undefined };
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** By hand: with the first form of its own Node loads a second HTTP client. */
function formOf(body: object, files: readonly FilePart[]): Content {
  const boundary = `----${randomUUID()}`;
  const head = (fields: string) => `--${boundary}\r\nContent-Disposition: form-data; ${fields}\r\n`;
  const parts = files.flatMap(({ name, data }, at) => [
    head(`name="files[${at}]"; filename="${name.replaceAll('"', "%22")}"`),
    `Content-Type: ${mediaTypeOf(name)}\r\n\r\n`,
    data,
    "\r\n",
  ]);
  const json = [head('name="payload_json"'), `Content-Type: application/json\r\n\r\n${JSON.stringify(body)}\r\n`];
  const bytes = Buffer.concat([...parts, ...json, `--${boundary}--\r\n`].map((part) => Buffer.from(part)));
  return { headers: { "content-type": `multipart/form-data; boundary=${boundary}` }, body: new Blob([bytes]) };
}

function failureFrom(error: unknown, signal: AbortSignal): Failure {
  if (error instanceof LimitedError) return { type: "limited", seconds: error.seconds, message: error.message };
  const isUnsent = !(error instanceof CallFailedError) || error.kind === "unreachable";
  if (signal.aborted) return { type: isUnsent ? "not_sent" : "no_answer", message: "Discord did not answer in time" };
  const message = messageOf(error);
  return isUnsent
    ? { type: "not_sent", message: `Discord is not reached: ${message}` }
    : { type: "no_answer", message: `no answer from Discord: ${message}` };
}

function refusalOf(status: number, json: unknown): Failure {
  const { code: said, message, errors } = asRecord(json);
  const code = typeof said === "number" ? said : 0;
  const words = asText(message) || STATUS_CODES[status] || "no reason given";
  const details = [words, ...detailsIn(errors, "")].slice(0, 3).join("; ");
  return { type: "answered", status, code, message: `Discord: ${details} (${code || status})` };
}

/** Discord says of each field what is wrong with it. */
function detailsIn(errors: unknown, path: string): readonly string[] {
  return Object.entries(asRecord(errors)).flatMap(([key, value]) => {
    if (key !== "_errors") return detailsIn(value, path === "" ? key : `${path}.${key}`);
    const all = Array.isArray(value) ? value : [];
    return all.map((one) => `${path}: ${asText(asRecord(one).message)}`);
  });
}
