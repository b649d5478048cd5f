// Feishu's calls to us: whether they are Feishu's, and what is in them.
import { createDecipheriv, createHash, timingSafeEqual } from "node:crypto";
import { asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
import type { AdapterHost } from "../../contract.ts";
import { type HttpCall, type HttpReply, type Listener, listen } from "../../listener.ts";

const PORT = 8765;
const PATH = "/feishu/webhook";

/** Rejects with a `PlatformError` when it cannot listen. What is not answered with 200 comes again. */
export function openWebhook(host: AdapterHost, take: (event: Json) => Promise<Json | null>): Promise<Listener> {
  const text = (key: string, variable: string) => String(host.option(key, variable) ?? "").trim();
  const path = text("webhook_path", "FEISHU_WEBHOOK_PATH") || PATH;
  return listen({
    host: text("webhook_host", "FEISHU_WEBHOOK_HOST") || "127.0.0.1",
    port: Number(host.option("webhook_port", "FEISHU_WEBHOOK_PORT") ?? PORT),
    ...{ setting: "FEISHU_WEBHOOK_PORT", log: host.log },
    early: (call) => {
      if (call.path !== path) return { status: 404 };
      return call.method === "POST" ? null : { status: 405, headers: { allow: "POST" } };
    },
    handle: async (call) => {
      const keys = {
        verificationToken: text("verification_token", "FEISHU_VERIFICATION_TOKEN"),
        encryptKey: text("encrypt_key", "FEISHU_ENCRYPT_KEY"),
      };
      const opened = openCall(call, keys, host.clock.now());
      return "reply" in opened ? opened.reply : { status: 200, body: (await take(opened.event)) ?? {} };
    },
  });
}

interface WebhookKeys {
  readonly verificationToken: string;
  readonly encryptKey: string;
}

/** An event, or what is replied at once: a proof that the address is ours, or a refusal. */
type Opened = { readonly event: Json } | { readonly reply: HttpReply };

const FRESH_SECONDS = 3600;
const REFUSED = { reply: { status: 401, body: { error: "not signed by Feishu" } } } as const;

/** At least one of the keys is set. */
export function openCall(
  { body, headers }: Pick<HttpCall, "body" | "headers">,
  keys: WebhookKeys,
  now: number,
): Opened {
  const { encryptKey, verificationToken } = keys;
  const outer = asRecord(parseJson(body.toString()));
  if (encryptKey !== "" && typeof outer.encrypt !== "string") return REFUSED;
  const plain = encryptKey === "" ? outer : asRecord(parseJson(decrypted(asText(outer.encrypt), encryptKey) ?? ""));
  const isProof = plain.type === "url_verification";
  // The proof of an address is not signed; who knows the key could write what is encrypted with it.
  if (encryptKey !== "" && !isProof && !isSigned(body, headers, encryptKey, now)) return REFUSED;
  const token = asText(plain.token) || asText(asRecord(plain.header).token);
  if (verificationToken !== "" && !isSame(token, verificationToken)) return REFUSED;
  if (isProof) return { reply: { status: 200, body: { challenge: asText(plain.challenge) } } };
  return { event: plain };
}

function isSigned(body: Buffer, headers: HttpCall["headers"], key: string, now: number): boolean {
  const text = (name: string) => String(headers[name] ?? "");
  const timestamp = text("x-lark-request-timestamp");
  if (Math.abs(now / 1000 - Number(timestamp)) > FRESH_SECONDS || timestamp === "") return false;
  const hash = createHash("sha256").update(timestamp + text("x-lark-request-nonce") + key);
  return isSame(text("x-lark-signature"), hash.update(body).digest("hex"));
}

function isSame(one: string, other: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(one), hash(other));
}

/** Null: not encrypted with this key. */
function decrypted(text: string, key: string): string | null {
  const bytes = Buffer.from(text, "base64");
  try {
    const decipher = createDecipheriv("aes-256-cbc", createHash("sha256").update(key).digest(), bytes.subarray(0, 16));
    return Buffer.concat([decipher.update(bytes.subarray(16)), decipher.final()]).toString();
  } catch {
    return null; // told by what is missing in it
  }
}
