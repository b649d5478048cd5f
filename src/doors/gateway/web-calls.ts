// Calls of adapters that speak HTTP themselves, and the addresses they are pointed to. What a failure tells about the request is kept: one
// that never left may be repeated, one whose answer is missing may not.
import type { Agent, IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { Readable } from "node:stream";
import { joinSignals } from "../../kit/clock.ts";
import { failureWords, headersOf, httpFor, MAX_ANSWER_BYTES, readBody } from "../../kit/http.ts";
import { type Json, parseJson } from "../../kit/json.ts";

/** By their names in lower case. Not `Headers`: with the first one Node loads a second HTTP client, 14 MB that no call here needs. */
export type AnswerHeaders = ReadonlyMap<string, string>;

export interface WebReply {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly text: string;
  /** The body as JSON; undefined when it is none. */
  readonly json: unknown;
}

interface WebCall {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  /** A plain object goes as JSON. */
  readonly body?: Json | FormData | Blob | string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly seconds?: number;
  /** Of `keptConnections`; absent: a connection of its own. */
  readonly agent?: Agent;
}

/** No answer. `unreachable`: nothing arrived there; `unknown`: perhaps it did. Names the host, never the whole address. */
export class CallFailedError extends Error {
  override name = "CallFailedError";
  readonly kind: "unreachable" | "unknown";
  constructor(kind: CallFailedError["kind"], message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}

const SECONDS = 30;

/** Asked without naming the class: naming it loads it. */
export const isForm = (body: unknown): body is FormData => Object.prototype.toString.call(body) === "[object FormData]";

/** Resolves with every answer, whatever its status; follows no redirect. Rejects with `CallFailedError`. */
export async function callWeb(
  url: string | URL,
  { method = "GET", headers, body, signal, seconds, agent }: WebCall = {},
) {
  const isJson = typeof body === "object" && !isForm(body) && !(body instanceof Blob);
  const { bytes, ...head } = await exchange(
    url,
    {
      method,
      headers: { accept: "application/json", ...(isJson ? { "content-type": "application/json" } : {}), ...headers },
      body: isJson ? JSON.stringify(body) : body,
      ...{ signal, agent },
    },
    seconds,
  );
  const text = new TextDecoder().decode(bytes);
  return { ...head, text, json: parseJson(text) } satisfies WebReply;
}

interface Exchange {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: RequestInit["body"];
  readonly signal?: AbortSignal | null | undefined;
  readonly agent?: Agent | undefined;
}

/** Shorter than servers keep an idle connection: a request on one that is just being closed has an unknown end. */
const IDLE_MS = 4000;

/** Connections to a server that are used again, for those who call it several times in a moment. Idle ones keep no process alive. */
export function keptConnections(address: string): Agent {
  return new (httpFor(new URL(address)).Agent)({ keepAlive: true, timeout: IDLE_MS });
}

/**
 * One request, and whether anything of it left. On a connection of its own that is certain; on one that is used again, a server that had
 * closed it looks like one that fell over while it answered. Read to the end while the limit still holds.
 */
export async function exchange(
  url: string | URL,
  { method, headers, body, signal, agent }: Exchange,
  seconds = SECONDS,
) {
  const target = new URL(url);
  const limit = AbortSignal.timeout(seconds * 1000);
  const stop = joinSignals(limit, ...(signal ? [signal] : []));
  let isConnected = false;
  try {
    stop.signal.throwIfAborted();
    const content = await contentOf(body);
    const request = httpFor(target).request(target, {
      ...{ method, agent: agent ?? false, signal: stop.signal },
      headers: { ...content.headers, ...headers },
    });
    request.once("socket", (socket) => {
      if (request.reusedSocket) isConnected = true;
      socket.once(target.protocol === "https:" ? "secureConnect" : "connect", () => {
        isConnected = true;
      });
    });
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once("error", reject).once("response", (found) => {
        request.off("error", reject).on("error", (error) => found.destroy(error));
        resolve(found);
      });
      if (content.stream) content.stream.on("error", (error) => request.destroy(error)).pipe(request);
      else request.end(content.bytes);
    });
    const bytes = Buffer.concat(await Array.fromAsync(readBody(incoming, MAX_ANSWER_BYTES)));
    return { status: incoming.statusCode ?? 0, headers: new Map(headersOf(incoming)) satisfies AnswerHeaders, bytes };
  } catch (error) {
    if (limit.aborted) {
      const kind = isConnected ? "unknown" : "unreachable";
      throw new CallFailedError(kind, `${target.host} did not answer within ${seconds} seconds`, error);
    }
    const kind = isConnected ? "unknown" : "unreachable";
    throw new CallFailedError(kind, `${target.host} ${failureWords(error)}`, error);
  } finally {
    stop.release();
  }
}

/** A file is read while it is sent; everything else is small. */
async function contentOf(body: Exchange["body"]) {
  if (body === undefined || body === null) return { headers: {}, bytes: undefined, stream: null };
  if (body instanceof Blob) {
    const type: Record<string, string> = body.type === "" ? {} : { "content-type": body.type };
    const headers = { ...type, "content-length": String(body.size) };
    return { headers, bytes: undefined, stream: Readable.from(body.stream()) };
  }
  if (typeof body === "string") return { headers: lengthOf(Buffer.from(body)), bytes: body, stream: null };
  const packed = new Response(body);
  const type = packed.headers.get("content-type");
  const bytes = Buffer.from(await packed.arrayBuffer());
  return { headers: { ...lengthOf(bytes), ...(type === null ? {} : { "content-type": type }) }, bytes, stream: null };
}

const lengthOf = (bytes: Buffer): Record<string, string> => ({ "content-length": String(bytes.byteLength) });

/** Seconds out of `Retry-After`, as a number or a date. */
export function retryAfter(headers: AnswerHeaders, now: number): number | undefined {
  const written = headers.get("retry-after");
  if (written === undefined) return undefined;
  const seconds = /^\d+(?:\.\d+)?$/.test(written) ? Number(written) : (Date.parse(written) - now) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

// Addresses out of the settings.

const NEAR = new BlockList();
for (const [net, bits] of [
  ["127.0.0.0", 8],
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["169.254.0.0", 16],
  ["100.64.0.0", 10],
] as const)
  NEAR.addSubnet(net, bits, "ipv4");
NEAR.addAddress("::1", "ipv6");
NEAR.addSubnet("fc00::", 7, "ipv6");
NEAR.addSubnet("fe80::", 10, "ipv6");

/** This machine or its own network, by address or by a name that only means something there. */
export function isNear(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  const family = isIP(bare);
  if (family !== 0) return NEAR.check(bare, family === 6 ? "ipv6" : "ipv4");
  return !bare.includes(".") || /\.(?:localhost|local|lan|home|internal|home\.arpa)$/.test(bare);
}

/** What is wrong with an address of the settings; null: nothing. Without TLS only what is near may be reached. */
export function addressProblem(value: unknown, setting: string, scheme: "http" | "ws" = "http"): string | null {
  const url = URL.parse(String(value));
  const wanted = `${setting} must be an address that begins with ${scheme}s://`;
  if (!url || (url.protocol !== `${scheme}:` && url.protocol !== `${scheme}s:`)) return wanted;
  if (url.username !== "" || url.password !== "") return `${setting} must not contain a user name or password`;
  if (url.protocol === `${scheme}:` && !isNear(url.hostname))
    return `${wanted}: ${scheme}:// is only for this machine and private networks`;
  return null;
}

/** Without the slash at its end. */
export const trimmedUrl = (value: unknown) => String(value ?? "").replace(/(?<!\/)\/+$/, "");

const TYPES: Readonly<Record<string, string>> = {
  ...{
    png: "image/png",
    jpg: "image/jpeg",
    jpeg: "image/jpeg",
    gif: "image/gif",
    webp: "image/webp",
    svg: "image/svg+xml",
  },
  ...{ mp3: "audio/mpeg", ogg: "audio/ogg", opus: "audio/ogg", wav: "audio/wav", m4a: "audio/mp4", flac: "audio/flac" },
  ...{ mp4: "video/mp4", webm: "video/webm", mov: "video/quicktime", pdf: "application/pdf", zip: "application/zip" },
  ...{ txt: "text/plain", md: "text/markdown", csv: "text/csv", json: "application/json", html: "text/html" },
};

/** What a file is that we send, by the end of its name. */
export function mediaTypeOf(name: string): string {
  return TYPES[name.toLowerCase().split(".").at(-1) ?? ""] ?? "application/octet-stream";
}
