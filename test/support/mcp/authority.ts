// An authorization server with everything a public client needs: discovery, registration, PKCE, refresh with rotation.
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { bodyOf, json, type SmallServer } from "./http-server.ts";

export interface Authority {
  readonly issuer: string;
  /** Tokens that are valid now; a test takes them away. */
  readonly access: Set<string>;
  readonly refresh: Set<string>;
  readonly grants: string[];
  /** It answers 503 to every question for tokens. */
  down: boolean;
  /** Lets nobody in without a valid token. */
  protect(server: SmallServer): void;
  close(): Promise<void>;
}

export async function authority(): Promise<Authority> {
  const codes = new Map<string, { challenge: string; redirect: string; client: string }>();
  const clients = new Map<string, readonly string[]>();
  const server = createServer((request, response) => {
    serve(request, response).catch((error) => response.destroy(error));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const self: Authority = {
    issuer,
    access: new Set(),
    refresh: new Set(),
    grants: [],
    down: false,
    protect(small) {
      small.intercept = (request, response) => {
        if (request.url?.startsWith("/.well-known/oauth-protected-resource")) {
          json(response, 200, { resource: small.url, authorization_servers: [issuer] });
          return true;
        }
        const [, token = ""] = /^Bearer (.+)$/.exec(request.headers.authorization ?? "") ?? [];
        if (self.access.has(token)) return false;
        const metadata = `${small.origin}/.well-known/oauth-protected-resource/mcp`;
        response.setHeader("www-authenticate", `Bearer resource_metadata="${metadata}"`);
        response.writeHead(401).end();
        return true;
      };
    },
    close() {
      server.closeAllConnections();
      return new Promise((done) => void server.close(() => done()));
    },
  };
  return self;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", issuer);
    if (url.pathname === "/.well-known/oauth-authorization-server") {
      return json(response, 200, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        registration_endpoint: `${issuer}/register`,
        response_types_supported: ["code"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
      });
    }
    if (url.pathname === "/register") {
      const metadata = JSON.parse(await bodyOf(request));
      const client_id = randomUUID();
      clients.set(client_id, metadata.redirect_uris);
      return json(response, 201, { ...metadata, client_id });
    }
    if (url.pathname === "/authorize") return authorize(url.searchParams, response);
    if (url.pathname === "/token") return token(new URLSearchParams(await bodyOf(request)), response);
    response.writeHead(404).end();
  }

  function authorize(params: URLSearchParams, response: ServerResponse): void {
    const redirect = params.get("redirect_uri") ?? "";
    const client = params.get("client_id") ?? "";
    if (!clients.get(client)?.includes(redirect) || params.get("code_challenge_method") !== "S256") {
      return json(response, 400, { error: "invalid_request" });
    }
    const code = randomUUID();
    codes.set(code, { challenge: params.get("code_challenge") ?? "", redirect, client });
    const back = new URL(redirect);
    back.searchParams.set("code", code);
    back.searchParams.set("state", params.get("state") ?? "");
    response.writeHead(302, { location: String(back) }).end();
  }

  function token(params: URLSearchParams, response: ServerResponse): void {
    const kind = params.get("grant_type") ?? "";
    self.grants.push(kind);
    if (self.down) return void response.writeHead(503).end("down for a moment");
    if (kind === "authorization_code") {
      const grant = codes.get(params.get("code") ?? "");
      const proof = createHash("sha256")
        .update(params.get("code_verifier") ?? "")
        .digest("base64url");
      const fits = grant?.challenge === proof && grant.redirect === params.get("redirect_uri");
      if (!fits) return json(response, 400, { error: "invalid_grant" });
      codes.delete(params.get("code") ?? "");
      return issue(response);
    }
    if (!self.refresh.delete(params.get("refresh_token") ?? "")) return json(response, 400, { error: "invalid_grant" });
    issue(response);
  }

  function issue(response: ServerResponse): void {
    const access_token = `access-${randomUUID()}`;
    const refresh_token = `refresh-${randomUUID()}`;
    self.access.add(access_token);
    self.refresh.add(refresh_token);
    json(response, 200, { access_token, refresh_token, token_type: "Bearer", expires_in: 3600 });
  }
}
