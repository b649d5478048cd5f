// Discord as a bot sees it, on loopback: its HTTP API, judged by the vendor's tables, its socket and its files. A test writes as a person
// and reads what the bot wrote.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Route, requestProblems, responseProblems, routeOf } from "./discord-rules.ts";
import { DiscordSocket } from "./discord-socket.ts";
import { answer, type DiscordFault, type Fields, type RequestBody, readBody, spoil } from "./discord-wire.ts";
import {
  type DiscordChannel,
  type DiscordFile,
  type DiscordMessage,
  type DiscordUser,
  DiscordWorld,
} from "./discord-world.ts";

export interface DiscordCall {
  /** `POST /channels/{channel_id}/messages` */
  readonly route: string;
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** In milliseconds. */
  readonly at: number;
  status: number;
}

/** What somebody chose in a menu or pressed, and what the bot said to it. */
export interface DiscordInteraction {
  readonly id: string;
  readonly token: string;
  readonly at: number;
  /** `{ type, data }` of the answer; null until there is one. */
  response: { readonly type: number; readonly data?: { readonly content?: string; readonly flags?: number } } | null;
  readonly followUps: { readonly content?: string; readonly flags?: number }[];
}

class Refusal extends Error {
  readonly status: number;
  readonly code: number;
  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

interface Request extends RequestBody {
  readonly route: Route;
  readonly query: URLSearchParams;
  readonly body: Fields;
}

const ANSWER_MS = 3000;
const MAX_UPLOAD = 10 * 1024 * 1024;
const TOKEN = "MTIzNDU2Nzg5MDEyMzQ1Njc4OQ.GabcDE.look-alike-token-of-a-test";

export class DiscordServer extends DiscordWorld {
  readonly token = TOKEN;
  readonly calls: DiscordCall[] = [];
  /** Requests that break the vendor's rules, and answers of ours that do. */
  readonly violations: string[] = [];
  readonly interactions = new Map<string, DiscordInteraction>();
  readonly commands: Record<string, unknown>[] = [];
  readonly socket: DiscordSocket;
  /** How long Discord remembers a nonce. */
  nonceSeconds = 300;
  /** The token is no longer taken. */
  isRevoked = false;
  /** Codes that messages to a channel are refused with. */
  readonly refusals = new Map<string, number>();
  readonly #http: Server;
  readonly #files = new Map<string, DiscordFile>();
  readonly #faults: (DiscordFault & { left: number })[] = [];
  readonly #waits = new Set<() => void>();
  #origin = "";

  private constructor() {
    super();
    this.#http = createServer((request, response) => void this.#serve(request, response));
    this.socket = new DiscordSocket(this.#http, this);
    this.socket.token = this.token;
    this.socket.changed = () => this.#changed();
    this.tell = (event, data) => {
      this.socket.dispatch(event, data);
      this.#changed();
    };
    this.fileUrl = (file) => {
      this.#files.set(file.id, file);
      return `${this.#origin}/attachments/${file.id}/${encodeURIComponent(file.name)}`;
    };
  }

  /** `after` is the test's: the server ends with it. */
  static async start(t: { after(work: () => unknown): void }): Promise<DiscordServer> {
    const server = new DiscordServer();
    await server.#listen();
    t.after(() => server.stop());
    return server;
  }

  async #listen(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#http.listen(port, "127.0.0.1", resolve));
    this.#origin = `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`; // it listens on a port
    this.socket.url = this.#origin.replace("http", "ws");
  }

  get apiUrl(): string {
    return `${this.#origin}/api`;
  }

  async stop(): Promise<void> {
    this.socket.end();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  // --- for tests

  /** Waits until something is true; asked again with everything that happens. */
  async until<T>(look: () => T, what: string, ms = 60_000): Promise<Exclude<T, undefined | null | false>> {
    const end = Date.now() + ms;
    for (;;) {
      const found = look();
      if (found) return found as Exclude<T, undefined | null | false>; // looked at in this line
      if (Date.now() > end) throw new Error(`in vain: ${what}\n${this.calls.map(callLine).slice(-20).join("\n")}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, 200);
        const waits = this.#waits;
        function done() {
          clearTimeout(timer);
          waits.delete(done);
          resolve();
        }
        waits.add(done);
      });
    }
  }

  #changed(): void {
    for (const done of [...this.#waits]) done();
  }

  callsTo(route: string): readonly DiscordCall[] {
    return this.calls.filter((call) => call.route === route);
  }

  fault(fault: DiscordFault): void {
    this.#faults.push({ ...fault, left: fault.times ?? 1 });
  }

  /** Somebody chooses a slash command. */
  choose(user: DiscordUser, channel: DiscordChannel, name: string, args?: string): DiscordInteraction {
    const options = args === undefined ? [] : [{ name: "arguments", type: 3, value: args }];
    return this.#interact(user, channel, 2, { id: this.newId(), name, type: 1, options });
  }

  /** Somebody presses the button with this label. */
  press(user: DiscordUser, message: DiscordMessage, label: string): DiscordInteraction {
    const rows = message.components as readonly { components: readonly { label: string; custom_id: string }[] }[];
    const buttons = rows.flatMap(({ components }) => components);
    const button = buttons.find((one) => one.label === label);
    if (!button) throw new Error(`no button "${label}"; there are: ${buttons.map((one) => one.label).join(", ")}`);
    const channel = this.channels.get(message.channelId);
    if (!channel) throw new Error("the channel of the message is gone");
    const data = { custom_id: button.custom_id, component_type: 2 };
    return this.#interact(user, channel, 3, data, { message: this.messageJson(message) });
  }

  #interact(user: DiscordUser, channel: DiscordChannel, type: number, data: object, more: object = {}) {
    const id = this.newId();
    const interaction: DiscordInteraction = {
      ...{ id, token: `interaction-token-${id}`, at: Date.now(), response: null, followUps: [] },
    };
    this.interactions.set(id, interaction);
    const guild = channel.guildId === undefined ? undefined : this.guilds.get(channel.guildId);
    this.socket.dispatch("INTERACTION_CREATE", {
      ...{ id, token: interaction.token, type, version: 1, application_id: this.applicationId, data, ...more },
      ...{ channel_id: channel.id, channel: this.channelJson(channel), locale: "en-US", entitlements: [] },
      ...(guild ? { guild_id: guild.id, member: this.memberJson(guild, user) } : { user: this.userJson(user) }),
    });
    return interaction;
  }

  // --- HTTP

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? "/", this.#origin);
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const file = /^\/attachments\/(\d+)\//.exec(url.pathname)?.[1];
    if (file) return this.#sendFile(response, file);
    const route = routeOf(incoming.method ?? "GET", url.pathname.replace(/^\/api\/v10/, ""));
    if (route === null || !url.pathname.startsWith("/api/v10/")) {
      this.violations.push(`${incoming.method} ${url.pathname}: there is no such route`);
      return answer(response, 404, { code: 0, message: "404: Not Found" });
    }
    const type = incoming.headers["content-type"] ?? "";
    const { body, files } = await readBody(Buffer.concat(chunks), type);
    const query = Object.fromEntries(url.searchParams);
    const at = Date.now();
    const call: DiscordCall = { route: route.name, path: route.path, query, body: body ?? {}, at, status: 0 };
    this.calls.push(call);
    const fault = this.#faults.find((one) => one.route === route.name && one.left > 0);
    if (fault) fault.left -= 1;
    try {
      this.#judge(route, incoming, url.searchParams, body, type);
      if (fault && !fault.accepted) {
        call.status = spoil(fault, response);
        return;
      }
      const [status, value] = this.#do({ route, query: url.searchParams, body: body ?? {}, files });
      for (const problem of responseProblems(route, status, value))
        this.violations.push(`answer to ${route.name}: ${problem}`);
      call.status = fault ? spoil(fault, response) : status;
      if (!fault) answer(response, status, value);
    } catch (error) {
      const { status, code, message } = error instanceof Refusal ? error : new Refusal(500, 0, String(error));
      call.status = status;
      return answer(response, status, { code, message });
    } finally {
      this.#changed();
    }
  }

  #judge(route: Route, incoming: IncomingMessage, query: URLSearchParams, body: unknown, type: string): void {
    const { authorization, "user-agent": agent = "" } = incoming.headers;
    const isKnown = authorization === `Bot ${this.token}` && !this.isRevoked;
    if (route.needsToken && !isKnown) throw new Refusal(401, 0, "401: Unauthorized");
    if (!agent.startsWith("DiscordBot (")) this.violations.push(`${route.name}: no User-Agent of a bot`);
    const contentType = type.startsWith("multipart/") ? "application/json" : type;
    const problems = requestProblems(route, { query, body, contentType });
    if (problems.length === 0) return;
    this.violations.push(...problems.map((problem) => `${route.name}: ${problem}`));
    throw new Refusal(400, 50035, `Invalid Form Body\n${problems.join("\n")}`);
  }

  #sendFile(response: ServerResponse, id: string): void {
    const file = this.#files.get(id);
    response.writeHead(file ? 200 : 404, { "content-type": file?.contentType ?? "text/plain" });
    response.end(file?.bytes ?? "not found");
  }

  // --- what the routes do

  #do(request: Request): readonly [number, unknown] {
    const { route, body } = request;
    const { channel_id = "", message_id = "", emoji_name = "", guild_id = "", user_id = "" } = route.path;
    switch (route.name) {
      case "GET /users/@me":
        return [200, { ...this.userJson(this.bot), mfa_enabled: false, locale: "en-US" }];
      case "GET /gateway/bot": {
        const limit = { total: 1000, remaining: 990, reset_after: 86_400_000, max_concurrency: 1 };
        return [200, { url: this.socket.url, shards: 1, session_start_limit: limit }];
      }
      case "GET /channels/{channel_id}":
        return [200, this.channelJson(this.#channel(channel_id))];
      case "GET /channels/{channel_id}/messages":
        return [200, this.#history(request)];
      case "POST /channels/{channel_id}/messages":
        return [200, { ...this.messageJson(this.#create(request)), nonce: body.nonce }];
      case "PATCH /channels/{channel_id}/messages/{message_id}":
        return [200, this.#edit(request)];
      case "DELETE /channels/{channel_id}/messages/{message_id}":
        this.remove(this.#message(channel_id, message_id));
        return [204, undefined];
      case "PUT /channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}/@me":
        this.#message(channel_id, message_id).reactions.push(emoji_name);
        return [204, undefined];
      case "DELETE /channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}/@me": {
        const { reactions } = this.#message(channel_id, message_id);
        if (reactions.includes(emoji_name)) reactions.splice(reactions.indexOf(emoji_name), 1);
        return [204, undefined];
      }
      case "POST /channels/{channel_id}/typing":
        this.#channel(channel_id);
        return [204, undefined];
      case "POST /channels/{channel_id}/messages/{message_id}/threads":
        return [201, this.#openThread(request)];
      case "POST /channels/{channel_id}/threads":
        return [201, this.#openPost(request)];
      case "GET /guilds/{guild_id}/members/{user_id}": {
        const guild = this.guilds.get(guild_id);
        const user = this.users.get(user_id);
        if (!guild || !user || !guild.members.has(user_id)) throw new Refusal(404, 10007, "Unknown Member");
        return [200, this.memberJson(guild, user)];
      }
      case "GET /applications/{application_id}/commands":
        return [200, this.commands];
      case "PUT /applications/{application_id}/commands":
        return [200, this.#setCommands(body)];
      case "POST /interactions/{interaction_id}/{interaction_token}/callback":
        this.#answerInteraction(request);
        return [204, undefined];
      case "POST /webhooks/{webhook_id}/{webhook_token}":
        return [200, this.#followUp(request)];
      default:
        this.violations.push(`${route.name}: the look-alike does not know this route`);
        throw new Refusal(404, 0, "404: Not Found");
    }
  }

  #channel(id: string): DiscordChannel {
    const channel = this.channels.get(id);
    if (!channel) throw new Refusal(404, 10003, "Unknown Channel");
    return channel;
  }

  #message(channelId: string, id: string): DiscordMessage {
    this.#channel(channelId);
    const message = this.find(channelId, id);
    if (!message) throw new Refusal(404, 10008, "Unknown Message");
    return message;
  }

  /** Newest first; without a nonce, which Discord does not keep. */
  #history({ route, query }: Request): readonly unknown[] {
    const channel = this.#channel(route.path.channel_id ?? "");
    const limit = Number(query.get("limit") ?? 50);
    const before = BigInt(query.get("before") ?? "9223372036854775807");
    const after = BigInt(query.get("after") ?? "0");
    const all = this.in(channel).filter(({ id }) => BigInt(id) < before && BigInt(id) > after);
    const some = query.has("after") ? all.slice(0, limit) : all.slice(-limit);
    return some.toReversed().map((message) => this.messageJson(message));
  }

  #create({ route, body, files }: Request): DiscordMessage {
    const channel = this.#channel(route.path.channel_id ?? "");
    const refused = this.refusals.get(channel.id);
    if (refused) throw new Refusal(403, refused, "Missing Permissions");
    if (channel.type === 15) throw new Refusal(400, 50008, "Cannot send messages in a non-text channel");
    if (channel.locked) throw new Refusal(400, 160005, "Thread is locked");
    const {
      content = "",
      nonce,
      enforce_nonce,
      message_reference,
    } = body as {
      content?: string;
      nonce?: string;
      enforce_nonce?: boolean;
      message_reference?: { message_id: string; fail_if_not_exists?: boolean };
    }; // judged before
    const now = Date.now();
    const same = this.in(channel).find((one) => one.author === this.bot && nonce !== undefined && one.nonce === nonce);
    if (same && enforce_nonce && now - timeOf(same.id) < this.nonceSeconds * 1000) return same;
    this.#checkContent(content, files);
    const original = message_reference && this.find(channel.id, message_reference.message_id);
    if (message_reference && !original && message_reference.fail_if_not_exists !== false)
      throw new Refusal(400, 50035, "Invalid Form Body\nmessage_reference: Unknown message");
    return this.add({
      ...{ id: this.newId(), channelId: channel.id, author: this.bot, content: content.trim(), flags: 0, extra: {} },
      type: original ? 19 : 0,
      ...(original ? { replyTo: original.id } : {}),
      ...(nonce === undefined ? {} : { nonce }),
      allowedMentions: body.allowed_mentions,
      components: withIds(body.components),
      files: files.map((file) => ({ ...file, id: this.newId() })),
    });
  }

  #checkContent(content: string, files: Request["files"]): void {
    if ([...content].length > 2000) {
      this.violations.push(`a message of ${[...content].length} characters`);
      throw new Refusal(400, 50035, "Invalid Form Body\ncontent: Must be 2000 or fewer in length.");
    }
    if (files.some(({ bytes }) => bytes.length > MAX_UPLOAD)) throw new Refusal(413, 40005, "Request entity too large");
    if (content.trim() === "" && files.length === 0) throw new Refusal(400, 50006, "Cannot send an empty message");
  }

  #edit({ route, body }: Request): unknown {
    const message = this.#message(route.path.channel_id ?? "", route.path.message_id ?? "");
    if (message.author !== this.bot) throw new Refusal(403, 50005, "Cannot edit a message authored by another user");
    const content = typeof body.content === "string" ? body.content.trim() : message.content;
    this.#checkContent(content, []);
    this.change(message, {
      content,
      ...(body.components === undefined ? {} : { components: withIds(body.components) }),
    });
    return this.messageJson(message);
  }

  #openThread({ route, body }: Request): unknown {
    const { channel_id = "", message_id = "" } = route.path;
    const channel = this.#channel(channel_id);
    const refused = this.refusals.get(`threads:${channel_id}`);
    if (refused) throw new Refusal(403, refused, "Missing Permissions");
    this.#message(channel_id, message_id);
    if (this.channels.has(message_id))
      throw new Refusal(400, 160004, "A thread has already been created for this message");
    return this.channelJson(this.thread(channel, String(body.name), this.bot, message_id));
  }

  #openPost({ route, body, files }: Request): unknown {
    const channel = this.#channel(route.path.channel_id ?? "");
    const { content = "" } = (body.message ?? {}) as { content?: string }; // judged before
    this.#checkContent(content, files);
    const thread = this.thread(channel, String(body.name), this.bot);
    this.add({
      ...{ id: thread.id, channelId: thread.id, author: this.bot, content, type: 0, flags: 0, extra: {} },
      files: files.map((file) => ({ ...file, id: this.newId() })),
    });
    return this.channelJson(thread);
  }

  #setCommands(body: unknown): unknown {
    const wanted = body as readonly Record<string, unknown>[]; // judged before
    const bad = wanted.find(({ name }) => !isCommandName(String(name)));
    if (bad) {
      this.violations.push(`a command of the name ${String(bad.name)}`);
      throw new Refusal(400, 50035, "Invalid Form Body\nname: Command name is invalid");
    }
    const rest = { application_id: this.applicationId, version: this.newId(), default_member_permissions: null };
    this.commands.splice(0, Infinity, ...wanted.map((one) => ({ type: 1, ...one, ...rest, id: this.newId() })));
    return this.commands;
  }

  #answerInteraction({ route, body }: Request): void {
    const interaction = this.interactions.get(route.path.interaction_id ?? "");
    const { interaction_token: token } = route.path;
    if (!interaction || interaction.token !== token || Date.now() - interaction.at > ANSWER_MS)
      throw new Refusal(404, 10062, "Unknown interaction");
    if (interaction.response) throw new Refusal(400, 40060, "Interaction has already been acknowledged.");
    interaction.response = body as unknown as DiscordInteraction["response"]; // judged before
  }

  #followUp({ route, body }: Request): unknown {
    const { webhook_id, webhook_token } = route.path;
    const interaction = [...this.interactions.values()].find(({ token }) => token === webhook_token);
    if (!interaction?.response || webhook_id !== this.applicationId) throw new Refusal(404, 10015, "Unknown Webhook");
    interaction.followUps.push(body);
    const { content = "" } = body as { content?: string }; // judged before
    const [channelId = ""] = this.channels.keys();
    return this.messageJson({
      ...{ id: this.newId(), channelId, author: this.bot, content, type: 20, flags: 64, extra: {}, files: [] },
      ...{ components: [], editedAt: null, earlier: [], reactions: [] },
    });
  }
}

const isCommandName = (name: string) => /^[-_\p{L}\p{N}]{1,32}$/u.test(name) && name === name.toLowerCase();
const timeOf = (id: string) => Number(BigInt(id) >> 22n) + 1_420_070_400_000;

/** Discord numbers what it is handed. */
function withIds(components: unknown): readonly unknown[] {
  let next = 0;
  const numbered = (one: Record<string, unknown>): unknown => ({
    id: ++next,
    ...one,
    ...(Array.isArray(one.components) ? { components: one.components.map(numbered) } : {}),
  });
  return Array.isArray(components) ? components.map(numbered) : [];
}

const callLine = ({ route, path, status }: DiscordCall) => `${status} ${route} ${JSON.stringify(path)}`;
