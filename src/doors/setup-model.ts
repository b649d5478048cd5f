// Connecting a model, step by step: provider, key, model. The same steps on the command line and on the screen. Nothing is written before
// the last answer: whoever leaves, or has a key that is refused, keeps what worked.
import { chooseTarget, keysIn, saveModel } from "../agent/open-model.ts";
import { smallWindowNote, windowText } from "../agent/usage-meter.ts";
import type { PickItem } from "../commands/context.ts";
import { priceText } from "../commands/model.ts";
import type { OpenHome } from "../home/open.ts";
import { maskValue } from "../home/secrets.ts";
import { contextSize, plural } from "../kit/formats.ts";
import { modelsOf } from "../llm/catalogue/facts.ts";
import { useKeptFacts } from "../llm/catalogue/published-facts.ts";
import {
  askEndpoint,
  type EndpointAnswer,
  type FoundServer,
  findServers,
  type OfferedModel,
} from "../llm/providers/endpoint.ts";
import { hostDerivedApiKeyName, hostOf, isLocalEndpoint } from "../llm/providers/hosts.ts";
import { isUsableKey } from "../llm/providers/keys.ts";
import { cleanUrl, type RuntimeProvider, resolveRuntimeProvider } from "../llm/providers/resolve.ts";
import { customProviders, entryNameFor, ProviderError } from "../llm/providers/settings.ts";
import { LOCAL_SERVERS, PROVIDERS, type ProviderRow, providerRow } from "../llm/providers/table.ts";
import { placeOf } from "../llm/wire.ts";

/** How setup talks to its user. `pick` and `ask` throw `SetupCancelled` when the user leaves (Ctrl+C), `SetupSkipped` for Esc. */
export interface SetupSurface {
  say(text: string): void;
  warn(text: string): void;
  pick<T>(question: SetupQuestion<T>): Promise<T>;
  /** One line; empty when nothing was typed. */
  ask(prompt: string, options?: { readonly hidden?: boolean }): Promise<string>;
  /** Aborted when the user leaves while something is being waited for. */
  readonly signal: AbortSignal;
}

export interface SetupQuestion<T> {
  readonly title: string;
  readonly choices: readonly PickItem<T>[];
  readonly selected?: number;
}

export class SetupCancelled extends Error {
  override name = "SetupCancelled";
}

/** Only this step is left out. Where it is the only one, that is leaving. */
export class SetupSkipped extends SetupCancelled {
  override name = "SetupSkipped";
}

export interface SetupParts {
  readonly home: OpenHome;
  readonly surface: SetupSurface;
  readonly fetch: typeof globalThis.fetch;
  /** Where servers of this machine are looked for; the usual ports. */
  readonly servers?: Readonly<Record<string, string>>;
}

/** Ollama, LM Studio, vLLM and llama.cpp where they listen when nobody says otherwise. */
const USUAL_SERVERS: Readonly<Record<string, string>> = {
  ...LOCAL_SERVERS,
  lmstudio: providerRow("lmstudio")?.baseUrl ?? "",
};

const SERVER_NAMES: Readonly<Record<string, string>> = {
  ollama: "Ollama",
  lmstudio: "LM Studio",
  vllm: "vLLM",
  llamacpp: "llama.cpp",
};

const START_HINTS: Readonly<Record<string, string>> = {
  ollama: "Start it with: ollama serve",
  lmstudio: "Start its server in LM Studio under Developer, or with: lms server start",
  vllm: "Start it with: vllm serve MODEL",
  llamacpp: "Start it with: llama-server -m MODEL.gguf",
};

/** What a user has chosen so far; nothing of it is written yet. */
interface Draft {
  /** For people. */
  readonly name: string;
  /** What `model.provider` becomes. */
  readonly provider: string;
  readonly row?: ProviderRow;
  /** Address of a server that the table does not know. */
  readonly baseUrl?: string;
  /** Variables to write to .env. */
  readonly variables: Readonly<Record<string, string>>;
  /** The variable its key goes to. */
  readonly keyEnv?: string;
}

/** Resolves when a model is connected and saved. */
export async function setUpModel(parts: SetupParts): Promise<{ readonly provider: string; readonly model: string }> {
  const { home, surface, fetch, servers = USUAL_SERVERS } = parts;
  await useKeptFacts(home);
  const found = await findServers(servers, { fetch, signal: surface.signal });
  for (;;) {
    const chosen = await pickProvider(parts, found, servers);
    const ready = chosen === null ? null : await connect(chosen, parts);
    if (ready === null) continue;
    const model = await pickModel(ready, parts);
    return save(ready.draft, model, parts);
  }
}

// Which provider.

/** The common ones stand first; the others follow as the table lists them. */
const COMMON = ["openrouter", "anthropic", "openai-api", "gemini"];
const COMMON_NAMES: Readonly<Record<string, string>> = { gemini: "Google (Gemini)" };

type Offer = { readonly row: ProviderRow } | { readonly server: string; readonly baseUrl: string } | "local" | "other";

/** Null = back to the list. */
async function pickProvider(
  parts: SetupParts,
  found: readonly FoundServer[],
  servers: Readonly<Record<string, string>>,
): Promise<Draft | null> {
  const { home, surface } = parts;
  const rows = PROVIDERS.filter((row) => row.auth === "api_key" && row.keyEnv.length > 0);
  const offer = (row: ProviderRow): PickItem<Offer> => ({
    label: COMMON_NAMES[row.id] ?? row.name,
    hint: keyHint(row, home),
    search: `${row.id} ${row.name}`,
    value: { row },
  });
  const byKey = rows.filter((row) => row.auto && keyHint(row, home) !== "");
  const common = COMMON.flatMap((id) => rows.filter((row) => row.id === id));
  const first = [...byKey, ...common.filter((row) => !byKey.includes(row))];
  const choices: PickItem<Offer>[] = [
    ...found.map(({ provider, baseUrl, models }) => ({
      label: SERVER_NAMES[provider] ?? provider,
      hint: `running here, ${plural(models.length, "model")}`,
      value: { server: provider, baseUrl },
    })),
    ...first.map(offer),
    { label: "A server on this machine", hint: "Ollama, LM Studio, vLLM, llama.cpp", value: "local" },
    { label: "Another OpenAI-compatible server", hint: "by URL", value: "other" },
    ...rows.filter((row) => !first.includes(row)).map(offer),
  ];
  const chosen = await surface.pick({ title: "Which provider?", choices });
  if (chosen === "other") return askForServer(parts);
  if (chosen === "local") return pickServer(parts, servers);
  if ("server" in chosen) return serverDraft(chosen.server);
  const { row } = chosen;
  return {
    name: COMMON_NAMES[row.id] ?? row.name,
    provider: row.id,
    row,
    variables: {},
    keyEnv: row.keyEnv[0] as string,
  }; // rows without one are not offered
}

function keyHint(row: ProviderRow, home: OpenHome): string {
  const name = row.keyEnv.find((variable) => isUsableKey(home.env(variable)));
  return name === undefined ? "" : `key found: ${name}`;
}

const serverDraft = (server: string): Draft => ({
  name: SERVER_NAMES[server] ?? server,
  provider: server,
  variables: {},
});

async function pickServer(parts: SetupParts, servers: Readonly<Record<string, string>>): Promise<Draft | null> {
  const chosen = await parts.surface.pick<string | null>({
    title: "Which server?",
    choices: [
      ...Object.entries(servers).map(([id, url]) => ({ label: SERVER_NAMES[id] ?? id, hint: url, value: id })),
      { label: "Another URL", value: "" },
      { label: "Back", value: null },
    ],
  });
  if (chosen === null) return null;
  return chosen === "" ? askForServer(parts) : serverDraft(chosen);
}

async function askForServer({ home, surface }: SetupParts): Promise<Draft | null> {
  for (;;) {
    const typed = (await surface.ask("Server URL, e.g. http://127.0.0.1:8000/v1: ")).trim();
    if (typed === "") return null;
    try {
      const baseUrl = cleanUrl(typed);
      const known = customProviders(home.config()).find(
        (entry) => entry.baseUrl && cleanUrl(entry.baseUrl) === baseUrl,
      );
      const keyEnv = known?.keyEnv ?? keyNameFor(baseUrl);
      return { name: new URL(baseUrl).host, provider: known?.slug ?? "custom", baseUrl, variables: {}, keyEnv };
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      surface.warn(error.message);
    }
  }
}

/** A variable of its own for each server; never the one of a known provider. */
function keyNameFor(baseUrl: string): string {
  const derived = hostDerivedApiKeyName(baseUrl);
  const taken = PROVIDERS.some(({ keyEnv }) => derived !== null && keyEnv.includes(derived));
  if (derived !== null && /^[A-Z_]/.test(derived) && !taken) return derived;
  return `CUSTOM_${entryNameFor(baseUrl).replaceAll("-", "_").toUpperCase()}_API_KEY`;
}

// Its key, and whether the server accepts it.

interface Ready {
  readonly draft: Draft;
  readonly runtime: RuntimeProvider;
  readonly models: readonly OfferedModel[];
}

/** Null = back to the list of providers. */
async function connect(chosen: Draft, parts: SetupParts): Promise<Ready | null> {
  const { surface } = parts;
  let draft = chosen;
  let asksForKey = draft.row !== undefined && (await wantsAnotherKey(draft, parts));
  let asked = false;
  let needed = draft.row !== undefined;
  for (;;) {
    if (asksForKey) {
      asked = true;
      const typed = await askForKey(draft, needed, parts);
      if (typed === null) return null;
      if (typed !== "" && draft.keyEnv) draft = { ...draft, variables: { ...draft.variables, [draft.keyEnv]: typed } };
      asksForKey = false;
    }
    draft = await withAddress(draft, parts);
    const runtime = await runtimeOf(draft, parts.home);
    surface.say(`Asking ${new URL(runtime.baseUrl).host} ...`);
    const answer = await askEndpoint(runtime, { fetch: parts.fetch, signal: surface.signal });
    // Some servers list their models for anybody and want a key for everything else.
    const may = answer.type === "answers" && draft.baseUrl && !carriesKey(runtime) && !isLocalEndpoint(draft.baseUrl);
    const next = may && !asked ? "key" : await judge(answer, draft, runtime, parts);
    if (next === "back") return null;
    if (next === "key") asksForKey = true;
    needed ||= answer.type === "refused";
    if (next === "go") return { draft, runtime, models: answer.type === "answers" ? answer.models : [] };
    if (typeof next === "object") draft = next;
  }
}

/** True: the user is to be asked for a key. Without one that is there, he is. */
async function wantsAnotherKey(draft: Draft, { home, surface }: SetupParts): Promise<boolean> {
  const runtime = await runtimeOf(draft, home).catch((error: unknown) => {
    if (error instanceof ProviderError) return null;
    throw error;
  });
  if (runtime === null || !carriesKey(runtime)) return true;
  return surface.pick({
    title: `Key for ${draft.name}`,
    choices: [
      { label: `Use ${sourceWords(runtime.source, home)}`, hint: maskValue(runtime.apiKey), value: false },
      { label: "Enter another key", value: true },
    ],
  });
}

/** Where a key comes from, for people. */
function sourceWords(source: string, home: OpenHome): string {
  if (source.startsWith("env:")) {
    const name = source.slice("env:".length);
    return `${name} from ${home.envSource(name) ?? "the environment"}`;
  }
  if (source === "config") return `the key in ${home.display(home.paths.configFile)}`;
  return source === "pool" ? "the key from hermes auth" : "the key you gave";
}

/** Null: skipped. Empty: the server needs none. */
async function askForKey(draft: Draft, needed: boolean, { surface }: SetupParts): Promise<string | null> {
  for (;;) {
    const otherwise = needed ? "Enter = choose another provider" : "Enter = no key needed";
    const typed = (await surface.ask(`API key for ${draft.name} (not shown; ${otherwise}): `, { hidden: true })).trim();
    if (typed === "") return needed ? null : "";
    if (/^[\x21-\x7e]+$/.test(typed)) return typed;
    surface.warn("This contains characters that keys never contain. Copy the key again.");
  }
}

/** Some providers give every customer an address of their own. */
async function withAddress(draft: Draft, { home, surface }: SetupParts): Promise<Draft> {
  const variable = draft.row?.baseUrl === "" ? draft.row.baseUrlEnv : undefined;
  if (!variable || draft.variables[variable] || home.env(variable)) return draft;
  for (;;) {
    const typed = (await surface.ask(`Your endpoint URL at ${draft.name} (https://...): `)).trim();
    try {
      return { ...draft, variables: { ...draft.variables, [variable]: cleanUrl(typed) } };
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      surface.warn(error.message);
    }
  }
}

/** The runtime as it would be if the draft were saved. */
async function runtimeOf(draft: Draft, home: OpenHome): Promise<RuntimeProvider> {
  const config = home.config();
  const kept = draft.baseUrl && draft.keyEnv ? home.env(draft.keyEnv) : undefined;
  const typed = (draft.keyEnv ? draft.variables[draft.keyEnv] : undefined) ?? kept;
  const { pooled } = draft.row ? await keysIn(home) : {};
  return resolveRuntimeProvider({
    requested: draft.baseUrl ? "custom" : draft.provider,
    baseUrl: draft.baseUrl,
    apiKey: typed,
    config: draft.baseUrl ? { ...config, model: {} } : config,
    env: (name) => draft.variables[name] ?? home.env(name),
    ...(pooled ? { pooled } : {}),
  });
}

/** A key that belongs to no host is none: it only fills the header. */
const carriesKey = ({ keyHosts }: RuntimeProvider) => keyHosts.length > 0;

type Next = "go" | "key" | "again" | "back" | Draft;

async function judge(answer: EndpointAnswer, draft: Draft, runtime: RuntimeProvider, parts: SetupParts): Promise<Next> {
  const { surface } = parts;
  const gave = carriesKey(runtime);
  const tell = (title: string, first: PickItem<Next>) =>
    surface.pick<Next>({
      title,
      choices: [
        first,
        { label: "Keep it anyway", value: "go" },
        { label: "Skip: choose another provider", value: "back" },
      ],
    });
  switch (answer.type) {
    case "answers":
      if (gave && answer.keyChecked) surface.say("✓ The server accepts the key.");
      else if (gave)
        surface.say(
          "The server lists its models without checking keys; your first message will show whether the key works.",
        );
      return "go";
    case "refused":
      if (!gave && !draft.row) {
        surface.say("The server requires a key.");
        return "key";
      }
      return tell(`The server did not accept this key (HTTP ${answer.status}).`, {
        label: "Enter the key again",
        value: "key",
      });
    case "no_list": {
      const deeper = answer.status === 404 && draft.baseUrl ? withVersion(draft.baseUrl) : null;
      if (deeper) return { ...draft, baseUrl: deeper };
      // Not every provider lists its models; nothing is known about the key then.
      if (answer.status < 500 && draft.row) return "go";
      return tell(`${hostOf(runtime.baseUrl)} answers, but did not list its models (HTTP ${answer.status}).`, {
        label: "Try again",
        value: "again",
      });
    }
    case "unreachable": {
      const start = START_HINTS[draft.provider];
      const title = [answer.sentence, ...(start ? [start] : [])].join("\n");
      return tell(title, { label: "Try again", value: "again" });
    }
  }
}

/** People give the address of the server and leave `/v1` out. */
function withVersion(baseUrl: string): string | null {
  const { pathname } = new URL(baseUrl);
  return pathname === "/" || pathname === "" ? `${baseUrl.replace(/\/$/, "")}/v1` : null;
}

// Its model.

async function pickModel({ draft, runtime, models }: Ready, { home, surface }: SetupParts): Promise<string> {
  const listed = models.length > 0 ? models : (await modelsOf(runtime.provider)).map(publishedModel);
  const present = home.config().model.default;
  if (listed.length > 0) {
    const chosen = await surface.pick<string | null>({
      title: "Which model? (context window, price per million tokens in / out)",
      choices: [
        ...listed.map((model) => ({
          label: model.id,
          hint: [model.contextLength ? contextSize(model.contextLength) : "", priceText(model.price)],
          value: model.id,
        })),
        { label: "Other: type its name", hint: ["", ""], value: null },
      ],
      selected: Math.max(
        0,
        listed.findIndex(({ id }) => id === present),
      ),
    });
    if (chosen !== null) return chosen;
  }
  for (;;) {
    const typed = (await surface.ask(`Name of the model at ${draft.name}: `)).trim();
    if (typed !== "") return typed;
  }
}

const publishedModel = ({ id, contextLength, price }: OfferedModel): OfferedModel => ({ id, contextLength, price });

// Writing it down.

async function save(draft: Draft, model: string, { home, surface }: SetupParts) {
  const { variables, keyEnv, baseUrl, row } = draft;
  const hasKey = keyEnv !== undefined && (variables[keyEnv] !== undefined || (!row && isUsableKey(home.env(keyEnv))));
  // A server of one's own with a key is an entry of `providers:`, which names the variable; without a key its address is enough.
  const known = draft.provider !== "custom";
  const entry =
    baseUrl && hasKey ? { name: known ? draft.provider : entryNameFor(baseUrl), baseUrl, keyEnv } : undefined;
  for (const [name, value] of Object.entries(variables)) await home.setEnv(name, value);
  const provider = entry?.name ?? draft.provider;
  const newKey = keyEnv !== undefined && variables[keyEnv] !== undefined;
  await saveModel(home, { provider, model, baseUrl: entry ? undefined : baseUrl, entry, newKey }, { backup: true });
  const { target } = await chooseTarget(home, {});
  const lines = [`✓ ${target.model} at ${placeOf(target)}, ${windowText(target)}.`];
  if (newKey) lines.push(`✓ Key saved in ${home.display(home.paths.envFile)} as ${keyEnv}.`);
  surface.say(lines.join("\n"));
  const small = isLocalEndpoint(target.baseUrl) ? smallWindowNote(target) : null;
  if (small !== null) surface.warn(small);
  return { provider, model };
}
