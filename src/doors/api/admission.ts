// Who is let in. Looked at before anything else of a request, and for every route alike.
import type { IncomingMessage, ServerResponse } from "node:http";
import { headerOf, isLoopbackHost, sameSecret } from "../http.ts";
import { ApiError } from "./contract.ts";
import type { ApiSettings } from "./settings.ts";

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "permissions-policy": "camera=(), microphone=(), geolocation=()",
  "strict-transport-security": "max-age=31536000; includeSubDomains",
  "x-xss-protection": "0",
};

const CORS_HEADERS: Readonly<Record<string, string>> = {
  "access-control-allow-methods": "GET, POST, PATCH, PUT, DELETE, OPTIONS",
  "access-control-allow-headers":
    "Authorization, Content-Type, Idempotency-Key, X-Hermes-Session-Id, X-Hermes-Session-Key, Last-Event-ID",
  "access-control-expose-headers":
    "X-Hermes-Session-Id, X-Hermes-Session-Key, X-Hermes-Completed, X-Hermes-Partial, X-Hermes-Error",
  "access-control-max-age": "600",
};

/** Paths that need no key. */
const OPEN_PATHS = new Set(["/health", "/v1/health"]);

/**
 * Puts the headers that every answer carries, and decides.
 *
 * - `preflight`: a browser asks whether a page may; answered, and nothing more happens.
 * - Throws an `ApiError` for whoever is not let in.
 */
export function admit(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  path: string,
  settings: Pick<ApiSettings, "key" | "origins">,
): "call" | "preflight" {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) outgoing.setHeader(name, value);
  const { headers } = incoming;
  const { key } = settings;
  const origin = headerOf(headers, "origin");
  const allowed = origin === "" ? null : allowedOrigin(origin, settings);
  // A name that leads here by rebinding is not ours; with a key it would not help.
  if (key === null && !isLoopbackHost(hostName(headerOf(headers, "host"))))
    throw forbidden("without a key this server answers to localhost only; set API_SERVER_KEY", "host_not_allowed");
  if (origin !== "" && allowed === null)
    throw forbidden(
      `web pages of ${origin} may not use this server; to allow them, add it to API_SERVER_CORS_ORIGINS`,
      "origin_not_allowed",
    );
  if (key === null && allowed === null && /^(?:cross|same)-site$/.test(headerOf(headers, "sec-fetch-site")))
    throw forbidden("web pages may not use this server", "origin_not_allowed");
  if (allowed !== null) {
    outgoing.setHeader("access-control-allow-origin", allowed);
    outgoing.setHeader("vary", "Origin");
    for (const [name, value] of Object.entries(CORS_HEADERS)) outgoing.setHeader(name, value);
    if (incoming.method === "OPTIONS") return "preflight";
  }
  if (key === null || OPEN_PATHS.has(path)) return "call";
  const given = /^Bearer +(\S.*)$/i.exec(headerOf(headers, "authorization"))?.[1] ?? "";
  if (!sameSecret(given.trim(), key))
    throw new ApiError(401, "Invalid API key", {
      code: "invalid_api_key",
      headers: { "www-authenticate": "Bearer" },
    });
  return "call";
}

const forbidden = (message: string, code: string) => new ApiError(403, message, { code });

/** What the browser is told; null: not this one. Without a key every page could do everything, so `*` names nobody then. */
function allowedOrigin(origin: string, { key, origins }: Pick<ApiSettings, "key" | "origins">): string | null {
  if (origins.includes(origin)) return origin;
  return key !== null && origins.includes("*") ? origin : null;
}

const hostName = (host: string) => host.replace(/:\d*$/, "");

const LONGEST_ID = 256;

/** `X-Hermes-Session-Id` and `X-Hermes-Session-Key`: for those who have proved who they are. */
export function sessionHeader(
  { headers }: Pick<IncomingMessage, "headers">,
  name: "x-hermes-session-id" | "x-hermes-session-key",
  { key }: Pick<ApiSettings, "key">,
): string | undefined {
  const value = headerOf(headers, name);
  if (value === "") return undefined;
  if (key === null)
    throw forbidden(`${name} needs a key: set API_SERVER_KEY and send it as Bearer token`, "session_header_needs_key");
  return name === "x-hermes-session-id" ? sessionId(value, name) : withoutControls(value, name);
}

/** Names of sessions become parts of file names and of lines in logs. */
export function sessionId(value: string, param: string): string {
  if (/[/\\]/.test(value) || /^\.+$/.test(value))
    throw new ApiError(400, `${param} must not hold slashes`, { code: "invalid_session_id", param });
  return withoutControls(value, param);
}

function withoutControls(value: string, param: string): string {
  if (value.length <= LONGEST_ID && !/\p{Cc}/u.test(value)) return value;
  throw new ApiError(400, `${param} must have at most ${LONGEST_ID} characters and no control characters`, {
    code: "invalid_session_id",
    param,
  });
}
