// Laws that hold for every history on every wire.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { systemClock } from "../src/kit/clock.ts";
import type { HistoryMessage } from "../src/llm/messages.ts";
import { API_MODES, type ApiMode, type ProviderProfile } from "../src/llm/wire.ts";
import { createWire, writeBody } from "../src/llm/wires/drive.ts";
import { legalHistory } from "./support/histories.ts";
import { aRequest, aTarget } from "./support/model-target.ts";
import { fewer } from "./support/sample.ts";
import { validate, wireName } from "./support/wire-validators.ts";

const system = { role: "system", content: "You are a test." } as const;
const ports = { fetch: globalThis.fetch, clock: systemClock };

async function render(
  mode: ApiMode,
  history: readonly HistoryMessage[],
  profile: Partial<ProviderProfile> = {},
): Promise<string> {
  const target = aTarget(mode, { model: mode === "anthropic_messages" ? "claude-opus-4-6" : "gpt-5", profile });
  const { body } = await createWire(mode, ports).render(aRequest(target, { messages: [system, ...history] }));
  return writeBody(body).text;
}

const spokenIn = (body: string): readonly string[] => {
  const { messages, input } = JSON.parse(body, (key, value) => (key === "cache_control" ? undefined : value));
  return (messages ?? input).map((entry: unknown) => JSON.stringify(entry));
};

const layouts: readonly [ApiMode, Partial<ProviderProfile>][] = [
  ...API_MODES.map((mode): [ApiMode, Partial<ProviderProfile>] => [mode, {}]),
  ["anthropic_messages", { cacheLayout: "native" }],
  ["chat_completions", { cacheLayout: "envelope" }],
  ["chat_completions", { echoReasoning: true, reasoningStyle: "openrouter" }],
  ["chat_completions", { images: false }],
];
for (const [mode, profile] of layouts)
  test(`${mode} ${JSON.stringify(profile)}: every history becomes a request that its API accepts`, () =>
    fc.assert(
      fc.asyncProperty(legalHistory, async (history) => validate(wireName[mode], await render(mode, history, profile))),
      { numRuns: fewer(150, 3) },
    ));

for (const replay of ["strip", "unsigned-only", "keep"] as const)
  test(`anthropic_messages, thinking "${replay}": thinking goes back as that host wants it`, () =>
    fc.assert(
      fc.asyncProperty(legalHistory, async (history) => {
        const body = await render("anthropic_messages", history, { thinkingReplay: replay });
        if (replay === "strip") assert.ok(!/"type":"(redacted_)?thinking"/.test(body));
        if (replay === "unsigned-only") assert.ok(!/"signature":|"redacted_thinking"/.test(body));
      }),
      { numRuns: fewer(60, 3) },
    ));

const growing: readonly [ApiMode, Partial<ProviderProfile>][] = [
  ...API_MODES.map((mode): [ApiMode, Partial<ProviderProfile>] => [mode, {}]),
  ["anthropic_messages", { cacheLayout: "native" }],
  ["chat_completions", { cacheLayout: "envelope" }],
];
for (const [mode, profile] of growing)
  test(`${mode} ${JSON.stringify(profile)}: what an answered request said is said again, byte for byte, by every later one`, () =>
    fc.assert(
      fc.asyncProperty(legalHistory, async (history) => {
        const full = spokenIn(await render(mode, history, profile));
        for (let index = 1; index < history.length; index++) {
          if (history[index]?.role !== "assistant") continue;
          const earlier = spokenIn(await render(mode, history.slice(0, index), profile));
          assert.deepEqual(full.slice(0, earlier.length), earlier);
        }
      }),
      { numRuns: fewer(80, 3) },
    ));

test("the same history gives the same bytes", () =>
  fc.assert(
    fc.asyncProperty(legalHistory, fc.constantFrom(...API_MODES), async (history, mode) => {
      assert.equal(await render(mode, history), await render(mode, structuredClone(history)));
    }),
    { numRuns: fewer(60, 3) },
  ));
