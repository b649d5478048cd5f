// A homeserver as a bot sees it: rooms, events, sync with tokens and gaps, transactions, media. Judges requests by the rules of the
// client-server API, version 1.11.
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";

type Json = Readonly<Record<string, unknown>>;

export interface MatrixEvent {
  readonly event_id: string;
  readonly type: string;
  readonly sender: string;
  readonly origin_server_ts: number;
  readonly content: Json;
  readonly room_id: string;
  readonly state_key?: string;
  readonly redacts?: string;
  readonly unsigned?: Json;
}

interface Room {
  readonly id: string;
  readonly events: { readonly at: number; readonly event: MatrixEvent }[];
  readonly members: Map<string, { membership: string; name: string }>;
}

const TAGS =
  "del,h1,h2,h3,h4,h5,h6,blockquote,p,a,ul,ol,sup,sub,li,b,i,u,strong,em,s,code,hr,br,div,table,thead,tbody,tr,th,td,caption,pre,span,img,details,summary".split(
    ",",
  );
const MAX_EVENT = 65_536;
const TOKEN = "syt_secret_token";

export class MatrixServer {
  static readonly BOT = "@hermes:test";
  static readonly TOKEN = TOKEN;
  static readonly PASSWORD = "a password";
  readonly #rooms = new Map<string, Room>();
  readonly #transactions = new Map<string, string>();
  readonly #media = new Map<string, { readonly bytes: Buffer; readonly type: string }>();
  readonly #accountData = new Map<string, Json>();
  #position = 0;
  #next = 0;
  #changed = Promise.withResolvers<void>();
  #isOver = false;
  #web: WebServer | null = null;
  /** Tokens from before this position are unknown, as after a restored database. */
  oldestToken = 0;
  isTokenValid = true;
  /** Logins of devices without a name that have not ended. */
  readonly passing = new Set<string>();
  #logins = 0;
  /** They may redact what others wrote. */
  readonly moderators = new Set<string>();
  readonly #redacted = new Set<string>();

  static async start(): Promise<MatrixServer> {
    const server = new MatrixServer();
    server.#web = await startWebServer({ handle: (call) => server.#handle(call) });
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
    this.#isOver = true;
    this.#changed.resolve();
    return this.web.close();
  }

  // The world.

  room(
    members: Readonly<Record<string, string>>,
    options: { name?: string; encrypted?: boolean; withoutBot?: boolean } = {},
  ): string {
    const id = `!room${++this.#next}:test`;
    this.#rooms.set(id, { id, events: [], members: new Map() });
    const [creator = MatrixServer.BOT] = Object.keys(members);
    const all = options.withoutBot ? members : { ...members, [MatrixServer.BOT]: "Hermes" };
    for (const [user, name] of Object.entries(all)) this.member(id, user, "join", { displayname: name });
    if (options.name) this.state(id, creator, "m.room.name", { name: options.name });
    if (options.encrypted) this.state(id, creator, "m.room.encryption", { algorithm: "m.megolm.v1.aes-sha2" });
    return id;
  }

  member(
    room: string,
    user: string,
    membership: string,
    { sender = user, ...content }: { sender?: string; [key: string]: unknown } = {},
  ): string {
    const members = this.#room(room).members;
    const before = members.get(user);
    members.set(user, { membership, name: String(content.displayname ?? before?.name ?? user) });
    const unsigned = before ? { prev_content: { membership: before.membership } } : {};
    return this.#add(room, {
      type: "m.room.member",
      sender,
      content: { membership, ...content },
      state_key: user,
      unsigned,
    });
  }

  state(room: string, sender: string, type: string, content: Json): string {
    return this.#add(room, { type, sender, content, state_key: "" });
  }

  /** Somebody sends an event; a text is a message. */
  say(room: string, sender: string, said: string | Json, type = "m.room.message"): string {
    const content = typeof said === "string" ? { msgtype: "m.text", body: said } : said;
    return this.#add(room, { type, sender, content });
  }

  edit(room: string, sender: string, eventId: string, text: string): string {
    const fresh = { msgtype: "m.text", body: text };
    const relates = { rel_type: "m.replace", event_id: eventId };
    return this.say(room, sender, { ...fresh, body: `* ${text}`, "m.new_content": fresh, "m.relates_to": relates });
  }

  redact(room: string, sender: string, eventId: string): string {
    const author = this.#rooms.get(room)?.events.find(({ event }) => event.event_id === eventId)?.event.sender;
    if (author !== undefined && (author === sender || this.moderators.has(sender))) this.#redacted.add(eventId);
    return this.#add(room, { type: "m.room.redaction", sender, content: { redacts: eventId }, redacts: eventId });
  }

  file(bytes: Buffer, type: string): string {
    const id = `media${++this.#next}`;
    this.#media.set(id, { bytes, type });
    return `mxc://test/${id}`;
  }

  mediaOf(uri: string) {
    return this.#media.get(uri.split("/").at(-1) ?? "");
  }

  /** What the bot has sent to a room, in order. */
  sent(room: string, type = "m.room.message"): readonly MatrixEvent[] {
    const { events } = this.#room(room);
    return events.map(({ event }) => event).filter((event) => event.sender === MatrixServer.BOT && event.type === type);
  }

  membership(room: string): string {
    return this.#room(room).members.get(MatrixServer.BOT)?.membership ?? "";
  }

  get rooms(): readonly string[] {
    return [...this.#rooms.keys()];
  }

  #room(id: string): Room {
    const room = this.#rooms.get(id);
    if (!room) throw new Error(`no room ${id}`);
    return room;
  }

  #add(room: string, about: Omit<MatrixEvent, "event_id" | "origin_server_ts" | "room_id">): string {
    const id = `$event${++this.#next}`;
    const event = { ...about, event_id: id, origin_server_ts: Date.now(), room_id: room };
    this.#room(room).events.push({ at: ++this.#position, event });
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    return id;
  }

  // The client-server API.

  async #handle(call: Call): Promise<Answer> {
    const { method, path } = call;
    if (path === "/_matrix/client/versions") return ok({ versions: ["v1.1", "v1.11"] });
    if (path === "/_matrix/client/v3/login") return this.#logIn(call);
    if (path === "/_matrix/client/v3/logout") return this.#logOut(call);
    if (call.query.has("access_token")) return refused(400, "M_INVALID_PARAM", "tokens belong into the header");
    if (call.headers.authorization === undefined) return refused(401, "M_MISSING_TOKEN", "Missing access token");
    if (call.headers.authorization !== `Bearer ${TOKEN}` || !this.isTokenValid)
      return refused(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.");
    if (path === "/_matrix/media/v3/upload" && method === "POST") return this.#upload(call);
    if (path.startsWith("/_matrix/client/v1/media/download/")) return this.#download(path);
    if (method !== "GET" && !String(call.headers["content-type"]).startsWith("application/json"))
      return refused(400, "M_NOT_JSON", "Content not JSON.");
    const parts = path.split("/").slice(4).map(decodeURIComponent);
    const [first = "", second = ""] = parts;
    if (first === "account" && second === "whoami") return ok({ user_id: MatrixServer.BOT, device_id: "DEVICE" });
    if (first === "sync") return this.#sync(call);
    if (first === "joined_rooms")
      return ok({ joined_rooms: this.rooms.filter((room) => this.membership(room) === "join") });
    if (first === "createRoom") return this.#create(call.json);
    if (first === "join") return this.#join(second);
    if (first === "user") return this.#account(method, parts[3] ?? "", call.json);
    if (first === "rooms") return this.#inRoom(call, parts.slice(1));
    return refused(404, "M_UNRECOGNIZED", "Unrecognized request");
  }

  #logIn({ json }: Call): Answer {
    const { type, password, identifier, device_id: device } = json;
    const { user } = Object(identifier);
    if (type !== "m.login.password" || typeof user !== "string") return refused(400, "M_BAD_JSON", "bad login");
    if (password !== MatrixServer.PASSWORD) return refused(403, "M_FORBIDDEN", "Invalid username or password");
    if (device !== undefined) return ok({ user_id: MatrixServer.BOT, access_token: TOKEN, device_id: device });
    this.passing.add(`passing-${++this.#logins}`);
    return ok({ user_id: MatrixServer.BOT, access_token: `passing-${this.#logins}`, device_id: "NEW" });
  }

  #logOut({ headers }: Call): Answer {
    const token = String(headers.authorization).replace("Bearer ", "");
    return this.passing.delete(token) ? ok({}) : refused(401, "M_UNKNOWN_TOKEN", "Unknown token");
  }

  #upload({ headers, body, query }: Call): Answer {
    const type = headers["content-type"];
    if (type === undefined || !query.get("filename")) return refused(400, "M_UNKNOWN", "a name and a type are wanted");
    if (body.length > 1_000_000) return refused(413, "M_TOO_LARGE", "Upload request body is too large");
    return ok({ content_uri: this.file(body, type) });
  }

  #download(path: string): Answer {
    const media = this.#media.get(path.split("/").at(-1) ?? "");
    if (!media) return refused(404, "M_NOT_FOUND", "Not found");
    return { status: 200, headers: { "content-type": media.type }, body: media.bytes };
  }

  async #sync({ query }: Call): Promise<Answer> {
    const filter = JSON.parse(query.get("filter") ?? "{}");
    const since = query.get("since");
    const from = since === null ? null : Number(/^s(\d+)$/.exec(since)?.[1] ?? Number.NaN);
    if (Number.isNaN(from) || (from !== null && from < this.oldestToken))
      return refused(400, "M_INVALID_PARAM", "Invalid stream token");
    const until = Date.now() + Number(query.get("timeout") ?? 0);
    while (!this.#isOver && from !== null && this.#position === from && Date.now() < until)
      await Promise.race([this.#changed.promise, sleep(Math.max(1, until - Date.now()), null, { ref: false })]);
    const limit = filter.room?.timeline?.limit ?? 10;
    const types: readonly string[] | undefined = filter.room?.timeline?.types;
    const join: Record<string, unknown> = {};
    const invite: Record<string, unknown> = {};
    const leave: Record<string, unknown> = {};
    for (const room of this.#rooms.values()) {
      const fresh = room.events.filter(({ at }) => at > (from ?? 0));
      if (fresh.length === 0) continue;
      const membership = this.membership(room.id);
      if (membership === "invite") {
        const events = fresh.filter(({ event }) => event.state_key !== undefined).map(({ event }) => stripped(event));
        if (events.some(({ type }) => type === "m.room.member")) invite[room.id] = { invite_state: { events } };
      } else if (membership === "join") {
        // A room that is new to us comes with what was said there before.
        const isNew = fresh.some(({ event }) => event.state_key === MatrixServer.BOT);
        join[room.id] = timelineOf(room, isNew ? room.events : fresh, limit, types);
      } else leave[room.id] = {};
    }
    const rooms = { join, invite, leave };
    const used = Object.fromEntries(Object.entries(rooms).filter(([, list]) => Object.keys(list).length > 0));
    return ok({ next_batch: `s${this.#position}`, ...(Object.keys(used).length > 0 ? { rooms: used } : {}) });
  }

  #create(json: Json): Answer {
    const invited = Array.isArray(json.invite) ? json.invite.map(String) : [];
    if (invited.some((user) => !/^@[^:]+:.+$/.test(user))) return refused(400, "M_INVALID_PARAM", "bad user id");
    const id = this.room({});
    for (const user of invited)
      this.member(id, user, "invite", { sender: MatrixServer.BOT, is_direct: json.is_direct });
    return ok({ room_id: id });
  }

  #join(room: string): Answer {
    if (!this.#rooms.has(room)) return refused(404, "M_NOT_FOUND", "No known servers");
    const membership = this.membership(room);
    if (membership !== "invite" && membership !== "join")
      return refused(403, "M_FORBIDDEN", "You are not invited to this room.");
    if (membership === "invite") this.member(room, MatrixServer.BOT, "join", { displayname: "Hermes" });
    return ok({ room_id: room });
  }

  #account(method: string, type: string, json: Json): Answer {
    if (method === "PUT") this.#accountData.set(type, json);
    const found = this.#accountData.get(type);
    return found ? ok(method === "PUT" ? {} : found) : refused(404, "M_NOT_FOUND", "Account data not found");
  }

  #inRoom(call: Call, [id = "", what = "", ...rest]: readonly string[]): Answer {
    const room = this.#rooms.get(id);
    if (!room || this.membership(id) !== "join")
      return refused(403, "M_FORBIDDEN", `User ${MatrixServer.BOT} not in room ${id}`);
    const { method, json, query } = call;
    if (what === "joined_members") {
      const joined = [...room.members].filter(([, { membership }]) => membership === "join");
      return ok({ joined: Object.fromEntries(joined.map(([user, { name }]) => [user, { display_name: name }])) });
    }
    if (what === "state" && method === "GET") {
      const found = room.events.findLast(({ event }) => event.type === rest[0] && event.state_key === (rest[1] ?? ""));
      return found ? ok(found.event.content) : refused(404, "M_NOT_FOUND", "Event not found.");
    }
    if (what === "event") {
      const found = room.events.find(({ event }) => event.event_id === rest[0]);
      if (!found) return refused(404, "M_NOT_FOUND", "Event not found.");
      return ok(this.#redacted.has(rest[0] ?? "") ? { ...found.event, content: {} } : found.event);
    }
    if (what === "messages") return history(room, query);
    if (what === "typing" && method === "PUT")
      return rest[0] === MatrixServer.BOT && typeof json.typing === "boolean" && Number.isInteger(json.timeout)
        ? ok({})
        : refused(400, "M_BAD_JSON", "bad typing");
    if (what === "receipt" && method === "POST") return ok({});
    if (what === "send" && method === "PUT") return this.#send(room, rest[0] ?? "", rest[1] ?? "", json);
    if (what === "redact" && method === "PUT") {
      return this.#once(`${id} ${rest[1]}`, () => this.redact(id, MatrixServer.BOT, rest[0] ?? ""));
    }
    return refused(404, "M_UNRECOGNIZED", "Unrecognized request");
  }

  #send(room: Room, type: string, transaction: string, content: Json): Answer {
    const problem = contentProblem(type, content, room);
    if (Buffer.byteLength(JSON.stringify(content)) > MAX_EVENT) return refused(413, "M_TOO_LARGE", "event too large");
    if (problem) return refused(400, problem.startsWith("thread") ? "M_UNKNOWN" : "M_BAD_JSON", problem);
    return this.#once(`${room.id} ${transaction}`, () => this.say(room.id, MatrixServer.BOT, content, type));
  }

  #once(key: string, act: () => string): Answer {
    const event = this.#transactions.get(key) ?? act();
    this.#transactions.set(key, event);
    return ok({ event_id: event });
  }
}

const ok = (body: object): Answer => ({ status: 200, body });
const refused = (status: number, errcode: string, error: string): Answer => ({ status, body: { errcode, error } });

function timelineOf(room: Room, fresh: Room["events"], limit: number, types: readonly string[] | undefined) {
  const seen = fresh.filter(({ event }) => types === undefined || types.includes(event.type));
  const shown = seen.slice(-limit);
  const isLimited = seen.length > shown.length;
  const before = shown[0]?.at ?? 0;
  const state = isLimited
    ? room.events.filter(({ at, event }) => at < before && event.state_key !== undefined).map(({ event }) => event)
    : [];
  return {
    timeline: { events: shown.map(({ event }) => event), limited: isLimited, prev_batch: `t${before}` },
    state: { events: state },
  };
}

/** Backwards, from before one token until behind another. */
function history(room: Room, query: URLSearchParams): Answer {
  if (query.get("dir") !== "b") return refused(400, "M_INVALID_PARAM", "dir");
  const from = Number(query.get("from")?.slice(1) ?? Number.POSITIVE_INFINITY);
  const to = Number(query.get("to")?.slice(1) ?? 0);
  const types: readonly string[] | undefined = JSON.parse(query.get("filter") ?? "{}").types;
  const all = room.events.filter(({ at, event }) => at < from && at > to && (types?.includes(event.type) ?? true));
  const page = all.slice(-Number(query.get("limit") ?? 10)).reverse();
  const last = page.at(-1);
  return ok({
    chunk: page.map(({ event }) => event),
    start: query.get("from"),
    ...(last ? { end: `t${last.at}` } : {}),
  });
}

function stripped({ type, sender, content, state_key }: MatrixEvent) {
  return { type, sender, content, state_key };
}

function contentProblem(type: string, content: Json, room: Room): string | null {
  const relates = (content["m.relates_to"] ?? {}) as Record<string, unknown>;
  if (type === "m.reaction")
    return relates.rel_type === "m.annotation" && typeof relates.key === "string" ? null : "bad reaction";
  if (type !== "m.room.message") return `unexpected type ${type}`;
  if (typeof content.body !== "string" || typeof content.msgtype !== "string") return "body and msgtype are required";
  if (relates.rel_type === "m.thread" && !room.events.some(({ event }) => event.event_id === relates.event_id))
    return "thread relation to an unknown event";
  if (relates.rel_type === "m.replace" && typeof (content["m.new_content"] as Json | undefined)?.body !== "string")
    return "m.new_content is required";
  if (content.formatted_body !== undefined && content.format !== "org.matrix.custom.html") return "bad format";
  for (const [, tag = ""] of String(content.formatted_body ?? "").matchAll(/<\/?([a-z0-9]+)/gi))
    if (!TAGS.includes(tag)) return `the tag ${tag} is not allowed`;
  return null;
}
