// Discord's gateway: sessions that are identified, resumed, kept alive and interrupted.
import type { Server } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import type { DiscordWorld } from "./discord-world.ts";

interface Event {
  readonly t: string;
  readonly d: unknown;
}

interface Session {
  readonly id: string;
  /** Everything it was told, by number. */
  readonly sent: (Event & { readonly s: number })[];
  socket: WebSocket | null;
}

const OP = { dispatch: 0, heartbeat: 1, identify: 2, resume: 6, reconnect: 7, invalid: 9, hello: 10, ack: 11 } as const;
const CONTENT_INTENT = 1 << 15;
const NEEDED_INTENTS = (1 << 0) | (1 << 9) | (1 << 12);

export class DiscordSocket {
  readonly #world: DiscordWorld;
  readonly #server: WebSocketServer;
  readonly #sessions = new Map<string, Session>();
  #held: Event[] | null = null;
  #nextSession = 1;
  /** Milliseconds between two signs of life that a client is asked for. */
  heartbeatInterval = 41_250;
  /** What a client did, in order: identify, resume, heartbeat. */
  readonly log: string[] = [];
  token = "";
  /** No answers to signs of life: the connection looks alive and is not. */
  isSilent = false;
  /** Each event comes twice. */
  repeats = false;
  /** The bot has no right to the texts of messages. */
  withholdsContent = false;
  /** Nobody gets a connection. */
  isDown = false;
  url = "";
  changed: () => void = () => undefined;

  constructor(http: Server, world: DiscordWorld) {
    this.#world = world;
    this.#server = new WebSocketServer({ noServer: true });
    http.on("upgrade", (request, socket, head) => {
      if (this.isDown) return socket.destroy();
      this.#server.handleUpgrade(request, socket, head, (client) => this.#connected(client));
    });
  }

  get connections(): number {
    return this.#server.clients.size;
  }

  #connected(client: WebSocket): void {
    let session: Session | null = null;
    send(client, { op: OP.hello, d: { heartbeat_interval: this.heartbeatInterval } });
    client.on("message", (data) => {
      const { op, d } = JSON.parse(String(data)) as { op: number; d: never }; // judged by its op
      if (op === OP.heartbeat) {
        this.#note("heartbeat");
        if (!this.isSilent) send(client, { op: OP.ack });
      } else if (op === OP.identify) session = this.#identify(client, d);
      else if (op === OP.resume) session = this.#resume(client, d);
      else client.close(4001, "Unknown opcode");
    });
    client.on("close", () => {
      if (session?.socket === client) session.socket = null;
      this.changed();
    });
  }

  #identify(client: WebSocket, d: { token: string; intents: number; properties?: object }): Session | null {
    this.#note("identify");
    if (d.token !== this.token) client.close(4004, "Authentication failed.");
    else if ((d.intents & NEEDED_INTENTS) !== NEEDED_INTENTS) client.close(4013, "Invalid intent(s).");
    else if (this.withholdsContent && d.intents & CONTENT_INTENT) client.close(4014, "Disallowed intent(s).");
    else return this.#begin(client);
    return null;
  }

  #begin(client: WebSocket): Session {
    const session: Session = { id: `session-${this.#nextSession++}`, sent: [], socket: client };
    this.#sessions.set(session.id, session);
    const { bot, applicationId, guilds } = this.#world;
    this.#tell(session, "READY", {
      ...{ v: 10, user: this.#world.userJson(bot), session_id: session.id, resume_gateway_url: this.url },
      guilds: [...guilds.keys()].map((id) => ({ id, unavailable: true })),
      application: { id: applicationId, flags: 0 },
    });
    for (const guild of guilds.values()) this.#tell(session, "GUILD_CREATE", this.#world.guildJson(guild));
    return session;
  }

  #resume(client: WebSocket, d: { token: string; session_id: string; seq: number }): Session | null {
    this.#note("resume");
    const session = this.#sessions.get(d.session_id);
    if (d.token !== this.token) {
      client.close(4004, "Authentication failed.");
      return null;
    }
    if (!session) {
      send(client, { op: OP.invalid, d: false });
      return null;
    }
    session.socket = client;
    for (const event of session.sent.filter(({ s }) => s > d.seq)) send(client, { op: OP.dispatch, ...event });
    this.#tell(session, "RESUMED", {});
    return session;
  }

  #note(what: string): void {
    this.log.push(what);
    this.changed();
  }

  /** An event for everybody who listens; those who were cut off get it when they resume. */
  dispatch(t: string, d: unknown): void {
    if (this.#held) this.#held.push({ t, d });
    else for (const session of this.#sessions.values()) this.#tell(session, t, d);
  }

  #tell(session: Session, t: string, d: unknown): void {
    const event = { t, d, s: session.sent.length + 1 };
    session.sent.push(event);
    const times = this.repeats && t !== "READY" && t !== "RESUMED" ? 2 : 1;
    for (let n = 0; n < times; n++) if (session.socket) send(session.socket, { op: OP.dispatch, ...event });
  }

  // --- trouble

  /** Cuts all connections; sessions can be resumed. */
  close(code: number): void {
    for (const client of this.#server.clients) client.close(code);
  }

  /** Without a word, as a broken line does. */
  cut(): void {
    for (const client of this.#server.clients) client.terminate();
  }

  /** As Discord does before it restarts a server of its own. */
  askToReconnect(): void {
    for (const client of this.#server.clients) send(client, { op: OP.reconnect });
  }

  /** No session can be resumed any more. */
  forgetSessions(): void {
    for (const session of this.#sessions.values()) session.socket = null;
    this.#sessions.clear();
  }

  /** Events wait until they are released. */
  hold(): void {
    this.#held = [];
  }

  release({ reversed = false } = {}): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const { t, d } of reversed ? held.reverse() : held) this.dispatch(t, d);
  }

  end(): void {
    this.cut();
    this.#server.close();
  }
}

function send(client: WebSocket, payload: object): void {
  if (client.readyState === client.OPEN) client.send(JSON.stringify({ s: null, t: null, d: null, ...payload }));
}
