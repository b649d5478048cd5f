// A place to send requests to, and a request to send there, with everything a test does not care about filled in.
import type { ApiMode, ModelEvent, ModelRequest, ProviderProfile, Target, Wire } from "../../src/llm/wire.ts";

export const plainProfile: ProviderProfile = {
  maxTokensField: "max_tokens",
  developerRole: false,
  reasoningStyle: "none",
  echoReasoning: false,
  streamUsage: true,
  images: true,
  cacheLayout: "none",
  thinkingReplay: "native",
};

export function aTarget(
  apiMode: ApiMode,
  { profile, ...rest }: Partial<Omit<Target, "profile">> & { profile?: Partial<ProviderProfile> } = {},
): Target {
  return {
    provider: "custom",
    model: "fake-model",
    baseUrl: "http://127.0.0.1:9/v1",
    apiKey: "test-key-0123456789",
    apiMode,
    contextLength: 200_000,
    ...rest,
    profile: { ...plainProfile, ...profile },
  };
}

export function aRequest(target: Target, rest: Partial<ModelRequest> = {}): ModelRequest {
  return {
    target,
    messages: [
      { role: "system", content: "You are a test." },
      { role: "user", content: "hi" },
    ],
    tools: [],
    ...rest,
  };
}

/** Every event of one call. */
export async function collect(
  wire: Wire,
  request: ModelRequest,
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of wire.stream(request, signal)) events.push(event);
  return events;
}
