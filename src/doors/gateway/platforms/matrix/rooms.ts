// What is known of the rooms the bot is in. Asked for once for each room, and again when the homeserver says that something changed.
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import { type Homeserver, MatrixFailure } from "./client.ts";

export interface Room {
  readonly id: string;
  readonly name: string;
  readonly topic: string;
  /** Nobody but us and one other person is in it. */
  readonly isDirect: boolean;
  readonly isEncrypted: boolean;
  /** Members by id, with the names they show. */
  readonly members: ReadonlyMap<string, string>;
}

const CHANGING = new Set(["m.room.member", "m.room.name", "m.room.topic", "m.room.encryption"]);

export class Rooms {
  readonly #server: Homeserver;
  readonly #known = new Map<string, Promise<Room>>();

  constructor(server: Homeserver) {
    this.#server = server;
  }

  /** Rejects with `MatrixFailure`; M_FORBIDDEN when we are not in it. */
  about(id: string): Promise<Room> {
    const known = this.#known.get(id);
    if (known) return known;
    const asked = this.#ask(id);
    this.#known.set(id, asked);
    asked.catch(() => this.#known.delete(id)); // told to the caller, and not for ever
    return asked;
  }

  /** An event of this kind makes what is known out of date. */
  noteChange(id: string, type: string): void {
    if (CHANGING.has(type)) this.#known.delete(id);
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  async all(max: number): Promise<readonly Room[]> {
    const { joined_rooms: joined } = await this.#server.call("GET", ["joined_rooms"]);
    const ids = Array.isArray(joined) ? joined.map(String).slice(0, max) : [];
    const rooms: Room[] = [];
    // One after the other: a homeserver limits how much it is asked at once.
    for (const id of ids) {
      const room = await this.about(id).catch(() => null);
      if (room) rooms.push(room);
    }
    return rooms;
  }

  /** The room for messages to a person: the one that is marked so, or a new one. */
  async directRoom(person: string): Promise<string> {
    const me = this.#server.userId;
    const marked = await this.#optional(["user", me, "account_data", "m.direct"]);
    const { joined_rooms: joined } = await this.#server.call("GET", ["joined_rooms"]);
    const ours = new Set(Array.isArray(joined) ? joined : []);
    const rooms = marked[person];
    const found = Array.isArray(rooms) ? rooms.map(String).find((id) => ours.has(id)) : undefined;
    if (found !== undefined) return found;
    const made = await this.#server.call("POST", ["createRoom"], {
      body: { preset: "trusted_private_chat", is_direct: true, invite: [person] },
    });
    const id = asText(made.room_id);
    const list = [...(Array.isArray(rooms) ? rooms : []), id];
    await this.#server.call("PUT", ["user", me, "account_data", "m.direct"], { body: { ...marked, [person]: list } });
    return id;
  }

  async #ask(id: string): Promise<Room> {
    const state = (type: string) => this.#optional(["rooms", id, "state", type, ""]);
    const [{ joined }, name, topic, encryption] = await Promise.all([
      this.#server.call("GET", ["rooms", id, "joined_members"]),
      state("m.room.name"),
      state("m.room.topic"),
      state("m.room.encryption"),
    ]);
    const members = new Map(
      Object.entries(asRecord(joined)).map(([user, about]) => [user, asText(asRecord(about).display_name) || user]),
    );
    for (const [user, shown] of told(members, this.#server.userId)) members.set(user, shown);
    const others = [...members].filter(([user]) => user !== this.#server.userId).map(([, shown]) => shown);
    return {
      id,
      name: asText(name.name) || others.slice(0, 3).join(", ") || id,
      topic: asText(topic.topic),
      isDirect: members.size <= 2,
      isEncrypted: asText(encryption.algorithm) !== "",
      members,
    };
  }

  /** An empty object where there is none. */
  async #optional(path: readonly string[]): Promise<Json> {
    try {
      return await this.#server.call("GET", path);
    } catch (error) {
      if (error instanceof MatrixFailure && error.status === 404) return {};
      throw error;
    }
  }
}

/** Anybody may show any name: one that is another member's too, or reads like an id, is told with the id behind it. */
function told(members: ReadonlyMap<string, string>, us: string): readonly (readonly [string, string])[] {
  const plain = (name: string) =>
    name
      .normalize("NFKC")
      .replace(/[\s\p{C}]+/gu, "")
      .toLowerCase();
  const counts = new Map<string, number>();
  for (const [, name] of members) counts.set(plain(name), (counts.get(plain(name)) ?? 0) + 1);
  return [...members]
    .filter(
      ([user, name]) => user !== us && name !== user && (name.includes("@") || (counts.get(plain(name)) ?? 0) > 1),
    )
    .map(([user, name]) => [user, `${name} (${user})`] as const);
}
