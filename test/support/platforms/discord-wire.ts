// Requests and answers of Discord's look-alike as bytes, and the ways they go wrong.
import type { ServerResponse } from "node:http";

export type Fields = Readonly<Record<string, unknown>>;

export interface RequestBody {
  /** Undefined: there is none. */
  readonly body: Fields | undefined;
  readonly files: readonly { readonly name: string; readonly bytes: Buffer; readonly contentType: string }[];
}

/** What goes wrong with the next requests of a route. `accepted`: it is done all the same. */
export interface DiscordFault {
  readonly route: string;
  readonly kind: "rate_limited" | "status" | "hang" | "reset";
  readonly times?: number;
  readonly accepted?: boolean;
  readonly status?: number;
  readonly retryAfter?: number;
}

/** JSON, or a form with JSON in it and files beside it. */
export async function readBody(bytes: Buffer, type: string): Promise<RequestBody> {
  if (bytes.length === 0) return { body: undefined, files: [] };
  if (!type.startsWith("multipart/")) return { body: JSON.parse(String(bytes)), files: [] };
  const form = await new Response(new Uint8Array(bytes), { headers: { "content-type": type } }).formData();
  const files: RequestBody["files"][number][] = [];
  for (const [key, value] of form)
    if (typeof value !== "string" && /^files\[\d\]$/.test(key))
      files.push({ name: value.name, bytes: Buffer.from(await value.arrayBuffer()), contentType: value.type });
  return { body: JSON.parse(String(form.get("payload_json") ?? "{}")), files };
}

export function answer(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, {
    ...{ "x-ratelimit-limit": "5", "x-ratelimit-remaining": "4", "x-ratelimit-reset-after": "1" },
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...headers,
  });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

/** Resolves to the status that was answered; 0: none. */
export function spoil({ kind, status = 502, retryAfter = 1 }: DiscordFault, response: ServerResponse): number {
  switch (kind) {
    case "hang":
      return 0;
    case "reset":
      response.destroy();
      return 0;
    case "status":
      response.writeHead(status, { "content-type": "text/html" });
      response.end("<html>error</html>");
      return status;
    case "rate_limited": {
      const headers = { "retry-after": String(retryAfter), "x-ratelimit-scope": "user" };
      answer(
        response,
        429,
        { message: "You are being rate limited.", retry_after: retryAfter, global: false },
        headers,
      );
      return 429;
    }
  }
}
