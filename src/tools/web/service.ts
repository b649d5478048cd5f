// One company or server that searches the web or reads pages for us.

import type { z } from "zod";
import { parseJson } from "../../kit/json.ts";
import { WebError } from "../../safety/url-fetch.ts";
import type { WebAccess } from "./access.ts";

export interface WebHit {
  readonly title: string;
  readonly url: string;
  readonly description: string;
}

/** What a service made of one page, or why it could not. */
export type ServicePage =
  | { readonly url: string; readonly title: string; readonly content: string; readonly finalUrl?: string | undefined }
  | { readonly url: string; readonly error: string };

/**
 * - `search` gives at most `limit` hits, best first. It rejects with `WebError` when the service does not answer as it should.
 * - `extract` gives one page per address, in any order; one it does not mention counts as failed.
 */
export interface WebService {
  /** As `web.backend` and its sisters name it. */
  readonly name: string;
  readonly title: string;
  /** The variable that holds its key. Absent: it needs none. */
  readonly keyName?: string;
  /** Empty: the user has to say where it stands. */
  readonly baseUrl: string;
  /** Sent with every request. */
  headers?(key: string): Readonly<Record<string, string>>;
  search?(query: string, limit: number, line: ServiceLine): Promise<readonly WebHit[]>;
  extract?(urls: readonly string[], line: ServiceLine): Promise<readonly ServicePage[]>;
}

/** The connection to one service. */
export interface ServiceLine {
  readonly baseUrl: string;
  /** Sends a request and reads the answer as this shape. */
  json<Shape extends z.ZodType>(path: string, shape: Shape, request?: ServiceRequest): Promise<z.infer<Shape>>;
  text(path: string, request?: ServiceRequest): Promise<string>;
}

interface ServiceRequest {
  /** Sent as JSON. */
  readonly body?: object;
  /** Sent as a form. */
  readonly form?: Readonly<Record<string, string>>;
}

/** A service with what it takes to call it. */
export interface OpenService {
  readonly service: WebService;
  readonly line: ServiceLine;
}

export function openService(
  service: WebService,
  access: WebAccess,
  settings: { baseUrl: string; key: string },
): OpenService {
  const baseUrl = (settings.baseUrl || service.baseUrl).replace(/(?<!\/)\/+$/, "");
  const headers = service.headers?.(settings.key);
  const text = async (path: string, request: ServiceRequest = {}) => {
    const { status, body, location } = await access.fetchService(`${baseUrl}${path}`, optionsOf(request, headers));
    const answer = body.toString("utf8");
    if (status < 200 || status >= 300)
      throw new WebError(describeStatus(service, status, location ?? detailOf(answer)));
    return answer;
  };
  const line: ServiceLine = {
    baseUrl,
    text,
    async json(path, shape, request) {
      const parsed = shape.safeParse(parseJson(await text(path, request)));
      if (parsed.success) return parsed.data;
      throw new WebError(`${service.title} (${baseUrl}) answered something that is not a result.`);
    },
  };
  return { service, line };
}

function optionsOf({ body, form }: ServiceRequest, headers: Readonly<Record<string, string>> | undefined) {
  if (body)
    return {
      method: "POST" as const,
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    };
  if (form)
    return {
      method: "POST" as const,
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: String(new URLSearchParams(form)),
    };
  return headers ? { headers } : {};
}

function describeStatus({ title, name, keyName }: WebService, status: number, detail: string): string {
  const more = detail === "" ? "" : `: ${detail}`;
  if (status >= 300 && status < 400)
    return `${title} has moved (HTTP ${status})${more}. Set web.${name}.base_url in config.yaml.`;
  if ((status === 401 || status === 403) && keyName)
    return `${title} refuses the key (HTTP ${status})${more}. Check ${keyName}.`;
  if (status === 402 || status === 429) return `${title} allows no more requests for now (HTTP ${status})${more}.`;
  return `${title} answered HTTP ${status}${more}.`;
}

/** The sentence with which a service explains itself, as far as it has one. */
function detailOf(answer: string): string {
  const fields = parseJson(answer);
  if (typeof fields !== "object" || fields === null) return "";
  const { error, message, detail } = fields as Record<string, unknown>; // a parsed object
  const said = [error, message, detail].flatMap((value) => [
    value,
    (value as { message?: unknown; error?: unknown } | null)?.message,
    (value as { error?: unknown } | null)?.error,
  ]); // absent on texts
  const sentence = said.find((value): value is string => typeof value === "string" && value.trim() !== "");
  return (sentence ?? "").replace(/\s+/g, " ").trim().slice(0, 200);
}
