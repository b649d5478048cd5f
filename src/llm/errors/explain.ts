// Each reason in one sentence and one action for a person. Server words pass only shortened, on one line, without keys.
import { hermesCommand } from "../../home/paths.ts";
import { hostOf, isLocalEndpoint } from "../providers/hosts.ts";
import { providerRow } from "../providers/table.ts";
import type { ModelError, Target } from "../wire.ts";
import type { ClassifiedError, FailureReason } from "./classify.ts";

interface Explanation {
  readonly sentence: string;
  readonly action: string;
  /** Both, ready to show. */
  readonly text: string;
}

type FailingTarget = Pick<Target, "provider" | "model" | "baseUrl"> & { readonly apiKey?: string };

interface Facts {
  readonly target: FailingTarget;
  readonly error: Pick<ModelError, "code" | "message">;
  /** The server's own words, safe to show; may be empty. */
  readonly said: string;
  readonly host: string;
  readonly key: string;
}

type Lines = (facts: Facts) => readonly [sentence: string, action: string];

const LINES: Readonly<Record<FailureReason, Lines>> = {
  auth: ({ error, host, key }) => [
    error.code === "ERR_INVALID_CHAR"
      ? `The API key for ${host} cannot be sent: it has a line break or letters that no key has.`
      : `${host} did not accept the API key.`,
    `Check ${key}, or enter another one with \`${hermesCommand("setup")}\` (on the screen: /setup).`,
  ],
  billing: ({ host }) => [
    `The account at ${host} has no credit left, or the plan does not cover this model.`,
    "Add credit there, or choose another model with /model.",
  ],
  rate_limit: ({ host }) => [
    `${host} is rate limiting your requests.`,
    "Wait a moment, or use another model: `-m MODEL`, or `/model` in the conversation.",
  ],
  upstream_rate_limit: ({ target }) => [
    `The server behind ${target.provider} is limiting requests for ${target.model}.`,
    "Wait a moment, or choose another model with /model.",
  ],
  overloaded: ({ host }) => [`${host} is overloaded.`, "Try again in a minute, or choose another model with /model."],
  model_not_found: ({ target, host }) => [
    `${host} does not know the model "${target.model}".`,
    `Choose one with \`${hermesCommand("model")}\` or /model.`,
  ],
  provider_policy_blocked: ({ target }) => [
    `The privacy settings of your ${target.provider} account exclude every server of ${target.model}.`,
    "Change the data policy in that account, or choose another model.",
  ],
  content_policy_blocked: ({ target }) => [
    `The provider's safety filter refused this request to ${target.model}.`,
    "Rephrase it, or choose another model with /model.",
  ],
  context_overflow: ({ target }) => [
    `The conversation no longer fits into the context window of ${target.model}.`,
    "Use /compress to shorten it, or /new to start over.",
  ],
  long_context_tier: ({ target }) => [
    `Your plan does not include the long window of ${target.model}.`,
    "Use /compress to shorten the conversation, or enable extra usage in the account.",
  ],
  payload_too_large: ({ host }) => [
    `${host} refused the request because it is too large.`,
    "Use /compress, or send fewer or smaller images.",
  ],
  image_too_large: () => [
    "An image in the conversation is too large for this model.",
    "Send a smaller image, or use /new.",
  ],
  multimodal_tool_content_unsupported: ({ target }) => [
    `${target.model} does not take images in tool results.`,
    "Choose a model that sees images with /model.",
  ],
  thinking_signature: ({ host }) => [
    `${host} did not accept earlier thinking of the model.`,
    "Send the message again; if it persists, use /new.",
  ],
  invalid_encrypted_content: ({ host }) => [
    `${host} did not accept stored reasoning of this conversation.`,
    "Send the message again; if it persists, use /new.",
  ],
  oauth_long_context_beta_forbidden: () => [
    "The long-context beta is not available to this login.",
    "Use /compress, or an API key instead of the login.",
  ],
  llama_cpp_grammar_pattern: () => [
    "The local server cannot turn a tool's schema into a grammar.",
    "Update llama.cpp, or leave out that toolset with `hermes tools`.",
  ],
  format_error: ({ host, said }) => [
    `${host} refused the request${quoted(said)}`,
    "Choose another model with /model; `hermes doctor` checks the configuration.",
  ],
  server_error: ({ host }) => [
    `${host} had an internal error.`,
    "Try again in a minute, or choose another model with /model.",
  ],
  ssl_cert_verification: ({ host }) => [
    `The TLS certificate of ${host} could not be verified.`,
    "If it is signed by a CA of your own, point NODE_EXTRA_CA_CERTS at that CA file.",
  ],
  timeout: connectionLines,
  // The gate's refusals are sentences already.
  budget_exceeded: ({ error }) => [error.message, ""],
  key_host_mismatch: ({ error }) => [error.message, ""],
  unknown: ({ host, said }) => [
    `The request to ${host} failed${quoted(said)}`,
    "Try again; logs/errors.log in the home (`hermes status` says where) has the details.",
  ],
};

/** `error` is the failure the reason was read from; it tells a refused connection from a slow answer. */
export function explainError(
  classified: ClassifiedError,
  target: FailingTarget,
  error: Pick<ModelError, "code" | "message"> = { message: classified.message },
): Explanation {
  const row = providerRow(target.provider);
  const facts: Facts = {
    target,
    error,
    said: presentable(classified.message, target.apiKey),
    host: hostOf(target.baseUrl) || target.provider,
    key: row?.keyEnv[0] ? `${row.keyEnv[0]} in .env` : "its key in .env (or `model.api_key` in config.yaml)",
  };
  const [sentence, action] = LINES[classified.reason](facts);
  return { sentence, action, text: `${sentence} ${action}`.trim() };
}

function connectionLines({ target, error, host }: Facts): readonly [string, string] {
  const words = `${error.code ?? ""} ${error.message}`;
  const local = isLocalEndpoint(target.baseUrl);
  if (/ECONNREFUSED/i.test(words)) {
    const start = local ? "Start the server" : "Check the address";
    return [
      `Nothing answers at ${target.baseUrl} (connection refused).`,
      `${start}, or correct \`model.base_url\` in config.yaml.`,
    ];
  }
  if (/ENOTFOUND|EAI_AGAIN/i.test(words)) {
    return [`The host ${host} could not be found.`, "Check the network and `model.base_url` in config.yaml."];
  }
  if (/EHOSTUNREACH|ENETUNREACH/i.test(words)) return [`${host} cannot be reached.`, "Check the network connection."];
  if (/reset|socket|terminated|closed|eof/i.test(words)) {
    return [`The connection to ${host} was lost.`, "Try again; check the network if it happens often."];
  }
  return [`${target.model} at ${host} did not answer in time.`, "Try again, or choose another model with /model."];
}

/** The server's words as the end of a sentence. */
const quoted = (said: string) => (said === "" ? "." : `: ${said}${/[.!?。！？]$/.test(said) ? "" : "."}`);

const KEY_SHAPES =
  /\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghu)[-_][\w*.-]{6,}|\b(?:key|token|bearer)[-_ :]{1,9}(?=\S{0,200}\d)[\w*.-]{6,}|\bAIza[\w-]{10,}|\beyJ[\w.-]{10,}|\b(?=[\w-]{0,200}\d)[\w-]{32,}\b/gi;

/** `HTTP 404: message`, for records and logs; safe to show. */
export function failureLine(classified: ClassifiedError, apiKey?: string): string {
  const said = presentable(classified.message, apiKey) || classified.reason;
  return classified.statusCode === undefined ? said : `HTTP ${classified.statusCode}: ${said}`;
}

function presentable(message: string, apiKey: string | undefined): string {
  const masked = (apiKey && apiKey.length >= 4 ? message.replaceAll(apiKey, "***") : message).replace(
    KEY_SHAPES,
    "***",
  );
  // A page of HTML or a JSON body is for the log.
  if (/^\s*[{[<]/.test(masked)) return "";
  const line = masked.replace(/\s+/g, " ").trim();
  return line.length > 200 ? `${line.slice(0, 197)}...` : line;
}
