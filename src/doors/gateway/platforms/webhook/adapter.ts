// Takes deliveries: checks them in a fixed order, stores them, and only then says that they were accepted.
import { asText, type Json } from "../../../../kit/json.ts";
import { headerOf, isLoopbackHost } from "../../../http.ts";
import type { AdapterHost, ChatMessage, ChatTarget, PlatformAdapter, SendOptions, SendResult } from "../../contract.ts";
import { type HttpCall, type HttpReply, type Listener, listen } from "../../listener.ts";
import { trimmedUrl } from "../../web-calls.ts";
import { GITHUB_URL } from "./entry.ts";
import { deliveryIdOf, eventOf, fill, parsePayload, passes, promptFor } from "./payload.ts";
import { addressOf, exposure, NO_AUTH, type Route } from "./routes.ts";
import { type Verdict, verifySignature } from "./signatures.ts";
import { Routes, SUBSCRIPTIONS } from "./subscriptions.ts";
import { comment, type Destination, destinationOf, findComment, type Github, parseOwnTarget } from "./targets.ts";

const PREFIX = "/webhooks/";
const PER_MINUTE = 30;
const MINUTE = 60_000;
/** A signed time holds for five minutes before and behind it. */
const REPLAY_MS = 10 * MINUTE;
/** How far back a comment is looked for when nobody says since when, in seconds. */
const LOOK_BACK = 86_400;

export const openWebhook = (host: AdapterHost): PlatformAdapter => new Webhook(host);

/** A delivery whose sender is known and whose payload was read. */
interface Delivery {
  readonly route: Route;
  readonly payload: Json;
  readonly event: string;
  readonly id: string;
}

class Webhook implements PlatformAdapter {
  readonly account = "webhook";
  readonly #host: AdapterHost;
  readonly #routes: Routes;
  /** When the last minute's deliveries of a route came. */
  readonly #recent = new Map<string, number[]>();
  /** Signed deliveries whose time still holds, by their replay keys: under which id, and until when. */
  readonly #replayable = new Map<string, { readonly id: string; readonly until: number }>();
  #listener: Listener | null = null;
  #signal: AbortSignal | undefined;

  constructor(host: AdapterHost) {
    this.#host = host;
    this.#routes = new Routes(host.option, host.homePath?.(SUBSCRIPTIONS) ?? null, host.log);
  }

  get listening(): string | undefined {
    return this.#listener?.url;
  }

  async connect(signal: AbortSignal): Promise<void> {
    const { option, log } = this.#host;
    this.#signal = signal;
    const { host, port } = addressOf(option);
    for (const route of await this.#routes.all()) {
      const problem = route.problem ?? exposure(route, host);
      if (problem !== null) log.warn(`the webhook route ${route.name} refuses deliveries: ${problem}`);
    }
    this.#listener = await listen({
      ...{ host, port, log },
      setting: "WEBHOOK_PORT",
      early: (call) => this.#early(call),
      handle: (call) => this.#handle(call),
    });
  }

  async disconnect(): Promise<void> {
    await this.#listener?.close();
    this.#listener = null;
  }

  /** What needs no body: other addresses, unknown routes. */
  async #early({ method, path }: Omit<HttpCall, "body">): Promise<HttpReply | null> {
    if (path === "/health") {
      if (method !== "GET") return notAllowed("GET, HEAD");
      return { status: 200, body: { status: "ok", platform: "webhook" } };
    }
    if (!path.startsWith(PREFIX)) return unknown;
    if ((await this.#routes.find(nameIn(path))) === null) return unknown;
    return method === "POST" ? null : notAllowed("POST");
  }

  /** The order of the checks is part of the contract. */
  async #handle(call: HttpCall): Promise<HttpReply> {
    const route = await this.#routes.find(nameIn(call.path));
    if (route === null) return unknown;
    const verdict = this.#authenticate(call, route);
    if ("status" in verdict) return verdict;
    if (!route.enabled) return refused(403, `the route ${route.name} is disabled`);
    if (route.problem !== null) return refused(403, `the route ${route.name} cannot be used: ${route.problem}`);
    const wait = this.#tooMany(route);
    if (wait > 0) return { ...refused(429, "too many deliveries"), headers: { "retry-after": String(wait) } };
    const payload = parsePayload(call.body, headerOf(call.headers, "content-type"));
    if (payload === null) return refused(400, "the body is neither JSON nor a form");
    const event = eventOf(call.headers, payload);
    const isWanted = route.events.length === 0 || route.events.includes(event) || route.events.includes("*");
    if (!isWanted || !passes(route.filters, payload, event)) return { status: 200, body: { status: "ignored", event } };
    const { replayKey, signedId } = verdict;
    const id = deliveryIdOf(call.headers, replayKey, signedId);
    const before = this.#seenAs(route, replayKey);
    if (before !== null && before !== id) return { status: 200, body: { status: "duplicate", delivery_id: before } };
    const key = replayKey === null ? null : updateIdOf(route, replayKey);
    if (key !== null) this.#replayable.set(key, { id, until: this.#host.clock.now() + REPLAY_MS });
    let taken = false;
    try {
      const delivery = { route, payload, event, id };
      const reply = await (route.deliverOnly ? this.#deliver(delivery) : this.#accept(delivery));
      taken = reply.status < 300;
      return reply;
    } finally {
      // The sender may repeat what was not taken.
      if (!taken && key !== null) this.#replayable.delete(key);
    }
  }

  /** The id under which the very same signed delivery was taken: the signature does not cover the one in its headers. */
  #seenAs(route: Route, replayKey: string | null): string | null {
    const now = this.#host.clock.now();
    for (const [key, { until }] of this.#replayable) if (until < now) this.#replayable.delete(key);
    return replayKey === null ? null : (this.#replayable.get(updateIdOf(route, replayKey))?.id ?? null);
  }

  #authenticate(call: HttpCall, route: Route): HttpReply | Extract<Verdict, { valid: true }> {
    const { host } = addressOf(this.#host.option);
    const open = exposure(route, host);
    if (open !== null) return refused(403, `the route ${route.name} refuses deliveries: ${open}`);
    if (route.secret === NO_AUTH) {
      // A page in a browser of this machine can reach it too, and may not.
      const name = headerOf(call.headers, "host").replace(/:\d+$/, "");
      if (headerOf(call.headers, "origin") !== "" || !isLoopbackHost(name))
        return refused(403, "a route without a secret takes no requests of web pages");
      return { valid: true, replayKey: null };
    }
    const verdict = verifySignature(call, route.secret, this.#host.clock.now());
    return verdict.valid ? verdict : refused(401, `invalid signature: ${verdict.reason}`);
  }

  /** Seconds until the route takes deliveries again; 0: now. */
  #tooMany({ name }: Route): number {
    const now = this.#host.clock.now();
    const limit = Number(this.#host.option("rate_limit") ?? PER_MINUTE);
    const recent = (this.#recent.get(name) ?? []).filter((at) => now - at < MINUTE);
    this.#recent.set(name, recent);
    if (limit > 0 && recent.length >= limit) return Math.ceil((MINUTE - (now - (recent[0] ?? now))) / 1000);
    recent.push(now);
    return 0;
  }

  async #accept({ route, payload, event, id }: Delivery): Promise<HttpReply> {
    const destination = destinationOf(route, payload, event);
    if (destination.type === "none")
      this.#host.log.warn(`the answer to ${route.name} ${id} goes to the log: ${destination.reason}`);
    const text = promptFor(route.prompt, payload, { route: route.name, event });
    const [isNew] = await this.#host.receive([this.#message(route, id, text, destination)]);
    if (isNew === false) return { status: 200, body: { status: "duplicate", delivery_id: id } };
    return { status: 202, body: { status: "accepted", route: route.name, event, delivery_id: id } };
  }

  #message(route: Route, id: string, text: string, destination: Destination): ChatMessage {
    return {
      ...{ text, type: "text" },
      updateId: updateIdOf(route, id),
      messageId: id,
      sentAt: Math.floor(this.#host.clock.now() / 1000),
      source: {
        platform: "webhook",
        chat_id: `webhook:${route.name}:${id}`,
        chat_name: route.name,
        chat_type: "webhook",
        message_id: id,
      },
      outside: [`a delivery to the webhook ${route.name}`],
      ...(route.skills.length > 0 ? { skills: route.skills } : {}),
      ...(destination.type === "own" ? { replyIn: destination.target } : {}),
      ...(destination.type === "other" ? { deliver: destination.target } : {}),
    };
  }

  /** Without an agent: the text goes where it is to go, or the sender is told that it may try again. */
  async #deliver({ route, payload, event, id }: Delivery): Promise<HttpReply> {
    const destination = destinationOf(route, payload, event);
    if (destination.type === "none" || destination.type === "log" || !this.#host.deliverTo)
      return undelivered(id, "reason" in destination ? destination.reason : "there is nowhere to deliver to");
    const target = destination.type === "own" ? `webhook:${destination.target.chatId}` : destination.target;
    const text = route.prompt.trim() === "" ? fill("{__raw__}", payload, event) : fill(route.prompt, payload, event);
    const result = await this.#host.deliverTo(target, text, { updateId: updateIdOf(route, id) });
    if ("duplicate" in result) return { status: 200, body: { status: "duplicate", delivery_id: id } };
    if ("failed" in result) return undelivered(id, result.error);
    return { status: 200, body: { status: "delivered", route: route.name, target, delivery_id: id } };
  }

  async send(target: ChatTarget, text: string, { key }: SendOptions): Promise<SendResult> {
    if (parseOwnTarget(target.chatId) !== null) return comment(this.#github, target, text, key, this.#host.clock.now());
    this.#host.log.info(`${target.chatId} answered: ${text}`);
    return { messageId: null };
  }

  async findSent(target: ChatTarget, key: string, _text: string, since?: number): Promise<string | null | undefined> {
    if (parseOwnTarget(target.chatId) === null) return null; // a line of the log may come twice
    const from = since ?? this.#host.clock.now() / 1000 - LOOK_BACK;
    return findComment(this.#github, target, key, from - 60).catch(() => undefined); // clocks differ
  }

  get #github(): Github {
    const { option } = this.#host;
    return {
      url: trimmedUrl(option("github_api_url") ?? GITHUB_URL),
      token: asText(option("github_token", "GITHUB_TOKEN")),
      signal: this.#signal,
    };
  }
}

/** Ids are those of the sender: the same one may come for two routes. */
const updateIdOf = ({ name }: Route, id: string) => `${name}:${id}`;

const refused = (status: number, error: string): HttpReply => ({ status, body: { error } });
const unknown = refused(404, "there is no such route");
const notAllowed = (allow: string): HttpReply => ({ ...refused(405, "method not allowed"), headers: { allow } });
const undelivered = (id: string, error: string): HttpReply => ({
  status: 502,
  body: { status: "failed", error, delivery_id: id },
});

function nameIn(path: string): string {
  try {
    return decodeURIComponent(path.slice(PREFIX.length));
  } catch {
    return ""; // not a name in any encoding
  }
}
