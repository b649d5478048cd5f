// One error of a model call -> what it means and what to do about it. A chain of tables; the first hit wins.

import { reasoningFloorSeconds } from "../liveness.ts";
import type { ModelError } from "../wire.ts";

// What servers write when something is wrong. Matched in lower-cased text.

const PHRASES = {
  safety:
    /flagged for possible cybersecurity risk|trusted access for cyber|violates (our|openai's) usage policies|your request was flagged by|prompt was flagged by our safety|responses cannot be generated due to safety|content_filter|responsibleaipolicyviolation|new_sensitive/,
  billing:
    /insufficient[ _](credits?|quota|balance|funds)|credit balance|credits? (have been )?exhausted|payment required|billing hard limit|exceeded your current quota|account is deactivated|plan does not include|out of extra usage|out of funds|not available on the free tier/,
  keyLimit: /key limit exceeded|spending limit/,
  usageLimit: /usage[ _]limit|quota|(?<!rate )(?<!rate_)limit (exceeded|reached)/,
  transient: /try again|retry|resets? at|resets? in|\bwait\b|window|periodic|requests remaining/,
  rate: /rate[ _-]?limit|too many requests|throttl|(requests|tokens) per minute|try again in|please retry after|resource_exhausted|resource has been exhausted|too many concurrent requests/,
  overloaded: /overloaded|(at|over) capacity/,
  overflow:
    /context (length|size|window)|maximum context|token limit|too many tokens|reduce the length|exceeds? the limit|prompt is too long|prompt exceeds max length|max_tokens|maximum number of tokens|max_model_len|prompt length|input is too long|maximum model length|truncating input|slot context|n_ctx_slot|max input token|input token|maximum allowed input length|context_length_exceeded|超过最大长度|上下文长度/,
  model:
    /is not a valid model|(invalid|unknown|unsupported) model|model[ _]not[ _]found|does not exist|no such model|no endpoints found that support tool use|model [^\n]{0,80}not found/,
  auth: /invalid (x-)?api[ _-]?key|incorrect api key|authentication|unauthorized|forbidden|invalid token|token (has )?(expired|been revoked)|token (is )?(expired|revoked)|access denied/,
  dataPolicy: /data policy|guardrail restrictions/,
  multimodalTool: /content must be a string|text is not set/,
  image: /image exceeds|image (is )?too large|image dimensions exceed|dimensions exceed/,
  encrypted: /invalid_encrypted_content/,
  parameter:
    /(unknown|unsupported|unrecognized) (request )?(parameter|argument)|unsupported_parameter|unknown_parameter|is not supported with this model|unsupported value/,
  emptyContent: /messages must have non-empty content|invalid_request_body/,
  emptyResponse: /provider returned an empty response|empty response|empty_stream/,
  validation:
    /(unknown|unsupported|unrecognized) (request )?(parameter|argument)|invalid_request_error|request validation|validation error/,
  payload: /payload too large|request entity too large|request too large|request_too_large/,
  timeout: /timed? ?out|deadline exceeded/,
  certificate:
    /certificate[ _]verify failed|unable to (get local issuer|verify the first) certificate|unable_to_get_issuer_cert|unable_to_verify_leaf_signature|self[- _]signed[ _]cert|certificate has expired|cert_has_expired|cert_altname_invalid/,
  tlsAlert: /(ssl|tls)[a-z0-9_/ ]{0,80}alert|bad record mac|decryption failed or bad record/,
  disconnect:
    /server disconnected|peer closed|reset by peer|unexpected eof|incomplete chunked read|econnreset|und_err_socket|epipe|socket hang up|other side closed|\bterminated\b|premature close|stream_cut|connection was lost/,
  transport:
    /apitimeouterror|apiconnectionerror|timeouterror|etimedout|econnrefused|enotfound|eai_again|ehostunreach|enetunreach|und_err_[a-z_]{0,40}timeout|fetch failed|connection error|stale_stream/,
} as const;

export type FailureReason =
  | "content_policy_blocked"
  | "thinking_signature"
  | "long_context_tier"
  | "oauth_long_context_beta_forbidden"
  | "llama_cpp_grammar_pattern"
  | "auth"
  | "billing"
  | "rate_limit"
  | "upstream_rate_limit"
  | "overloaded"
  | "provider_policy_blocked"
  | "model_not_found"
  | "timeout"
  | "payload_too_large"
  | "context_overflow"
  | "multimodal_tool_content_unsupported"
  | "image_too_large"
  | "invalid_encrypted_content"
  | "format_error"
  | "server_error"
  | "ssl_cert_verification"
  | "budget_exceeded"
  | "key_host_mismatch"
  | "unknown";

export interface ClassifiedError {
  readonly reason: FailureReason;
  readonly retryable: boolean;
  readonly shouldCompress: boolean;
  readonly shouldRotateCredential: boolean;
  readonly shouldFallback: boolean;
  readonly statusCode: number | undefined;
  /** At most 500 characters. */
  readonly message: string;
}

export interface ClassifyOptions {
  readonly provider?: string;
  readonly model?: string;
  readonly approxTokens?: number;
  /** Default 200,000. */
  readonly contextLength?: number;
  readonly numMessages?: number;
}

/** Flags: R retryable, C compress, K rotate key, F fallback. */
type Verdict = readonly [reason: FailureReason, flags: string];

const RATE: Verdict = ["rate_limit", "RKF"];
const BILLING: Verdict = ["billing", "KF"];
const OVERFLOW: Verdict = ["context_overflow", "RC"];
const FORMAT: Verdict = ["format_error", "F"];
const SERVER: Verdict = ["server_error", "R"];
const MODEL: Verdict = ["model_not_found", "F"];
const POLICY: Verdict = ["provider_policy_blocked", ""];
const OVERLOADED: Verdict = ["overloaded", "R"];
const TIMEOUT: Verdict = ["timeout", "R"];

export function classifyApiError(error: ApiFailure, options: ClassifyOptions = {}): ClassifiedError {
  const evidence = gatherEvidence(error);
  const [reason, flags] = ourOwn(error) ??
    beforeStatus(evidence) ??
    byStatus(evidence, options) ??
    byCode(evidence) ??
    byMessage(evidence) ??
    byConnection(evidence, options) ?? ["unknown", "R"];
  const certificate =
    "The server's TLS certificate could not be verified. If it is signed by a CA of your own, point NODE_EXTRA_CA_CERTS at that CA file. ";
  const message = `${reason === "ssl_cert_verification" ? certificate : ""}${evidence.message || "unknown error"}`;
  return {
    reason,
    retryable: flags.includes("R"),
    shouldCompress: flags.includes("C"),
    shouldRotateCredential: flags.includes("K"),
    shouldFallback: flags.includes("F"),
    statusCode: evidence.status,
    message: [...message].slice(0, 500).join(""),
  };
}

/** Refused on this side, nothing left: by the gate, where trying again or elsewhere would not be right, or for a key no header can hold. */
function ourOwn({ code }: ApiFailure): Verdict | null {
  if (code === "ERR_INVALID_CHAR") return ["auth", "KF"];
  if (code === "ANSWER_TOO_LONG") return FORMAT;
  return code === "budget_exceeded" || code === "key_host_mismatch" ? [code, ""] : null;
}

function beforeStatus({ status, text }: Evidence): Verdict | null {
  if (PHRASES.safety.test(text)) return ["content_policy_blocked", "F"];
  if (
    status === 400 &&
    text.includes("thinking") &&
    /signature|cannot be modified|must remain as they were/.test(text)
  ) {
    return ["thinking_signature", "R"];
  }
  if (status === 429 && text.includes("extra usage") && text.includes("long context"))
    return ["long_context_tier", "RC"];
  if (status === 400 && text.includes("long context beta") && text.includes("not yet available")) {
    return ["oauth_long_context_beta_forbidden", "R"];
  }
  const grammar = /error parsing grammar|json-schema-to-grammar|unable to generate parser[\s\S]{0,400}template/;
  if (status === 400 && grammar.test(text)) return ["llama_cpp_grammar_pattern", "R"];
  const grok =
    text.includes("no active grok subscription") ||
    (text.includes("out of available resources") && text.includes("grok"));
  return grok ? ["auth", "F"] : null;
}

function byStatus(evidence: Evidence, options: ClassifyOptions): Verdict | null {
  const { status, text } = evidence;
  if (status === undefined || status < 400) return null;
  switch (status) {
    case 400:
      return badRequest(evidence, options);
    case 401:
      return ["auth", "KF"];
    case 402:
      return usageLimit(text) ?? BILLING;
    case 403:
      return PHRASES.keyLimit.test(text) || PHRASES.billing.test(text) ? BILLING : ["auth", "F"];
    case 404:
      if (PHRASES.billing.test(text)) return BILLING;
      if (PHRASES.dataPolicy.test(text)) return POLICY;
      return PHRASES.model.test(text) ? MODEL : ["unknown", "R"];
    case 408:
      return TIMEOUT;
    case 413:
      return ["payload_too_large", "RC"];
    case 429:
      if (PHRASES.overloaded.test(text)) return OVERLOADED;
      return /provider returned error/i.test(evidence.message) ? ["upstream_rate_limit", "RF"] : RATE;
    case 500:
    case 502:
      if (PHRASES.validation.test(text)) return FORMAT;
      if (PHRASES.emptyResponse.test(text)) return SERVER;
      return PHRASES.overflow.test(text) ? OVERFLOW : SERVER;
    case 503:
    case 529:
      if (PHRASES.emptyResponse.test(text)) return SERVER;
      return PHRASES.overflow.test(text) ? OVERFLOW : OVERLOADED;
    default:
      return status < 500 ? FORMAT : SERVER;
  }
}

const BAD_REQUEST: readonly (readonly [RegExp, Verdict])[] = [
  [PHRASES.multimodalTool, ["multimodal_tool_content_unsupported", "R"]],
  [PHRASES.image, ["image_too_large", "R"]],
  [PHRASES.encrypted, ["invalid_encrypted_content", "R"]],
  [PHRASES.parameter, FORMAT],
  [PHRASES.emptyContent, FORMAT],
  [PHRASES.emptyResponse, SERVER],
  [PHRASES.overflow, OVERFLOW],
  [PHRASES.dataPolicy, POLICY],
  [PHRASES.model, MODEL],
  [PHRASES.rate, RATE],
  [PHRASES.billing, BILLING],
];

function badRequest({ text, message }: Evidence, options: ClassifyOptions): Verdict {
  const hit = BAD_REQUEST.find(([pattern]) => pattern.test(text));
  if (hit) return hit[1];
  // Some servers refuse what is too long with hardly a word.
  return message.length < 30 && isLarge(options, { share: 0.4, tokens: 80_000, messages: 80 }) ? OVERFLOW : FORMAT;
}

const CODES: Readonly<Record<string, Verdict>> = {
  resource_exhausted: ["rate_limit", "RK"],
  throttled: ["rate_limit", "RK"],
  rate_limit_exceeded: ["rate_limit", "RK"],
  insufficient_quota: BILLING,
  billing_not_active: BILLING,
  payment_required: BILLING,
  insufficient_credits: BILLING,
  balance_depleted: BILLING,
  model_not_found: MODEL,
  model_not_available: MODEL,
  invalid_model: MODEL,
  context_length_exceeded: OVERFLOW,
  max_tokens_exceeded: OVERFLOW,
};

function byCode({ code }: Evidence): Verdict | null {
  return CODES[code] ?? null;
}

function usageLimit(text: string): Verdict | null {
  if (!PHRASES.usageLimit.test(text)) return null;
  return PHRASES.transient.test(text) ? RATE : BILLING;
}

function byMessage({ text }: Evidence): Verdict | null {
  if (PHRASES.payload.test(text)) return ["payload_too_large", "RC"];
  if (PHRASES.multimodalTool.test(text)) return ["multimodal_tool_content_unsupported", "R"];
  if (PHRASES.image.test(text)) return ["image_too_large", "R"];
  const limit = usageLimit(text);
  if (limit) return limit;
  if (PHRASES.overloaded.test(text)) return OVERLOADED;
  if (PHRASES.billing.test(text)) return BILLING;
  if (PHRASES.rate.test(text)) return RATE;
  if (PHRASES.emptyResponse.test(text)) return SERVER;
  if (PHRASES.overflow.test(text)) return OVERFLOW;
  if (PHRASES.auth.test(text)) return ["auth", "KF"];
  if (PHRASES.dataPolicy.test(text)) return POLICY;
  if (PHRASES.model.test(text)) return MODEL;
  return PHRASES.timeout.test(text) && !PHRASES.certificate.test(text) ? TIMEOUT : null;
}

function byConnection({ text, status }: Evidence, options: ClassifyOptions): Verdict | null {
  if (PHRASES.certificate.test(text)) return ["ssl_cert_verification", ""];
  if (PHRASES.tlsAlert.test(text)) return TIMEOUT;
  if (status === undefined && PHRASES.disconnect.test(text)) {
    if (reasoningFloorSeconds(options.model ?? "") !== null) return TIMEOUT;
    return isLarge(options, { share: 0.6, tokens: 120_000, messages: 200 }) ? OVERFLOW : TIMEOUT;
  }
  return PHRASES.transport.test(text) ? TIMEOUT : null;
}

function isLarge(
  { approxTokens = 0, contextLength = 200_000, numMessages = 0 }: ClassifyOptions,
  limit: { readonly share: number; readonly tokens: number; readonly messages: number },
): boolean {
  if (approxTokens > contextLength * limit.share) return true;
  return contextLength <= 256_000 && (approxTokens > limit.tokens || numMessages > limit.messages);
}

export interface Failure {
  readonly error: ModelError;
  readonly classified: ClassifiedError;
  /** The same request may succeed later. A request that is too long will not. */
  readonly worthRetrying: boolean;
  /** Another model may do better. */
  readonly worthMoving: boolean;
}

// Everything an error says about itself, gathered once: status, code, text.

export interface ApiFailure {
  readonly message?: string | undefined;
  readonly status?: number | undefined;
  readonly code?: string | undefined;
  readonly name?: string | undefined;
  readonly body?: unknown;
  readonly cause?: unknown;
}

interface Evidence {
  readonly status: number | undefined;
  /** The provider's machine word, lower case. */
  readonly code: string;
  /** All the words, lower case. */
  readonly text: string;
  /** The outer message of the body (or of the error), as written. */
  readonly message: string;
}

type Fields = Readonly<Record<string, unknown>>;

function gatherEvidence(error: ApiFailure): Evidence {
  const chain = causes(error);
  const body = opened(error.body ?? chain.find((link) => link.body !== undefined)?.body);
  const inner = fields(body.error);
  const outer = text(inner.message) || text(body.message) || text(body.error) || error.message || "";
  const hidden = fields(parsed(outer));
  const metadata = fields(inner.metadata);
  const raw = text(metadata.raw);
  const words = [
    ...chain.flatMap((link) => [text(link.message), text(link.code), text(link.name)]),
    outer,
    raw,
    text(fields(fields(parsed(raw)).error).message),
  ];
  const code =
    codeIn(inner) ||
    codeIn(body) ||
    codeIn(fields(hidden.error)) ||
    codeIn(hidden) ||
    text(body.error_code) ||
    text(body.errorCode);
  return {
    status: statusOf(chain),
    code: code.toLowerCase(),
    text: [...words, code].join("\n").toLowerCase(),
    message: text(fields(hidden.error).message) || text(hidden.message) || outer,
  };
}

function causes(error: ApiFailure): readonly Fields[] {
  const links: Fields[] = [];
  for (let link: unknown = error; links.length < 5 && typeof link === "object" && link !== null; ) {
    const current = link as Fields & { cause?: unknown }; // an object, checked by the loop
    // `message` and `code` of real Error objects are not enumerable: read them by name.
    links.push({
      message: current.message,
      code: current.code,
      name: current.name,
      status: current.status ?? current.statusCode,
      body: current.body,
    });
    link = current.cause;
  }
  return links;
}

function statusOf(chain: readonly Fields[]): number | undefined {
  return chain.map((link) => link.status).find((status) => typeof status === "number");
}

function codeIn(record: Fields): string {
  return text(record.code) || text(record.type);
}

function opened(body: unknown): Fields {
  return fields(typeof body === "string" ? (parsed(body) ?? { message: body }) : body);
}

function parsed(value: string): unknown {
  if (!value.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(value);
  } catch {
    return undefined; // plain words that happen to begin with a brace
  }
}

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}; // checked just before
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
