// A sender of webhooks: recorded deliveries, a plain HTTP client, signatures of its own.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import type { RunningGateway } from "../gateway-rig.ts";

interface Recorded {
  readonly name: string;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly event: string;
  readonly delivery_id: string | null;
}

const fixtures = new URL("../../fixtures/platforms/webhook/deliveries.json", import.meta.url);
const recorded: readonly Recorded[] = JSON.parse(readFileSync(fixtures, "utf8"));
/** One of the recorded deliveries. */
export const named = (name: string) => recorded.find((one) => one.name === name) as Recorded; // a name of the file

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies
  readonly json: any;
}

/** A plain client of our own. */
export function post(
  url: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
  method = "POST",
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const call = request(
      url,
      { method, headers: { "content-length": Buffer.byteLength(body), ...headers } },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk) => chunks.push(chunk));
        answer.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const json = text.startsWith("{") ? JSON.parse(text) : text;
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, json });
        });
      },
    );
    call.on("error", reject);
    call.end(body);
  });
}

export const SECRET = "common-secret";
export const hex = (text: string, secret = SECRET) => createHmac("sha256", secret).update(text).digest("hex");
/** The headers of a delivery that is signed in the plain way. */
export const signed = (body: string, more: Record<string, string> = {}, secret = SECRET) => ({
  "content-type": "application/json",
  "x-webhook-signature": hex(body, secret),
  ...more,
});

/** Where a gateway takes deliveries. */
export const listenerOf = async (gateway: RunningGateway) =>
  /listening on (http:\S+)/.exec(await gateway.waitFor(/^\[Webhook\] .*listening on/))?.[1] ?? "";
