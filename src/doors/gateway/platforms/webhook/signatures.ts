// Whether a delivery was signed with the secret of its route: over the bytes as they came, compared in constant time.
import { createHash, createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { asRecord, asText, parseJson } from "../../../../kit/json.ts";
import { headerOf, sameSecret } from "../../../http.ts";
import { sameHex } from "../../listener.ts";

/**
 * `replayKey`: what is the same when the very same signed delivery comes again, where the signature covers a time. `signedId`: the id that
 * the signature covers; another one beside it was put there by somebody else.
 */
export type Verdict =
  | { readonly valid: true; readonly replayKey: string | null; readonly signedId?: string }
  | { readonly valid: false; readonly reason: string };

interface Delivery {
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/** How far the time of a signature may be away from ours, in seconds. */
const WINDOW = 300;

/** The first kind that a delivery claims decides: one that fails is not tried as another, weaker one. */
export function verifySignature(delivery: Delivery, secret: string, now: number): Verdict {
  const header = (name: string) => headerOf(delivery.headers, name);
  const { body } = delivery;
  if (header("svix-signature") !== "") return svix(delivery, secret, now);
  const stripe = header("stripe-signature");
  if (stripe !== "") return stripeLike(stripe, delivery, secret, now);
  const hub = header("x-hub-signature-256");
  if (hub !== "") return verdict(hub.startsWith("sha256=") && sameHex(hub.slice(7), hmac(secret, body)));
  const token = header("x-gitlab-token");
  if (token !== "") return verdict(sameSecret(token, secret));
  const second = header("x-webhook-signature-v2");
  if (second !== "") return timed(second, header("x-webhook-timestamp"), delivery, secret, now);
  const first = header("x-webhook-signature");
  if (first !== "") return verdict(sameHex(first, hmac(secret, body)));
  return { valid: false, reason: "no signature" };
}

const verdict = (valid: boolean): Verdict =>
  valid ? { valid, replayKey: null } : { valid, reason: "the signature does not match" };

function svix({ headers, body }: Delivery, secret: string, now: number): Verdict {
  const [id, time] = [headerOf(headers, "svix-id"), headerOf(headers, "svix-timestamp")];
  if (id === "" || !isCurrent(time, now)) return { valid: false, reason: "the timestamp is not current" };
  const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : secret;
  const expected = hmac(key, `${id}.${time}.`, body).toString("base64");
  // Several, while a secret is being changed.
  const given = headerOf(headers, "svix-signature").split(" ");
  const isSigned = given.filter((one) => one.startsWith("v1,") && sameSecret(one.slice(3), expected)).length > 0;
  return isSigned ? { valid: true, replayKey: null, signedId: id } : verdict(false);
}

/** `t=TIME,v1=HEX`, with several of the second while a secret is being changed. The id of the event is in the body, so it is signed too. */
function stripeLike(header: string, { body }: Delivery, secret: string, now: number): Verdict {
  const parts = header.split(",").map((part) => part.trim());
  const values = (name: string) => parts.flatMap((part) => (part.startsWith(name) ? [part.slice(name.length)] : []));
  const [time = ""] = values("t=");
  if (!isCurrent(time, now)) return { valid: false, reason: "the timestamp is not current" };
  const expected = hmac(secret, `${time}.`, body);
  if (values("v1=").filter((one) => sameHex(one, expected)).length === 0) return verdict(false);
  const id = asText(asRecord(parseJson(Buffer.from(body).toString("utf8"))).id);
  return { valid: true, replayKey: hashOf(expected), ...(id === "" ? {} : { signedId: id }) };
}

/** Hashed once more: it ends up in ids that people see. */
const hashOf = (signature: Buffer) => createHash("sha256").update(signature).digest("hex");

function timed(signature: string, time: string, { body }: Delivery, secret: string, now: number): Verdict {
  if (!isCurrent(time, now)) return { valid: false, reason: "the timestamp is not current" };
  const expected = hmac(secret, `${time}.`, body);
  if (!sameHex(signature, expected)) return verdict(false);
  return { valid: true, replayKey: hashOf(expected) };
}

/** The headers of a delivery of our own, as `X-Webhook-Signature-V2`. */
export function signedHeaders(body: string, secret: string, now: number): Record<string, string> {
  const time = String(Math.floor(now / 1000));
  const signature = hmac(secret, `${time}.`, Buffer.from(body)).toString("hex");
  return { "x-webhook-timestamp": time, "x-webhook-signature-v2": signature };
}

function isCurrent(time: string, now: number): boolean {
  return /^\d{1,12}$/.test(time) && Math.abs(now / 1000 - Number(time)) <= WINDOW;
}

function hmac(key: string | Uint8Array, ...parts: readonly (string | Uint8Array)[]): Buffer {
  const digest = createHmac("sha256", key);
  for (const part of parts) digest.update(part);
  return digest.digest();
}
