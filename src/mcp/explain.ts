// From what the SDK, the system or a server said to a sentence for the user.
import { McpError, type McpFailure, messageOf, shortly, withoutSecrets } from "./errors.ts";
import { needsLogin } from "./oauth-provider.ts";
import type { ServerSettings } from "./settings.ts";

export interface FailureFacts {
  readonly settings: ServerSettings;
  redact(text: string): string;
  /** How its process ended, if it has one and it did. */
  readonly ending: string | null;
}

const UNTRUSTED = /^(?:CERT_|ERR_TLS_CERT|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(?:VERIFY|GET_ISSUER))/;
const LOGS = "What it wrote is in logs/mcp-stderr.log.";

export function explainFailure(error: unknown, { settings, redact, ending }: FailureFacts): McpError {
  const known = causesOf(error).find((cause) => cause instanceof McpError);
  if (known) return known;
  const { name, place } = settings;
  const clean = (text: string) => shortly(withoutSecrets(text, redact));
  const failure = (kind: McpFailure, text: string) => new McpError(kind, `MCP server "${name}": ${text}`);
  const code = codeOf(error);
  const status = statusOf(error);

  if (place.type === "stdio") {
    if (code === "ENOENT") {
      return failure(
        "missing",
        `the command "${place.command}" was not found. Install it, or correct mcp_servers.${name}.command in config.yaml.`,
      );
    }
    if (code === "EACCES") return failure("missing", `"${place.command}" may not be executed. Check its permissions.`);
    if (ending !== null) return failure("unreachable", `${clean(ending)}. ${LOGS}`);
  }
  if (status === 401 || nameOf(error) === "UnauthorizedError") {
    if (place.type !== "stdio" && place.oauth) return needsLogin(name);
    return failure(
      "needs_reauth",
      `it refused the credentials (401). Check mcp_servers.${name}.headers, or set mcp_servers.${name}.auth to oauth and run: hermes mcp login ${name}`,
    );
  }
  if (status === 403)
    return failure("needs_reauth", `it forbids the access (403). Check what your credentials may do.`);
  if (code !== null && UNTRUSTED.test(code))
    return failure(
      "unreachable",
      `its certificate is not accepted (${clean(messageOf(deepest(error)))}). Put the file of the authority that signed it into mcp_servers.${name}.ssl_verify.`,
    );
  if (isExpired(error, status)) return failure("expired", "it does not know our session any more.");
  if (code === "REQUEST_TIMEOUT")
    return failure(
      "unreachable",
      `it did not answer within ${settings.timeoutMs / 1000} s (mcp_servers.${name}.timeout).`,
    );
  if (nameOf(error) === "ProtocolError" || isAnswer(error)) return failure("refused", clean(messageOf(error)));
  const where = place.type === "stdio" ? LOGS : `Check mcp_servers.${name}.url and whether the server runs.`;
  return failure("unreachable", `${clean(messageOf(error))}. ${where}`);
}

export function didNotConnect({ name, connectMs }: ServerSettings): McpError {
  return new McpError(
    "unreachable",
    `MCP server "${name}": no answer within ${connectMs / 1000} s of starting. Raise mcp_servers.${name}.connect_timeout, or see what is wrong with: hermes mcp test ${name}`,
  );
}

function isExpired(error: unknown, status: number | null): boolean {
  if (status === 404) return true;
  return /session (?:not found|expired|terminated|is invalid)|(?:invalid|unknown|expired|no valid) session/i.test(
    messageOf(error),
  );
}

/** The server answered, with an error of the protocol. */
export function isAnswer(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "code" in error && typeof error.code === "number" && error.code < 0
  );
}

function statusOf(error: unknown): number | null {
  for (const one of causesOf(error)) {
    if ("status" in one && typeof one.status === "number") return one.status;
    // The SSE transport puts the status where others put their code.
    if ("code" in one && typeof one.code === "number" && one.code >= 400 && one.code < 600) return one.code;
  }
  return null;
}

function codeOf(error: unknown): string | null {
  for (const one of causesOf(error)) if ("code" in one && typeof one.code === "string") return one.code;
  return null;
}

function deepest(error: unknown): unknown {
  return causesOf(error).at(-1) ?? error;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.constructor.name : "";
}

function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let one = error; one instanceof Error && chain.length < 5; one = one.cause) chain.push(one);
  return chain;
}
