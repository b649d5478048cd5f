// A route, as the settings or a subscription have it. What is wrong with one is said where it is read, so that no delivery meets half a route.
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import { isLoopbackHost } from "../../../http.ts";
import type { AdapterHost } from "../../contract.ts";
import { isYes, listIn } from "../../groups.ts";
import { type Filter, readFilters } from "./payload.ts";

const HOST = "127.0.0.1";
const PORT = 8644;

/** Where we listen. */
export function addressOf(option: AdapterHost["option"]) {
  const host = asText(option("host", "WEBHOOK_HOST")).trim() || HOST;
  return { host, port: Number(option("port", "WEBHOOK_PORT") ?? PORT) };
}

/** Instead of a secret: anybody on this machine may call the route. */
export const NO_AUTH = "INSECURE_NO_AUTH";

export interface Route {
  readonly name: string;
  readonly source: "config" | "subscribed";
  readonly enabled: boolean;
  /** Empty: there is none. */
  readonly secret: string;
  /** Empty: all. */
  readonly events: readonly string[];
  readonly filters: readonly Filter[];
  readonly prompt: string;
  readonly skills: readonly string[];
  /** `log`, `github_comment` or a target string. */
  readonly deliver: string;
  /** Values may hold places of the payload. */
  readonly deliverExtra: Readonly<Record<string, string>>;
  readonly deliverOnly: boolean;
  /** Why nothing can be delivered to it. */
  readonly problem: string | null;
}

/** The name of a route as it stands in an address. */
const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;
const HERE = new Set(["", "log", "local", "origin"]);

export const isLogged = (route: Pick<Route, "deliver">) => HERE.has(route.deliver);

export function readRoute(name: string, written: unknown, source: Route["source"], commonSecret: string): Route {
  const row = asRecord(written);
  const filters = readFilters(row.filters);
  const deliver = asText(row.deliver).trim();
  const route = {
    ...{ name, source, deliver },
    enabled: isYes(row.enabled, true),
    secret: String(row.secret ?? "").trim() || commonSecret,
    events: [...listIn(row.events)],
    filters: typeof filters === "string" ? [] : filters,
    prompt: asText(row.prompt),
    skills: [...listIn(row.skills)],
    deliverExtra: Object.fromEntries(
      Object.entries(asRecord(row.deliver_extra)).map(([key, value]) => [key, String(value ?? "")]),
    ),
    deliverOnly: isYes(row.deliver_only, false),
  };
  return { ...route, problem: problemOf(route, row, filters) };
}

function problemOf(route: Omit<Route, "problem">, row: Json, filters: unknown): string | null {
  if (!NAME.test(route.name)) return "its name may only have letters, digits, '_', '-' and '.'";
  if (typeof filters === "string") return filters;
  // Running without what decides which deliveries count would be worse than not running.
  for (const key of ["script", "profile"])
    if (asText(row[key]) !== "") return `"${key}" is not supported; remove it from the route`;
  if (route.deliverOnly && isLogged(route))
    return 'deliver_only needs a target in "deliver", such as telegram or github_comment';
  return null;
}

export const commonSecret = (option: AdapterHost["option"]) => String(option("secret", "WEBHOOK_SECRET") ?? "").trim();

/** The routes of the settings. */
export function configuredRoutes(option: AdapterHost["option"]): readonly Route[] {
  const secret = commonSecret(option);
  return Object.entries(asRecord(option("routes"))).map(([name, row]) => readRoute(name, row, "config", secret));
}

/** Why a route may not be called from where we listen; null: it may. */
export function exposure(route: Pick<Route, "secret">, host: string): string | null {
  if (route.secret === "") return "it has no secret";
  // Not by its word: that stands where secrets stand, and is masked like one.
  if (route.secret === NO_AUTH && !isLoopbackHost(host)) return "it checks no signature, which is only for 127.0.0.1";
  return null;
}
