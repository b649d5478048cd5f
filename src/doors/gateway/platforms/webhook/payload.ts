// What a delivery says: its payload, its event, its id, whether a route wants it, and the prompt that a route makes of it.
import { createHash, randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { headUnits } from "../../../../kit/code-points.ts";
import { asRecord, asText, isRecord, type Json, parseJson } from "../../../../kit/json.ts";
import { disarm, fenced } from "../../../../prompt/fence.ts";
import { headerOf } from "../../../http.ts";

const MAX_VALUE = 2000;
const MAX_WHOLE = 4000;
const MAX_ID = 128;

/** Null when it is neither JSON nor a form. A list is a payload with `items`. */
export function parsePayload(body: Buffer, contentType: string): Json | null {
  const text = body.toString("utf8");
  const value = parseJson(text);
  if (Array.isArray(value)) return { items: value };
  if (isRecord(value)) return value;
  if (value !== undefined || !isForm(text, contentType)) return null;
  const form = Object.fromEntries(new URLSearchParams(text));
  // GitHub's form deliveries hold the JSON in one field.
  const inside = Object.keys(form).length === 1 ? parseJson(form.payload ?? "") : undefined;
  return isRecord(inside) ? inside : form;
}

/** Pairs without blanks and line ends; whoever says that it is a form may have fields without a value. */
function isForm(text: string, contentType: string): boolean {
  const trimmed = text.trim();
  if (trimmed === "" || /\s/.test(trimmed)) return false;
  const isSaid = contentType.toLowerCase().startsWith("application/x-www-form-urlencoded");
  return trimmed.split("&").every((pair) => (isSaid ? pair !== "" : /^[\w.%+[\]-]+=/.test(pair)));
}

/** `Merge Request Hook` is `merge_request`. */
export function eventOf(headers: IncomingHttpHeaders, payload: Json): string {
  return headUnits(eventIn(headers, payload), MAX_ID);
}

function eventIn(headers: IncomingHttpHeaders, payload: Json): string {
  const github = headerOf(headers, "x-github-event");
  if (github !== "") return github;
  const gitlab = headerOf(headers, "x-gitlab-event");
  if (gitlab !== "")
    return gitlab
      .replace(/ hook$/i, "")
      .toLowerCase()
      .replaceAll(" ", "_");
  const said = [payload.event_type, payload.type, payload.object_kind].map(asText).find((name) => name !== "");
  return said ?? "unknown";
}

const ID_HEADERS = ["x-github-delivery", "svix-id", "x-request-id", "idempotency-key"];

/** The sender's own id, the signed one before any other; what its signature covers, or a new one, where it has none. */
export function deliveryIdOf(headers: IncomingHttpHeaders, replayKey: string | null, signedId?: string): string {
  const given = signedId ?? ID_HEADERS.map((name) => headerOf(headers, name)).find((id) => id !== "");
  if (given === undefined) return replayKey?.slice(0, 32) ?? randomUUID();
  if (given.length <= MAX_ID && /^[\w.:=+/@-]+$/.test(given)) return given;
  return createHash("sha256").update(given).digest("hex").slice(0, 32);
}

// Filters.

const OPERATORS = ["eq", "ne", "in", "contains", "exists"] as const;
type Operator = (typeof OPERATORS)[number];

/** One thing that has to be true of a payload. */
export interface Filter {
  readonly path: string;
  readonly operator: Operator;
  readonly value: unknown;
}

const isOperator = (word: string): word is Operator => OPERATORS.some((one) => one === word);

/**
 * Two ways to write them: a list of `{field, op, value}`, or a table by path whose values are a value (`eq`), a list (`in`) or
 * `{operator: value}`. A string is what is wrong with them.
 */
export function readFilters(written: unknown): readonly Filter[] | string {
  if (written === undefined || written === null) return [];
  const rows = Array.isArray(written) ? written.map(filterOfRow) : Object.entries(asRecord(written)).map(filterOfPair);
  const wrong = rows.flat().find((row) => typeof row === "string");
  if (wrong !== undefined) return wrong;
  if (!Array.isArray(written) && !isRecord(written)) return "filters must be a list or a table";
  return rows.flat().filter((row) => typeof row !== "string");
}

function filterOfRow(row: unknown): Filter | string {
  const { field, path = field, op, operator = op ?? "eq", value = true } = asRecord(row);
  if (asText(path) === "") return 'a filter needs a "field"';
  const word = asText(operator);
  return isOperator(word) ? { path: asText(path), operator: word, value } : unknownOperator(word);
}

function filterOfPair([path, wanted]: [string, unknown]): readonly (Filter | string)[] {
  if (Array.isArray(wanted)) return [{ path, operator: "in", value: wanted }];
  if (!isRecord(wanted)) return [{ path, operator: "eq", value: wanted }];
  return Object.entries(wanted).map(([word, value]) =>
    isOperator(word) ? { path, operator: word, value } : unknownOperator(word),
  );
}

const unknownOperator = (word: string) => `filter operator "${word}" is not one of ${OPERATORS.join(", ")}`;

export function passes(filters: readonly Filter[], payload: Json, event: string): boolean {
  return filters.every(({ path, operator, value }) => isTrue(operator, valueAt(payload, path, event), value));
}

function isTrue(operator: Operator, found: unknown, wanted: unknown): boolean {
  switch (operator) {
    case "eq":
      return isSame(found, wanted);
    case "ne":
      return !isSame(found, wanted);
    case "in":
      return Array.isArray(wanted) && wanted.some((one) => isSame(found, one));
    case "contains":
      if (Array.isArray(found)) return found.some((one) => isSame(one, wanted));
      if (isRecord(found)) return Object.hasOwn(found, String(wanted));
      return typeof found === "string" && found.includes(String(wanted));
    case "exists":
      return (found !== undefined && found !== null) === (String(wanted) !== "false");
  }
}

/** `7` of a payload and `"7"` of the settings are the same. */
function isSame(found: unknown, wanted: unknown): boolean {
  if (found === undefined || found === null) return wanted === null && found === null;
  if (typeof found === "object") return JSON.stringify(within(found)) === JSON.stringify(within(wanted));
  return String(found) === String(wanted);
}

// Templates.

/** By a dotted path, places of a list by their number. Only what the payload itself holds. */
export function valueAt(payload: Json, path: string, event: string): unknown {
  if (path === "event_type") return event;
  if (Object.hasOwn(payload, path)) return payload[path];
  let value: unknown = payload;
  for (const step of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Json)[step]; // it is an object that has this key
  }
  return value;
}

const PLACE = /\{([\w.$@:/-]{1,200})\}/g;

/** The template with its places filled; what the payload does not have stays as it is written. */
export function fill(
  template: string,
  payload: Json,
  event: string,
  wrap: (text: string) => string = (text) => text,
): string {
  return template.replace(PLACE, (place, path: string) => {
    if (path === "__raw__") return wrap(asJson(payload, MAX_WHOLE));
    const value = valueAt(payload, path, event);
    if (value === undefined) return place;
    return wrap(typeof value === "object" && value !== null ? asJson(value, MAX_VALUE) : String(value));
  });
}

const asJson = (value: unknown, max: number) => headUnits(JSON.stringify(within(value), null, 2), max);

const MOST_DEPTH = 32;

/** As much of a payload as could be shown: written out, deep nesting takes far more room than it came in, or more than there is. */
function within(value: unknown, depth = 0, left = { count: MAX_WHOLE }): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MOST_DEPTH) return "...";
  const take = <One>(all: readonly One[]) => all.slice(0, Math.max(0, left.count)).filter(() => --left.count >= 0);
  if (Array.isArray(value)) return take(value).map((one) => within(one, depth + 1, left));
  const kept = take(Object.entries(value)).map(([key, one]) => [key, within(one, depth + 1, left)] as const);
  return Object.fromEntries(kept);
}

/**
 * What the model is asked. The template is the owner's word; what the payload puts into it is a stranger's, and each of its texts has a
 * fence of its own. None of it is a slash command, whatever it begins with.
 */
export function promptFor(template: string, payload: Json, about: { readonly route: string; readonly event: string }) {
  const { route, event } = about;
  const wrap = (text: string) => fenced(`webhook:${route}`, text);
  const prompt =
    template.trim() === ""
      ? `Webhook event ${disarm(event)} on route ${route}:\n\n${wrap(asJson(payload, MAX_WHOLE))}`
      : fill(template, payload, event, wrap);
  return prompt.startsWith("/") ? ` ${prompt}` : prompt;
}
