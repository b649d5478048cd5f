// A target of requests, and a request to send there, with everything a test does not care about filled in.
import { systemClock } from "../../src/kit/clock.ts";
import type { ApiMode, ModelEvent, ModelRequest, ProviderProfile, Target, Wire } from "../../src/llm/wire.ts";
import { createWire } from "../../src/llm/wires/drive.ts";

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

/** What a wire makes of an answer that streams these events. */
export function receive(
  apiMode: ApiMode,
  sent: readonly unknown[],
  { target = {}, ...rest }: Partial<Omit<ModelRequest, "target">> & { target?: Partial<Target> } = {},
): Promise<ModelEvent[]> {
  const body = sent.map((data) => `data: ${JSON.stringify(data)}\n\n`).join("");
  const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
  return collect(createWire(apiMode, { fetch, clock: systemClock }), aRequest(aTarget(apiMode, target), rest));
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
