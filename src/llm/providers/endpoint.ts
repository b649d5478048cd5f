// One look at an endpoint before it is used: does it answer, does it accept the key, which models does it offer? A list of models costs
// nothing, so this is the cheap call that setup and doctor verify a key with.

import { failureCode, failureWords, MAX_ANSWER_BYTES, textOf } from "../../kit/http.ts";
import { modelFacts } from "../catalogue/facts.ts";
import type { ApiMode } from "../wire.ts";
import { hostOf, isHost, isLocalEndpoint } from "./hosts.ts";
import { mapping } from "./settings.ts";
import { LMSTUDIO_KEY, NO_KEY, providerRow } from "./table.ts";

export interface OfferedModel {
  readonly id: string;
  readonly contextLength: number | null;
  /** US dollars per million tokens; null = not known, 0 and 0 = free. */
  readonly price: { readonly input: number; readonly output: number } | null;
}

/**
 * - `answers`: the models may be none. `keyChecked` is false where the list is public, or where the key was not asked for.
 * - `refused`: about the key, whichever was sent.
 * - `no_list`: it answers, but says nothing about models (and so nothing about the key).
 * - `unreachable`: one sentence about it, without the names of system errors.
 */
export type EndpointAnswer =
  | { readonly type: "answers"; readonly models: readonly OfferedModel[]; readonly keyChecked: boolean }
  | { readonly type: "refused"; readonly status: number }
  | { readonly type: "no_list"; readonly status: number }
  | { readonly type: "unreachable"; readonly sentence: string };

interface Endpoint {
  readonly provider: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly apiMode: ApiMode;
}

interface AskPorts {
  readonly fetch: typeof globalThis.fetch;
  readonly signal?: AbortSignal | undefined;
  /** Default 10,000. */
  readonly limitMs?: number;
}

/** Never rejects for what the network did; only when `signal` is aborted. */
export async function askEndpoint(endpoint: Endpoint, ports: AskPorts): Promise<EndpointAnswer> {
  const list = listUrl(endpoint);
  const hasKey = isKey(endpoint.apiKey);
  const checked = hasKey && KEY_PATHS[hostOf(endpoint.baseUrl)];
  const [answer, aboutKey] = await Promise.all([
    get(list, headersFor(endpoint, endpoint.apiKey), ports),
    // Where anybody gets the list, the list says nothing about the key.
    hasKey
      ? get(
          checked ? `${trimmed(endpoint.baseUrl)}${checked}` : list,
          headersFor(endpoint, checked ? endpoint.apiKey : ""),
          ports,
        )
      : null,
  ]);
  if (typeof answer === "string") return { type: "unreachable", sentence: answer };
  if (isRefusal(answer) || (checked && aboutKey && typeof aboutKey !== "string" && isRefusal(aboutKey)))
    return { type: "refused", status: isRefusal(answer) ? answer.status : 401 };
  const entries = answer.status < 300 ? entriesOf(answer.body) : null;
  if (entries === null) return { type: "no_list", status: answer.status };
  const asked = aboutKey !== null && typeof aboutKey !== "string";
  const keyChecked = asked && (checked ? aboutKey.status < 300 : isRefusal(aboutKey));
  return { type: "answers", models: await modelsIn(entries, endpoint), keyChecked };
}

/** Their lists are public; these paths want the key. */
const KEY_PATHS: Readonly<Record<string, string>> = { "openrouter.ai": "/key" };

const trimmed = (url: string) => url.replace(/(?<!\/)\/+$/, "");
const isKey = (key: string) => key !== "" && key !== NO_KEY && key !== LMSTUDIO_KEY;

function listUrl({ baseUrl, apiMode }: Endpoint): string {
  return `${trimmed(baseUrl)}${apiMode === "anthropic_messages" ? "/v1/models?limit=1000" : "/models"}`;
}

function headersFor({ provider, baseUrl, apiMode }: Endpoint, apiKey: string): Record<string, string> {
  const bearer = isKey(apiKey) ? { authorization: `Bearer ${apiKey}` } : undefined;
  if (apiMode !== "anthropic_messages") return { ...bearer };
  const oauth = /^(?:sk-ant-(?!api)|eyJ|cc-)/.test(apiKey);
  const plain = oauth || provider.startsWith("minimax") || isHost(baseUrl, "azure.com", "minimax.io", "minimaxi.com");
  return {
    "anthropic-version": "2023-06-01",
    ...(oauth ? { "anthropic-beta": "oauth-2025-04-20" } : {}),
    ...(plain || !bearer ? bearer : { "x-api-key": apiKey }),
  };
}

interface Got {
  readonly status: number;
  readonly body: unknown;
  readonly text: string;
}

/** A text is a sentence about why nothing came. */
async function get(url: string, headers: Record<string, string>, ports: AskPorts): Promise<Got | string> {
  const { fetch, signal, limitMs = 10_000 } = ports;
  const limit = AbortSignal.timeout(limitMs);
  const root = new URL(url).origin;
  try {
    // A key must not follow a redirect to another host.
    const both = signal ? AbortSignal.any([signal, limit]) : limit;
    const response = await fetch(url, {
      headers: { accept: "application/json", ...headers },
      redirect: "manual",
      signal: both,
    });
    const text = await textOf(response, MAX_ANSWER_BYTES);
    return { status: response.status, text, body: parsed(text) };
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (limit.aborted) return `${root} did not answer within ${limitMs / 1000} s.`;
    return troubleSentence(root, error);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a page of a proxy, or of another program on that port
  }
}

function troubleSentence(root: string, error: unknown): string {
  const code = failureCode(error);
  if (code === "ECONNREFUSED") return `Nothing is running at ${root}.`;
  if (code === "ENOTFOUND") return `Host not found: ${new URL(root).hostname}. Check the URL and your network.`;
  return `${root} ${failureWords(error)}.`;
}

/** Google answers a wrong key with 400 and says so in the text. */
function isRefusal({ status, text }: Got): boolean {
  if (status === 401 || status === 403) return true;
  return (
    status === 400 &&
    /api[ _-]?key/i.test(text.slice(0, 2000)) &&
    /invalid|not valid|incorrect/i.test(text.slice(0, 2000))
  );
}

type Fields = Readonly<Record<string, unknown>>;

/** Null: not a list of models. */
function entriesOf(body: unknown): readonly Fields[] | null {
  const { data, models } = mapping(body);
  const list = [body, data, models].find(Array.isArray);
  return list ? list.map(mapping) : null;
}

/** What makes no text is not offered, unless there is nothing else. */
const NOT_FOR_TALKING =
  /(?:^|[-/_.])(?:embed(?:ding)?s?|whisper|tts|dall-e|moderation|rerank(?:er)?|transcribe|realtime|sora|imagen|veo|aqa)(?:[-/_.:]|$)/i;

async function modelsIn(entries: readonly Fields[], endpoint: Endpoint): Promise<readonly OfferedModel[]> {
  const named = entries.flatMap((entry) => {
    const id = [entry.id, entry.key, entry.name].find((name) => typeof name === "string" && name !== "");
    return typeof id === "string" ? [{ id: id.replace(/^models\//, ""), entry }] : [];
  });
  const talking = named.filter(({ id }) => !NOT_FOR_TALKING.test(id));
  const dated = named.every(({ entry }) => typeof entry.created === "number" && entry.created > 0);
  const shown = talking.length > 0 ? talking : named;
  // Newest first where the server says when; two thirds of a long list are old.
  const ordered = dated ? shown.toSorted((a, b) => Number(b.entry.created) - Number(a.entry.created)) : shown;
  return Promise.all(ordered.map(({ id, entry }) => describe(id, entry, endpoint)));
}

const WINDOW_KEYS = [
  "loaded_context_length",
  "max_model_len",
  "context_length",
  "context_window",
  "max_context_length",
  "max_input_tokens",
];

async function describe(id: string, entry: Fields, { provider, baseUrl }: Endpoint): Promise<OfferedModel> {
  const said = WINDOW_KEYS.map((key) => entry[key]).find((value) => typeof value === "number" && value > 0);
  const facts = await modelFacts(provider, id, baseUrl);
  const free = isLocalEndpoint(baseUrl) || providerRow(provider)?.subscription;
  return {
    id,
    contextLength: typeof said === "number" ? said : (facts?.contextLength ?? null),
    price: free ? { input: 0, output: 0 } : (listedPrice(entry) ?? facts?.price ?? null),
  };
}

/** OpenRouter and those who copy it: dollars per token, as text. */
function listedPrice({ pricing }: Fields): OfferedModel["price"] {
  const { prompt, completion } = mapping(pricing);
  const [input, output] = [prompt, completion].map((value) => Number(value) * 1e6);
  if (prompt === undefined || !(input !== undefined && input >= 0) || !(output !== undefined && output >= 0))
    return null;
  return { input: Number(input.toPrecision(6)), output: Number(output.toPrecision(6)) };
}

// Servers that people run on their own machine, found by their usual ports.

export interface FoundServer {
  readonly provider: string;
  readonly baseUrl: string;
  readonly models: readonly OfferedModel[];
}

/** Asks all of them at once; who does not answer soon is not there. */
export async function findServers(
  servers: Readonly<Record<string, string>>,
  ports: AskPorts,
): Promise<readonly FoundServer[]> {
  const found = await Promise.all(
    Object.entries(servers).map(async ([provider, baseUrl]) => {
      const endpoint: Endpoint = { provider, baseUrl, apiKey: "", apiMode: "chat_completions" };
      const answer = await askEndpoint(endpoint, { limitMs: 1000, ...ports });
      return answer.type === "answers" ? [{ provider, baseUrl, models: answer.models }] : [];
    }),
  );
  return found.flat();
}
