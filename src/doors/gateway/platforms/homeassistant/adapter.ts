// Home Assistant: changes of states come over its WebSocket, answers go as notifications over its REST interface.
import { createHash } from "node:crypto";
import { messageOf } from "../../../../kit/errors.ts";
import { asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
import type { ChatSource } from "../../chat.ts";
import {
  type AdapterHost,
  type ChatTarget,
  type KnownChat,
  type PlatformAdapter,
  PlatformError,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { CallFailedError, callWeb, retryAfter, trimmedUrl } from "../../web-calls.ts";
import { type OpenSocket, openSocket } from "../../web-socket.ts";
import { Cooldown, readChange, watchesAnything } from "./events.ts";

export const openHomeAssistant = async (host: AdapterHost): Promise<PlatformAdapter> => new HomeAssistantAdapter(host);

const CHAT = "ha_events";
const COOLDOWN_SECONDS = 30;
const PING_SECONDS = 30;
const HANDSHAKE_SECONDS = 15;
const SUBSCRIPTION = 1;

class HomeAssistantAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly #url: string;
  readonly #over = new AbortController();
  readonly #cooldown = new Cooldown();
  account = "Home Assistant";
  #socket: OpenSocket | null = null;
  #nextId = SUBSCRIPTION;
  #answered = true;
  #isConnected = false;

  constructor(host: AdapterHost) {
    this.#host = host;
    this.#url = trimmedUrl(host.option("url", "HASS_URL"));
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#end(), { once: true });
    const { host } = new URL(this.#url);
    const ready = Promise.withResolvers<void>();
    const lost = (reason: string) => {
      const error = new PlatformError("closed", reason, { retryable: true });
      ready.reject(error);
      if (this.#isConnected && !this.#over.signal.aborted) this.#host.lost(error);
    };
    ready.promise.catch(() => undefined); // told to the caller below
    try {
      this.#socket = await openSocket(`${this.#url.replace(/^http/, "ws")}/api/websocket`, {
        log: this.#host.log,
        onFrame: (data) => this.#take(asRecord(parseJson(String(data))), ready),
        onLost: lost,
      });
      const limit = AbortSignal.timeout(HANDSHAKE_SECONDS * 1000);
      limit.addEventListener("abort", () =>
        ready.reject(new PlatformError("silent", `${host} did not answer`, { retryable: true })),
      );
      await ready.promise;
      this.#isConnected = true;
    } catch (error) {
      this.#end();
      if (error instanceof CallFailedError)
        throw new PlatformError("unreachable", error.message, { retryable: true, cause: error });
      throw error;
    }
    this.account = `Home Assistant at ${host}`;
    if (!watchesAnything(this.#host.option))
      this.#host.log.warn(
        "nothing is watched; set watch_domains, watch_entities or watch_all under platforms.homeassistant.extra",
      );
    void this.#stayAlive(lost);
  }

  async disconnect(): Promise<void> {
    this.#end();
  }

  #end(): void {
    this.#over.abort();
    this.#socket?.close();
  }

  async #take(frame: Json, ready: PromiseWithResolvers<void>): Promise<void> {
    switch (frame.type) {
      case "auth_required":
        return this.#write({ type: "auth", access_token: this.#token });
      case "auth_invalid":
        return ready.reject(
          new PlatformError(
            "auth",
            `Home Assistant does not accept the token: ${asText(frame.message)}; set a new HASS_TOKEN: hermes gateway setup`,
            {
              retryable: false,
            },
          ),
        );
      case "auth_ok":
        return this.#write({ id: this.#nextId++, type: "subscribe_events", event_type: "state_changed" });
      case "result":
        if (frame.id !== SUBSCRIPTION) return;
        if (frame.success === true) return ready.resolve();
        return ready.reject(
          new PlatformError(
            "refused",
            `Home Assistant does not report events: ${asText(asRecord(frame.error).message)}; use a token of an administrator`,
            {
              retryable: false,
            },
          ),
        );
      case "pong":
        this.#answered = true;
        return;
      case "event":
        return this.#receive(asRecord(frame.event));
    }
  }

  async #receive(event: Json): Promise<void> {
    const { option, clock } = this.#host;
    const change = readChange(event, option);
    if (!change) return;
    const set = Number(option("cooldown") ?? COOLDOWN_SECONDS);
    if (!this.#cooldown.passes(change.entity, clock.now(), set >= 0 ? set : COOLDOWN_SECONDS)) return;
    const source: ChatSource = {
      ...{ platform: "homeassistant", chat_id: CHAT, chat_name: "Home Assistant", chat_type: "channel" as const },
      ...{ user_id: "homeassistant", user_name: "Home Assistant" },
    };
    const sentAt = (Number.isNaN(change.at) ? clock.now() : change.at) / 1000;
    await this.#host.receive([{ text: change.text, type: "text", source, updateId: change.updateId, sentAt }]);
  }

  /** A connection that was cut without a word looks open for hours. */
  async #stayAlive(lost: (reason: string) => void): Promise<void> {
    const { clock } = this.#host;
    while (!this.#over.signal.aborted) {
      this.#answered = false;
      this.#write({ id: ++this.#nextId, type: "ping" });
      await clock.sleep(PING_SECONDS * 1000, this.#over.signal).catch(() => undefined);
      if (this.#over.signal.aborted || this.#answered) continue;
      this.#socket?.close();
      return lost("Home Assistant no longer answers");
    }
  }

  #write(frame: Json): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  get #token(): string {
    return String(this.#host.option("token", "HASS_TOKEN") ?? "").trim();
  }

  // Sending.

  /** A notification with an id that is there already takes its place: a repeat is not seen. */
  async send(_target: ChatTarget, text: string, { key }: SendOptions): Promise<SendResult> {
    const id = `hermes_${createHash("sha256").update(key).digest("hex").slice(0, 24)}`;
    return this.#service("create", { notification_id: id, title: "Hermes", message: text }, id);
  }

  async remove(_target: ChatTarget, messageId: string): Promise<void> {
    await this.#service("dismiss", { notification_id: messageId }, messageId);
  }

  async #service(name: "create" | "dismiss", body: Json, id: string): Promise<SendResult> {
    try {
      const { status, headers, text } = await callWeb(`${this.#url}/api/services/persistent_notification/${name}`, {
        method: "POST",
        headers: { authorization: `Bearer ${this.#token}` },
        body,
        seconds: Number(this.#host.option("request_timeout")) || 30,
      });
      if (status >= 200 && status < 300) return { messageId: id };
      const error = `Home Assistant answered with status ${status}${text === "" ? "" : `: ${text.slice(0, 200)}`}`;
      if (status === 429)
        return { failed: "rate_limited", error, retryAfter: retryAfter(headers, this.#host.clock.now()) };
      return { failed: status >= 500 || status === 401 ? "unreachable" : "refused", error };
    } catch (error) {
      if (error instanceof CallFailedError) return { failed: error.kind, error: error.message };
      return { failed: "unknown", error: messageOf(error) };
    }
  }

  async chats(): Promise<readonly KnownChat[]> {
    return [{ id: CHAT, name: "Home Assistant", type: "channel" }];
  }
}
