// The API server in the gateway's process. No message comes in or goes out this way: programs call, and read their answer there.
import type { ApiServer } from "../../../api/server.ts";
import { readApiSettings } from "../../../api/settings.ts";
import { type AdapterHost, type PlatformAdapter, PlatformError, type SendResult } from "../../contract.ts";
import { readStatus } from "../../state-file.ts";

export const openApiPlatform = (host: AdapterHost): PlatformAdapter => new ApiPlatform(host);

class ApiPlatform implements PlatformAdapter {
  readonly account = "api_server";
  readonly #host: AdapterHost;
  #server: ApiServer | null = null;

  constructor(host: AdapterHost) {
    this.#host = host;
  }

  get listening(): string | undefined {
    return this.#server?.url;
  }

  async connect(): Promise<void> {
    const { program, option, clock } = this.#host;
    if (!program) throw new PlatformError("no_agent", "the API server runs in the gateway only", { retryable: false });
    const { home, store } = program;
    const { startApi } = await import("../../../api/server.ts"); // the router and all routes
    const status = () => readStatus(home, store, clock);
    this.#server = await startApi({ ...program, clock, status }, readApiSettings(option, home));
  }

  async disconnect(): Promise<void> {
    await this.#server?.close();
    this.#server = null;
  }

  async send(): Promise<SendResult> {
    return { failed: "refused", error: "nothing can be sent to the API server: programs call it" };
  }
}
