// Who we are towards an authorization server, and where its tokens are kept.

import { chmod, mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { OAuthClientMetadata, OAuthClientProvider, OAuthDiscoveryState } from "@modelcontextprotocol/client";
import { writeFileAtomic } from "../kit/files.ts";
import { isRecord } from "../kit/json.ts";
import { McpError } from "./errors.ts";
import type { Fetch } from "./http-fetch.ts";
import type { OAuthSettings } from "./settings.ts";

interface ProviderOptions {
  readonly server: string;
  readonly settings: OAuthSettings;
  readonly files: OAuthFiles;
  /** Where the browser comes back to. */
  readonly redirectUrl: string;
  readonly state?: string;
  /** Shows the address to the user; absent = no user is there, signing in has to wait. */
  readonly show?: (url: URL) => void | Promise<void>;
}

/** Used while tools run: refreshes tokens by itself, and says so when only the user can help. */
export class TokenProvider implements OAuthClientProvider {
  readonly #options: ProviderOptions;
  #verifier = "";

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  get redirectUrl(): string {
    return this.#options.redirectUrl;
  }

  get clientMetadata(): OAuthClientMetadata {
    const { settings } = this.#options;
    return {
      client_name: settings.clientName,
      redirect_uris: [this.#options.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: settings.clientSecret === null ? "none" : "client_secret_post",
      scope: settings.scope ?? undefined,
    };
  }

  state(): string {
    return this.#options.state ?? "";
  }

  async clientInformation() {
    const { settings, files } = this.#options;
    if (settings.clientId !== null) {
      return { client_id: settings.clientId, client_secret: settings.clientSecret ?? undefined };
    }
    const stored = await files.read("client");
    return typeof stored?.client_id === "string" ? { ...stored, client_id: stored.client_id } : undefined;
  }

  async saveClientInformation(client: object): Promise<void> {
    await this.#options.files.write("client", client);
  }

  async tokens() {
    const stored = await this.#options.files.read("tokens");
    if (typeof stored?.access_token !== "string") return undefined;
    const type = typeof stored.token_type === "string" ? stored.token_type : "Bearer";
    return { ...stored, access_token: stored.access_token, token_type: type };
  }

  async saveTokens(tokens: object): Promise<void> {
    // A refresh may leave the refresh token out; the one we have stays valid then.
    const before = await this.#options.files.read("tokens");
    const kept = typeof before?.refresh_token === "string" ? { refresh_token: before.refresh_token } : {};
    await this.#options.files.write("tokens", { ...kept, ...tokens });
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    const { show, server } = this.#options;
    if (!show) throw needsLogin(server);
    await show(url);
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  async saveDiscoveryState(state: OAuthDiscoveryState): Promise<void> {
    await this.#options.files.write("meta", state);
  }

  async discoveryState(): Promise<OAuthDiscoveryState | undefined> {
    const stored = await this.#options.files.read("meta");
    return typeof stored?.authorizationServerUrl === "string" ? (stored as unknown as OAuthDiscoveryState) : undefined; // written by us above
  }

  /** Only what the authority itself called invalid goes; a failed connection never comes here. */
  async invalidateCredentials(scope: "all" | "client" | "tokens" | "verifier" | "discovery"): Promise<void> {
    const { files } = this.#options;
    if (scope === "all" || scope === "tokens") await files.remove("tokens");
    if (scope === "all" || scope === "client") await files.remove("client");
    if (scope === "all" || scope === "discovery") await files.remove("meta");
    if (scope === "all" || scope === "verifier") this.#verifier = "";
  }
}

/** The newest refresh of this process, by the file of its tokens. */
const refreshes = new Map<string, Promise<unknown>>();

/**
 * One refresh at a time. An authority takes a refresh token once: whoever came second with the same one would be signed out. Who finds that
 * somebody was quicker, here or in another process, gets their tokens.
 */
export function refreshingOnce(fetch: Fetch, files: OAuthFiles): Fetch {
  return async (url, init) => {
    const { body } = init ?? {};
    if (!(body instanceof URLSearchParams) || body.get("grant_type") !== "refresh_token") return fetch(url, init);
    const refresh = async () => {
      const stored = await files.read("tokens");
      const isNewer = typeof stored?.refresh_token === "string" && stored.refresh_token !== body.get("refresh_token");
      if (isNewer) return Response.json(stored);
      const response = await fetch(url, init);
      const tokens: unknown = response.ok ? await response.clone().json() : null;
      if (isRecord(tokens)) await files.write("tokens", { ...stored, ...tokens });
      return response;
    };
    const path = files.path("tokens");
    const turn = (refreshes.get(path) ?? Promise.resolve()).then(refresh, refresh);
    refreshes.set(path, turn);
    return turn;
  };
}

export function needsLogin(server: string): McpError {
  return new McpError("needs_reauth", `MCP server "${server}" requires sign-in. Run: hermes mcp login ${server}`);
}

// What signing in leaves behind, one server at a time: tokens, the registered client, what is known of the authority. All 0600.

type OAuthFile = "tokens" | "client" | "meta";

const SUFFIX: Readonly<Record<OAuthFile, string>> = { tokens: ".json", client: ".client.json", meta: ".meta.json" };

export class OAuthFiles {
  readonly #dir: string;
  readonly #stem: string;

  constructor(dir: string, server: string) {
    this.#dir = dir;
    // A server's name is the user's; it must not lead out of the folder.
    this.#stem = server.replace(/[^\w.-]/gu, "_").replace(/^\.+/, "_");
  }

  path(file: OAuthFile): string {
    return join(this.#dir, `${this.#stem}${SUFFIX[file]}`);
  }

  /** Null when there is none or it cannot be read as JSON. */
  async read(file: OAuthFile): Promise<Record<string, unknown> | null> {
    try {
      const value: unknown = JSON.parse(await readFile(this.path(file), "utf8"));
      return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
    } catch {
      return null; // not there, or half a file of another program: signing in writes a new one
    }
  }

  async write(file: OAuthFile, value: object): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await chmod(this.#dir, 0o700);
    await writeFileAtomic(this.path(file), `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  }

  async remove(file: OAuthFile): Promise<void> {
    await rm(this.path(file), { force: true });
  }
}
