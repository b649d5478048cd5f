// Home Assistant as an integration sees it: the WebSocket with its handshake and commands, and services over REST.
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";

type Json = Readonly<Record<string, unknown>>;

export interface Notification {
  readonly notification_id: string;
  readonly title?: string;
  readonly message: string;
}

export class HomeAssistantServer {
  static readonly TOKEN = "llat-secret";
  /** What is shown, by id: a second one with the same id takes the place of the first. */
  readonly shown = new Map<string, Notification>();
  /** Every call of a service, in order. */
  readonly created: Notification[] = [];
  /** What a client sent against the rules. */
  readonly violations: string[] = [];
  isTokenValid = true;
  #subscriptions = new Map<WebSocket, number>();
  #states = new Map<string, Json>();
  #next = 0;
  #web: WebServer | null = null;

  static async start(port = 0): Promise<HomeAssistantServer> {
    const server = new HomeAssistantServer();
    const sockets = new WebSocketServer({ noServer: true });
    server.#web = await startWebServer(
      {
        handle: (call) => server.#handle(call),
        upgrade: (request, socket: Duplex, head) => {
          if (request.url !== "/api/websocket") return socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
          return sockets.handleUpgrade(request, socket, head, (client) => server.#serve(client));
        },
      },
      port,
    );
    return server;
  }

  get web(): WebServer {
    if (!this.#web) throw new Error("not started");
    return this.#web;
  }

  get url(): string {
    return this.web.url;
  }

  close(): Promise<void> {
    return this.web.close();
  }

  get subscribers(): number {
    return this.#subscriptions.size;
  }

  /** Something changes in the house; resolves to the event, to send it again. */
  change(entity: string, state: string, attributes: Json = {}): Json {
    const before = this.#states.get(entity) ?? null;
    const after = { entity_id: entity, state, attributes };
    this.#states.set(entity, after);
    const event = {
      event_type: "state_changed",
      data: { entity_id: entity, old_state: before, new_state: after },
      origin: "LOCAL",
      time_fired: new Date(Date.now() + ++this.#next).toISOString(),
      context: { id: `context${this.#next}`, parent_id: null, user_id: null },
    };
    this.emit(event);
    return event;
  }

  emit(event: Json): void {
    for (const [socket, id] of this.#subscriptions) socket.send(JSON.stringify({ id, type: "event", event }));
  }

  closeSockets(): void {
    for (const socket of this.#subscriptions.keys()) socket.close(1012, "restart");
  }

  #serve(socket: WebSocket): void {
    let isAuthorised = false;
    let lastId = 0;
    const send = (frame: Json) => socket.send(JSON.stringify(frame));
    socket.on("close", () => this.#subscriptions.delete(socket)).on("error", () => undefined);
    socket.on("message", (data) => {
      const frame = JSON.parse(String(data));
      if (!isAuthorised) {
        isAuthorised = frame.type === "auth" && frame.access_token === HomeAssistantServer.TOKEN && this.isTokenValid;
        if (isAuthorised) return send({ type: "auth_ok", ha_version: "2026.1.0" });
        send({ type: "auth_invalid", message: "Invalid access token or password" });
        return socket.close();
      }
      if (!Number.isInteger(frame.id) || frame.id <= lastId) {
        this.violations.push(`id ${frame.id} after ${lastId}`);
        return send({
          id: frame.id,
          type: "result",
          success: false,
          error: { code: "id_reuse", message: "Identifier values have to increase." },
        });
      }
      lastId = frame.id;
      if (frame.type === "ping") return send({ id: frame.id, type: "pong" });
      if (frame.type !== "subscribe_events")
        return send({
          id: frame.id,
          type: "result",
          success: false,
          error: { code: "unknown_command", message: "Unknown command." },
        });
      this.#subscriptions.set(socket, frame.id);
      return send({ id: frame.id, type: "result", success: true, result: null });
    });
    send({ type: "auth_required", ha_version: "2026.1.0" });
  }

  #handle({ method, path, headers, json }: Call): Answer {
    if (headers.authorization !== `Bearer ${HomeAssistantServer.TOKEN}` || !this.isTokenValid)
      return { status: 401, body: "401: Unauthorized" };
    if (method === "GET" && path === "/api/config")
      return { status: 200, body: { location_name: "Home", version: "1" } };
    if (method !== "POST" || !headers["content-type"]?.startsWith("application/json"))
      return { status: 405, body: "405" };
    if (path === "/api/services/persistent_notification/dismiss") {
      this.shown.delete(String(json.notification_id));
      return { status: 200, body: [] };
    }
    if (path !== "/api/services/persistent_notification/create")
      return { status: 400, body: { message: "Service not found." } };
    const unknown = Object.keys(json).filter((key) => !["message", "title", "notification_id"].includes(key));
    if (unknown.length > 0 || typeof json.message !== "string" || json.message === "") {
      this.violations.push(`bad notification: ${JSON.stringify(json).slice(0, 200)}`);
      return { status: 400, body: { message: "extra keys not allowed, or no message" } };
    }
    const notification = json as unknown as Notification;
    this.created.push(notification);
    this.shown.set(notification.notification_id, notification);
    return { status: 200, body: [] };
  }
}
