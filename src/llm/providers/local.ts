// Servers on this machine or network: which one it is, what it has loaded, how large its window really is.
// Every question has two seconds; a failed one is remembered word for word, because "wrong port" is the usual reason.

import { messageOf } from "../../kit/errors.ts";
import { MAX_ANSWER_BYTES, type ShortFetch, textOf } from "../../kit/http.ts";
import { isLocalEndpoint } from "./hosts.ts";
import type { RuntimeProvider } from "./resolve.ts";
import { mapping } from "./settings.ts";
import { LMSTUDIO_KEY, NO_KEY } from "./table.ts";
import type { ProbedModel } from "./target.ts";

export type LocalServer = "lmstudio" | "ollama" | "llamacpp" | "vllm";

interface ProbePorts {
  readonly fetch: ShortFetch;
  readonly apiKey?: string;
  readonly signal?: AbortSignal;
  /** Default 2,000. */
  readonly limitMs?: number;
}

interface Detection {
  readonly server: LocalServer | null;
  /** What was asked and what came back, e.g. `GET http://127.0.0.1:11434/api/tags: ECONNREFUSED`. */
  readonly attempts: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;
type Answer = { readonly ok: true; readonly body: unknown } | { readonly ok: false; readonly attempt: string };

const SIGNS: readonly {
  readonly path: string;
  readonly server: LocalServer;
  readonly fits: (body: Fields) => boolean;
}[] = [
  {
    path: "/api/v1/models",
    server: "lmstudio",
    fits: (body) => Array.isArray(body.models) || Array.isArray(body.data),
  },
  { path: "/api/tags", server: "ollama", fits: (body) => Array.isArray(body.models) },
  { path: "/v1/props", server: "llamacpp", fits: (body) => body.default_generation_settings !== undefined },
  { path: "/props", server: "llamacpp", fits: (body) => body.default_generation_settings !== undefined },
  { path: "/version", server: "vllm", fits: (body) => typeof body.version === "string" },
];

export async function detectLocalServer(baseUrl: string, ports: ProbePorts): Promise<Detection> {
  const attempts: string[] = [];
  for (const { path, server, fits } of SIGNS) {
    const answer = await ask(`${rootOf(baseUrl)}${path}`, ports);
    if (answer.ok && fits(mapping(answer.body))) return { server, attempts };
    attempts.push(answer.ok ? `GET ${rootOf(baseUrl)}${path}: another kind of answer` : answer.attempt);
    if (!answer.ok && answer.attempt.endsWith("ECONNREFUSED")) break;
  }
  return { server: null, attempts };
}

export type ModelList =
  | { readonly ok: true; readonly models: readonly string[] }
  | { readonly ok: false; readonly attempt: string };

/** The models an endpoint offers at `/models`. */
export async function listEndpointModels(baseUrl: string, ports: ProbePorts): Promise<ModelList> {
  const answer = await ask(`${baseUrl}/models`, ports);
  if (!answer.ok) return answer;
  return {
    ok: true,
    models: entriesOf(answer.body).flatMap((entry) => (typeof entry.id === "string" ? [entry.id] : [])),
  };
}

/** Asks a local server for the window of a model; null for endpoints that are not local and servers that do not say. */
export async function probeLocalModel(
  runtime: Pick<RuntimeProvider, "baseUrl" | "apiKey">,
  model: string,
  ports: ProbePorts,
): Promise<ProbedModel | null> {
  const { baseUrl } = runtime;
  if (!isLocalEndpoint(baseUrl)) return null;
  const withKey: ProbePorts = { apiKey: runtime.apiKey, ...ports };
  const { server } = await detectLocalServer(baseUrl, withKey);
  switch (server) {
    case "ollama":
      return ollamaWindow(baseUrl, model, withKey);
    case "llamacpp":
      return llamaCppWindow(baseUrl, withKey);
    case "lmstudio":
      return listedWindow(`${rootOf(baseUrl)}/api/v1/models`, model, withKey);
    default:
      return listedWindow(`${baseUrl}/models`, model, withKey);
  }
}

/** What a server elsewhere lists as the window of a model; null when it does not say. */
export function probeListedModel(
  { baseUrl, apiKey }: Pick<RuntimeProvider, "baseUrl" | "apiKey">,
  model: string,
  ports: ProbePorts,
): Promise<ProbedModel | null> {
  return listedWindow(`${baseUrl}/models`, model, { apiKey, ...ports });
}

/** The Modelfile's `num_ctx`, else what the model was made for. */
async function ollamaWindow(baseUrl: string, model: string, ports: ProbePorts): Promise<ProbedModel | null> {
  const answer = await ask(`${rootOf(baseUrl)}/api/show`, ports, { model });
  if (!answer.ok) return null;
  const { parameters, model_info } = mapping(answer.body);
  const written = /^num_ctx\s+(\d+)/m.exec(typeof parameters === "string" ? parameters : "")?.[1];
  const made = Object.entries(mapping(model_info)).find(([key]) => key.endsWith(".context_length"))?.[1];
  const tokens = written ? Number(written) : made;
  return typeof tokens === "number" && tokens > 0 ? { contextLength: tokens, numCtx: tokens } : null;
}

async function llamaCppWindow(baseUrl: string, ports: ProbePorts): Promise<ProbedModel | null> {
  for (const path of ["/v1/props", "/props"]) {
    const answer = await ask(`${rootOf(baseUrl)}${path}`, ports);
    const tokens = answer.ok ? mapping(mapping(answer.body).default_generation_settings).n_ctx : null;
    if (typeof tokens === "number" && tokens > 0) return { contextLength: tokens };
  }
  return null;
}

const WINDOW_KEYS = [
  "loaded_context_length",
  "max_model_len",
  "context_length",
  "context_window",
  "max_context_length",
];

async function listedWindow(url: string, model: string, ports: ProbePorts): Promise<ProbedModel | null> {
  const answer = await ask(url, ports);
  if (!answer.ok) return null;
  const entry = entriesOf(answer.body).find(({ id, key }) => id === model || key === model);
  if (!entry) return null;
  const instances = Array.isArray(entry.loaded_instances) ? entry.loaded_instances : [];
  const loaded = mapping(mapping(instances[0]).config).context_length;
  const tokens = [loaded, ...WINDOW_KEYS.map((key) => entry[key])].find(
    (value) => typeof value === "number" && value > 0,
  );
  return typeof tokens === "number" ? { contextLength: tokens } : null;
}

function entriesOf(body: unknown): readonly Fields[] {
  const { data, models } = mapping(body);
  const list = Array.isArray(data) ? data : Array.isArray(models) ? models : [];
  return list.map(mapping);
}

async function ask(url: string, ports: ProbePorts, body?: unknown): Promise<Answer> {
  const { fetch, apiKey, signal, limitMs = 2000 } = ports;
  const method = body === undefined ? "GET" : "POST";
  const limit = AbortSignal.timeout(limitMs);
  try {
    const response = await fetch(url, {
      method,
      // A key must not follow a redirect to another host.
      redirect: "error",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      headers: {
        ...(apiKey && apiKey !== NO_KEY && apiKey !== LMSTUDIO_KEY ? { authorization: `Bearer ${apiKey}` } : {}),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await textOf(response, MAX_ANSWER_BYTES);
    if (!response.ok) return { ok: false, attempt: `${method} ${url}: HTTP ${response.status}` };
    return { ok: true, body: JSON.parse(text) };
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    const reason = limit.aborted ? `no response within ${limitMs / 1000} s` : reasonOf(error);
    return { ok: false, attempt: `${method} ${url}: ${reason}` };
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : null;
  const code = mapping(cause).code ?? mapping(error).code;
  if (typeof code === "string") return code;
  return error instanceof SyntaxError ? "no JSON" : messageOf(error);
}

function rootOf(baseUrl: string): string {
  return baseUrl.replace(/(?<!\/)\/+$/, "").replace(/\/v1$/, "");
}
