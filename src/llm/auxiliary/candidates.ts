// Who is asked for a side task, in which order.
import type { Config } from "../../home/config/schema.ts";
import { isLocalEndpoint } from "../providers/hosts.ts";
import { mapping, text } from "../providers/settings.ts";
import type { Target } from "../wire.ts";
import type { AuxPlace, AuxTask } from "./contract.ts";

export type Candidate =
  | { readonly type: "main"; readonly auto: boolean }
  | { readonly type: "place"; readonly place: AuxPlace; readonly auto: boolean };

/** What an API-key provider answers cheap questions with. Providers that only work with a login are never guessed. */
const CHEAP: Readonly<Record<string, string>> = {
  openrouter: "google/gemini-3-flash-preview",
  anthropic: "claude-haiku-4-5-20251001",
  zai: "glm-4.5-flash",
  gemini: "gemini-3-flash-preview",
  "kimi-coding": "kimi-k2-turbo-preview",
  minimax: "MiniMax-M2.7",
  deepseek: "deepseek-chat",
};
const SEEING: Readonly<Record<string, string>> = { xiaomi: "mimo-v2.5", zai: "glm-5v-turbo" };

export function cheapModel(provider: string): string | undefined {
  return CHEAP[provider];
}

export interface Wish {
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
}

/** The caller's wish, then the settings, then what is at hand; at the end the chain of the settings and the main model. */
export function candidates(task: AuxTask, config: Config, main: Target, wish: Wish = {}): readonly Candidate[] {
  const settings = config.auxiliary[task];
  const provider = text(wish.provider) ?? (settings.base_url ? pick(settings.provider, "custom") : settings.provider);
  const model = text(wish.model) ?? text(settings.model);
  const chosen = text(provider) !== undefined && provider !== "auto";
  const first: readonly Candidate[] = chosen
    ? [{ type: "place", auto: false, place: { ...ownPlace(settings), provider, model } }]
    : automatic(task, main, model, ownEndpoint(config));
  const chain = settings.fallback_chain.flatMap(chained);
  const last: readonly Candidate[] =
    chosen && (task !== "vision" || main.profile.images) ? [{ type: "main", auto: false }] : [];
  // The demo is no AI: what it says about a conversation is worth nothing.
  return [...first, ...chain, ...last].filter((one) => one.type !== "main" || main.provider !== "demo");
}

/** The endpoint of the settings, for when the conversation talks to another model by now. */
function ownEndpoint({ model: { provider, default: model, base_url, api_key } }: Config): readonly Candidate[] {
  const baseUrl = text(base_url);
  if (baseUrl === undefined || text(model) === undefined) return [];
  const place = { provider: pick(text(provider) ?? "", "custom"), model: text(model), baseUrl, apiKey: text(api_key) };
  return [{ type: "place", auto: true, place }];
}

function automatic(
  task: AuxTask,
  main: Target,
  model: string | undefined,
  endpoint: readonly Candidate[],
): readonly Candidate[] {
  if (model !== undefined) {
    const place = { provider: main.provider, model, baseUrl: main.baseUrl, apiKey: main.apiKey };
    return [
      { type: "place", auto: true, place },
      { type: "main", auto: true },
    ];
  }
  const guess = (provider: string, name: string): Candidate => ({
    type: "place",
    auto: true,
    place: { provider, model: name },
  });
  const own: readonly Candidate[] = [{ type: "main", auto: true }];
  if (task === "vision") {
    const seeing = SEEING[main.provider];
    return [
      ...(main.profile.images ? own : []),
      ...(seeing ? [guess(main.provider, seeing)] : []),
      guess("openrouter", CHEAP.openrouter ?? ""),
    ];
  }
  // Whoever talks to a model on this machine does not want the talk sent elsewhere because that model is down.
  if (isLocalEndpoint(main.baseUrl) || main.provider === "demo") return own;
  const [openrouter, ...others] = Object.entries(CHEAP).map(([provider, name]) => guess(provider, name));
  return [...own, ...(openrouter ? [openrouter] : []), ...endpoint, ...others];
}

type TaskSettings = Config["auxiliary"][AuxTask];

function ownPlace(settings: TaskSettings): Partial<AuxPlace> {
  return {
    baseUrl: text(settings.base_url),
    apiKey: text(settings.api_key),
    contextLength: settings.context_length ?? undefined,
  };
}

function chained(entry: unknown): readonly Candidate[] {
  const { provider, model, base_url, api_key } = mapping(entry);
  const name = text(provider) ?? (text(base_url) ? "custom" : undefined);
  if (name === undefined) return [];
  const place = { provider: name, model: text(model), baseUrl: text(base_url), apiKey: text(api_key) };
  return [{ type: "place", auto: false, place }];
}

function pick(provider: string, otherwise: string): string {
  return provider === "" || provider === "auto" ? otherwise : provider;
}
