// `hermes prompt cache-plan`: where the markers of a request go, for whoever wonders what is cached.
import * as z from "zod";
import type { OutgoingMessage } from "../../../llm/cache-control.ts";
import { readCacheTtl } from "../../../llm/cache-plan/ttl.ts";
import { planCache } from "../../../llm/cache-plan.ts";
import { profileFor } from "../../../llm/providers/profiles.ts";
import { API_MODES, type ToolDefinition } from "../../../llm/wire.ts";
import { type CliContext, ExitError } from "../context.ts";
import { readAll } from "../io.ts";
import { printJson } from "../session-command.ts";

const Asked = z.object({
  messages: z.array(z.looseObject({ role: z.enum(["system", "user", "assistant", "tool"]) })),
  tools: z.array(z.looseObject({})).nullish(),
  provider: z.string().nullish(),
  base_url: z.string().nullish(),
  api_mode: z.enum(API_MODES).nullish(),
  model: z.string().nullish(),
  cache_ttl: z.unknown().optional(),
  static_system_prefix: z.string().nullish(),
});

export async function cachePlan(ctx: CliContext): Promise<void> {
  const asked = readAsked(await readAll(ctx.io.stdin));
  const { ttl, warning } = readCacheTtl(asked.cache_ttl);
  if (warning) ctx.io.err(`${warning}\n`);
  const apiMode = asked.api_mode ?? "chat_completions";
  const baseUrl = asked.base_url ?? "";
  const profile = profileFor({ provider: asked.provider ?? "", model: asked.model ?? "", baseUrl, apiMode });
  const plan = planCache({
    messages: asked.messages as unknown as readonly OutgoingMessage[], // foreign fields pass through untouched
    tools: (asked.tools ?? []) as unknown as readonly ToolDefinition[],
    target: { apiMode, baseUrl, profile },
    ttl,
    stable: asked.static_system_prefix ?? "",
  });
  printJson(ctx, plan);
}

function readAsked(text: string): z.infer<typeof Asked> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ExitError(2, `Standard input is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  const parsed = Asked.safeParse(value);
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  throw new ExitError(2, `Standard input is no request: ${first?.path.join(".")}: ${first?.message}`);
}
