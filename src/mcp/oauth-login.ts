// `hermes mcp login`: PKCE with a callback on this machine, or the address pasted by hand where the browser is elsewhere.
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "../home/log.ts";
import { failureText, McpError, withoutSecrets } from "./errors.ts";
import { serverFetch } from "./http-fetch.ts";
import { loadSdk } from "./link.ts";
import { OAuthFiles, TokenProvider } from "./oauth-provider.ts";
import type { HttpEndpoint, ServerSettings } from "./settings.ts";

interface LoginPorts {
  readonly tokensDir: string;
  readonly cwd: string;
  readonly osHome: string;
  readonly log: Pick<Logger, "debug">;
  redact(text: string): string;
  /** Shows the address the user has to open. */
  show(url: string): void;
  /** One line typed by the user: the address the browser ended at, or the code in it. Null = there is no terminal. */
  paste(): Promise<string | null>;
  readonly signal: AbortSignal;
}

/** Signs in anew. What was stored before stays until the new tokens are there. */
export async function login(settings: ServerSettings, ports: LoginPorts): Promise<{ readonly tokensFile: string }> {
  const endpoint = oauthEndpoint(settings);
  const sdk = await loadSdk(ports.log);
  const files = new OAuthFiles(ports.tokensDir, settings.name);
  const state = randomBytes(16).toString("hex");
  const callback = await listen(endpoint.oauth.redirectPort, state);
  try {
    if (endpoint.oauth.clientId === null) await forgetOtherClient(files, callback.url);
    const provider = new TokenProvider({
      server: settings.name,
      settings: endpoint.oauth,
      files,
      redirectUrl: callback.url,
      state,
      show: (url) => ports.show(String(url)),
    });
    const fetchFn = await serverFetch(endpoint, { server: settings.name, cwd: ports.cwd, osHome: ports.osHome });
    const question = { serverUrl: endpoint.url, fetchFn, scope: endpoint.oauth.scope || undefined };
    const begun = await sdk.auth(provider, { ...question, forceReauthorization: true });
    if (begun !== "AUTHORIZED") {
      const answer = await Promise.race([callback.answer, pasted(ports, state), aborted(ports.signal)]);
      await sdk.auth(provider, { ...question, authorizationCode: answer.code, iss: answer.iss ?? undefined });
    }
    return { tokensFile: files.path("tokens") };
  } catch (error) {
    if (error instanceof McpError) throw error;
    const why = withoutSecrets(failureText(error), ports.redact);
    throw new McpError("needs_reauth", `Signing in to MCP server "${settings.name}" failed: ${why}`);
  } finally {
    callback.close();
  }
}

function oauthEndpoint({
  name,
  endpoint,
}: ServerSettings): HttpEndpoint & { readonly oauth: NonNullable<HttpEndpoint["oauth"]> } {
  if (endpoint.type === "stdio") {
    throw new McpError("needs_reauth", `MCP server "${name}" is a program on this machine; no sign-in needed.`);
  }
  const oauth = endpoint.oauth ?? {
    clientId: null,
    clientSecret: null,
    scope: null,
    redirectPort: 0,
    clientName: "Hermes Agent",
  };
  return { ...endpoint, oauth };
}

/** A client that was registered for another callback address would be refused: it is registered anew. */
async function forgetOtherClient(files: OAuthFiles, redirectUrl: string): Promise<void> {
  const client = await files.read("client");
  const known = Array.isArray(client?.redirect_uris) ? client.redirect_uris : [];
  if (client && !known.includes(redirectUrl)) await files.remove("client");
}

interface Answer {
  readonly code: string;
  readonly iss: string | null;
}

interface Callback {
  readonly url: string;
  readonly answer: Promise<Answer>;
  close(): void;
}

async function listen(port: number, state: string): Promise<Callback> {
  const { promise: answer, resolve, reject } = Promise.withResolvers<Answer>();
  answer.catch(() => undefined); // reported to who waits; without one it is lost on purpose
  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    if (url.pathname !== "/callback") {
      response.writeHead(404).end();
      return;
    }
    const outcome = readAnswer(url.searchParams, state);
    const text = outcome instanceof McpError ? outcome.message : "Signed in. You can close this window.";
    response.writeHead(outcome instanceof McpError ? 400 : 200, {
      "content-type": "text/plain; charset=utf-8",
      connection: "close",
    });
    response.end(`${text}\n`);
    if (outcome instanceof McpError) reject(outcome);
    else resolve(outcome);
  });
  await new Promise<void>((done, failed) => {
    server.once("error", (error) =>
      failed(
        new McpError(
          "needs_reauth",
          `Port ${port} of 127.0.0.1 cannot be used for the callback (${failureText(error)}). Set oauth.redirect_port to a free port, or 0.`,
        ),
      ),
    );
    server.listen(port, "127.0.0.1", done);
  });
  const { port: bound } = server.address() as AddressInfo; // it listens on TCP
  return {
    url: `http://127.0.0.1:${bound}/callback`,
    answer,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function readAnswer(params: URLSearchParams, state: string): Answer | McpError {
  const refused = params.get("error");
  if (params.get("state") !== state)
    return new McpError("needs_reauth", "The response belongs to another login; try again.");
  if (refused !== null) {
    return new McpError("needs_reauth", `The server refused: ${params.get("error_description") ?? refused}`);
  }
  const code = params.get("code");
  if (code === null) return new McpError("needs_reauth", "The response contains no code; try again.");
  return { code, iss: params.get("iss") };
}

/** Never settles when nothing is typed: the callback may still come. */
async function pasted(ports: LoginPorts, state: string): Promise<Answer> {
  const line = (await ports.paste())?.trim();
  if (!line) return new Promise(() => undefined);
  if (!/^https?:/.test(line)) return { code: line, iss: null };
  const answer = readAnswer(new URL(line).searchParams, state);
  if (answer instanceof McpError) throw answer;
  return answer;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(new McpError("needs_reauth", "Sign-in cancelled."));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
  });
}
