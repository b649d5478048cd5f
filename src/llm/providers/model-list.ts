// Which models one may choose at a target: what its server lists, kept for a while; else what is published of its provider.
import { didYouMean } from "../../kit/similarity.ts";
import { modelFacts, modelsOf } from "../catalogue/facts.ts";
import type { Target } from "../wire.ts";
import { askEndpoint, type EndpointAnswer, type OfferedModel } from "./endpoint.ts";
import { isHost, isLocalEndpoint } from "./hosts.ts";
import { NO_KEY } from "./table.ts";

export type { OfferedModel } from "./endpoint.ts";

export interface ModelList {
  readonly models: readonly OfferedModel[];
  /** `server`: it has these and no others. `catalogue`: what is published, which may be old. */
  readonly source: "server" | "catalogue";
  /** Why the server could not be asked; null when it answered, or lists nothing by design. */
  readonly trouble: string | null;
}

type Place = Pick<Target, "provider" | "baseUrl" | "apiKey" | "apiMode" | "keyHosts">;

interface ListPorts {
  readonly fetch: typeof globalThis.fetch;
  now(): number;
  readonly signal?: AbortSignal | undefined;
}

/** Somebody waits in front of a list. */
const LIMIT_MS = 3000;
const FRESH_MS = 5 * 60_000;
/** A server that did not answer is asked again soon: it may have been started since. */
const RETRY_MS = 15_000;

interface Kept {
  readonly at: number;
  readonly answer: Promise<EndpointAnswer>;
  failed: boolean;
}

const kept = new Map<string, Kept>();

/** Never rejects for what the network did. */
export async function modelList(
  place: Place,
  ports: ListPorts,
  { fresh = false }: { readonly fresh?: boolean } = {},
): Promise<ModelList> {
  const answer = place.provider === "demo" ? null : await ask(place, ports, fresh);
  if (answer?.type === "answers" && answer.models.length > 0)
    return { models: answer.models, source: "server", trouble: null };
  const published = await modelsOf(place.provider);
  const models = published.map(({ id, contextLength, price }) => ({ id, contextLength, price }));
  return { models, source: "catalogue", trouble: answer && troubleOf(answer, place) };
}

function troubleOf(answer: EndpointAnswer, { baseUrl }: Place): string | null {
  if (answer.type === "unreachable") return answer.sentence;
  return answer.type === "refused" ? `${baseUrl} does not accept the key (HTTP ${answer.status}).` : null;
}

async function ask(place: Place, ports: ListPorts, fresh: boolean): Promise<EndpointAnswer> {
  const { provider, baseUrl, apiMode, keyHosts } = place;
  // A key goes to the hosts it was issued for, and nowhere else.
  const apiKey = keyHosts === undefined || isHost(baseUrl, ...keyHosts) ? place.apiKey : NO_KEY;
  const key = JSON.stringify([provider, baseUrl, apiMode, apiKey]);
  const known = kept.get(key);
  if (known && !fresh && ports.now() - known.at < (known.failed ? RETRY_MS : FRESH_MS)) return known.answer;
  const { fetch, signal } = ports;
  const answer = askEndpoint({ provider, baseUrl, apiKey, apiMode }, { fetch, signal, limitMs: LIMIT_MS });
  const entry: Kept = { at: ports.now(), answer, failed: false };
  kept.set(key, entry);
  try {
    entry.failed = (await answer).type !== "answers";
  } catch (error) {
    kept.delete(key); // whoever waited gave up; nothing is known
    throw error;
  }
  return answer;
}

/** Published of its provider: then its server need not be asked. A server of one's own has what it has. */
export async function isPublished({
  provider,
  model,
  baseUrl,
}: Pick<Target, "provider" | "model" | "baseUrl">): Promise<boolean> {
  if (provider === "custom" || isLocalEndpoint(baseUrl)) return false;
  return (await modelFacts(provider, model, baseUrl)) !== null;
}

const NEAR = 4;

/** How a name relates to a list: it is in it; it is not, but these are near; or the list cannot say. */
export type NameCheck =
  | { readonly type: "listed" }
  | { readonly type: "unlisted"; readonly near: readonly string[] }
  | { readonly type: "unknown"; readonly trouble: string | null };

export function checkName(name: string, { models, source, trouble }: ModelList): NameCheck {
  const wanted = plain(name);
  const isListed = models.some(({ id }) => {
    const own = plain(id);
    // A name without a date stands for the newest model with one.
    return own === wanted || (own.startsWith(`${wanted}-20`) && /^-20\d{6}$/.test(own.slice(wanted.length)));
  });
  if (isListed) return { type: "listed" };
  if (source !== "server") return { type: "unknown", trouble };
  const ids = models.map(({ id }) => id);
  const within = ids.filter((id) => wanted.length > 2 && (plain(id).includes(wanted) || wanted.includes(plain(id))));
  return { type: "unlisted", near: [...new Set([...didYouMean(name, ids, NEAR), ...within])].slice(0, NEAR) };
}

/** `:latest` is Ollama's word for a name without a tag; `:free`, `:online` and the like are ways to be served at OpenRouter. */
const plain = (name: string) =>
  name
    .trim()
    .toLowerCase()
    .replace(/:(?:latest|free|online|nitro|floor|thinking|extended|exacto)$/, "");
