// How large the model's window is. First hit wins; the order goes from what the user said to what can only be guessed.

import { familyWindow, fixedWindow, UNKNOWN_WINDOW } from "./context-table.ts";
import { modelFacts, modelFactsAnywhere } from "./facts.ts";

/** What servers said about windows, kept by endpoint and model. */
export interface LearnedLimits {
  /** Named in a refusal, or by a server elsewhere that was asked once: it holds until another one is set. */
  get(baseUrl: string, model: string): Promise<number | null>;
  set(baseUrl: string, model: string, tokens: number): Promise<void>;
  /** What a server that is asked at every start said last: for whoever does not ask it. */
  lastProbed(baseUrl: string, model: string): Promise<number | null>;
  /** Never rejects: a home that cannot be written to only means that nobody remembers. */
  noteProbed(baseUrl: string, model: string, tokens: number): Promise<void>;
}

export interface WindowQuestion {
  readonly provider: string;
  readonly model: string;
  readonly baseUrl: string;
  /** `model.context_length` of the configuration. */
  readonly configured?: number | undefined;
  /** `providers.<name>.models.<model>.context_length`. */
  readonly customModel?: number | undefined;
  readonly learned?: LearnedLimits | undefined;
  /** Asks the endpoint itself (`/models`, `/api/show`); may answer null, must not throw. */
  readonly probe?: (() => Promise<number | null>) | undefined;
  /** Asks a server elsewhere, where there would only be a guess. What it says is remembered, so that it is asked once. */
  readonly lastResort?: (() => Promise<number | null>) | undefined;
}

export type WindowSource =
  | "config"
  | "custom_provider"
  | "learned"
  | "endpoint"
  | "provider"
  | "catalogue"
  | "family"
  | "default";

export interface Window {
  readonly tokens: number;
  readonly source: WindowSource;
}

export async function contextLengthOf(question: WindowQuestion): Promise<Window> {
  const { provider, model, baseUrl } = question;
  if (question.configured) return { tokens: question.configured, source: "config" };
  if (question.customModel) return { tokens: question.customModel, source: "custom_provider" };
  // LM Studio reloads a model with another window at any time; what was learned yesterday says nothing.
  const learned = provider === "lmstudio" ? null : await question.learned?.get(baseUrl, model);
  if (learned) return { tokens: learned, source: "learned" };
  const probed = await question.probe?.();
  if (probed) await question.learned?.noteProbed(baseUrl, model, probed);
  const said = probed ?? (await question.learned?.lastProbed(baseUrl, model));
  if (said) return { tokens: said, source: "endpoint" };
  const special = windowOfProvider(provider, model);
  if (special) return { tokens: special, source: "provider" };
  const fixed = fixedWindow(model);
  if (fixed) return { tokens: fixed, source: "family" };
  const published = (await modelFacts(provider, model, baseUrl)) ?? (await modelFactsAnywhere(model));
  if (published?.contextLength) return { tokens: published.contextLength, source: "catalogue" };
  const family = familyWindow(model);
  if (family) return { tokens: family, source: "family" };
  const asked = await question.lastResort?.();
  if (!asked) return { tokens: UNKNOWN_WINDOW, source: "default" };
  // A home that cannot be written to only means that it is asked again next time.
  await question.learned?.set(baseUrl, model, asked).catch(() => undefined);
  return { tokens: asked, source: "endpoint" };
}

function windowOfProvider(provider: string, model: string): number | null {
  if (provider === "demo") return 128_000;
  if (provider !== "openai-codex") return null;
  return model.toLowerCase().includes("spark") ? 128_000 : 272_000;
}
