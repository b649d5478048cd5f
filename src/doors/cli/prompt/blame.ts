// `hermes prompt blame`: a conversation call by call, and who is to blame where the cached beginning was lost.

import * as z from "zod";
import { messageOf } from "../../../kit/errors.ts";
import { plural } from "../../../kit/formats.ts";
import type { OutgoingMessage } from "../../../llm/cache-control.ts";
import { planCache, readCacheTtl } from "../../../llm/cache-plan.ts";
import { type Price, priceOf } from "../../../llm/catalogue/prices.ts";
import { profileFor } from "../../../llm/providers/profiles.ts";
import { API_MODES, type ToolDefinition } from "../../../llm/wire.ts";
import type { StoredCall } from "../../../sessions/store.ts";
import { type CliContext, ExitError, readAll } from "../../cli-context.ts";
import { print, printJson, table } from "../present.ts";
import { resolveSession } from "../session-command.ts";
import { withCommas } from "./tables.ts";

/** A call with what its break cost. Null = unknown, never 0 by default. */
interface Blamed {
  readonly call: StoredCall;
  /** Tokens that the request before had already paid for. */
  readonly lostTokens: number | null;
  readonly lostUsd: number | null;
}

export async function blame(name: string, flags: { json?: true }, ctx: CliContext): Promise<void> {
  const store = await ctx.store();
  const id = await resolveSession(store, name);
  // A compressed conversation began in earlier sessions.
  const sessions = await store.lineage(id);
  const calls = (await Promise.all(sessions.map((session) => store.calls(session)))).flat();
  const blamed = await Promise.all(calls.map((call, index) => assess(call, calls.slice(0, index))));
  const totals = sum(blamed);
  if (flags.json) return printJson(ctx, { session_id: id, rows: blamed.map(asJson), totals });
  if (calls.length === 0) return print(ctx, `No model calls recorded for ${id}.`);
  const head = ["call", "turn", "purpose", "model", "read", "written", "missed", "output", "cost", "same", "break"];
  const rows = blamed.map(({ call }, index) => [
    ...[String(index + 1), call.turn === undefined ? "" : String(call.turn), call.task, call.model],
    ...[tokens(call.cacheReadTokens), tokens(call.cacheWriteTokens)],
    ...[tokens(call.inputTokens), tokens(call.outputTokens), money(call.costUsd), share(call), verdict(call)],
  ]);
  print(ctx, table([head, ...rows], [0, 1, 4, 5, 6, 7, 8, 9]));
  for (const [index, one] of blamed.entries()) for (const line of explain(one, index)) print(ctx, line);
  print(ctx, `\n${conclusion(totals)}`);
}

async function assess(call: StoredCall, before: readonly StoredCall[]): Promise<Blamed> {
  if (call.brokeOwner === undefined) return { call, lostTokens: 0, lostUsd: 0 };
  const same = (other: StoredCall) =>
    other.outcome === "ok" &&
    other.model === call.model &&
    other.provider === call.provider &&
    other.task === call.task;
  const had = before.findLast(same)?.bytes;
  const prompt = promptTokens(call);
  if (had === undefined || prompt === null || !call.bytes) return { call, lostTokens: null, lostUsd: null };
  const perByte = prompt / call.bytes;
  const lostTokens = Math.max(0, Math.round((had - (call.commonBytes ?? 0)) * perByte));
  return { call, lostTokens, lostUsd: dollars(lostTokens, await priceOf(call)) };
}

/** What was read from the cache before is now written to it anew, or paid as plain input. */
function dollars(lost: number, price: Price): number | null {
  if (price.type === "included") return 0;
  if (price.type === "unknown") return null;
  return (lost * Math.max(0, price.rates.cacheWrite - price.rates.cacheRead)) / 1e6;
}

function promptTokens({ inputTokens, cacheReadTokens, cacheWriteTokens }: StoredCall): number | null {
  return inputTokens === null ? null : inputTokens + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0);
}

function verdict({ brokeOwner, cause, commonBytes }: StoredCall): string {
  if (brokeOwner !== undefined) return cause ?? "DEFECT";
  if (cause !== undefined) return `starts over (${cause})`;
  return commonBytes === undefined ? "-" : "";
}

function explain({ call, lostTokens, lostUsd }: Blamed, index: number): readonly string[] {
  if (call.brokeOwner === undefined) return [];
  const cost =
    lostTokens === null ? "cost unknown" : `about ${withCommas(lostTokens)} tokens billed again, ${money(lostUsd)}`;
  const why = call.cause ? `cause: ${call.cause}` : "no cause recorded: this is a bug, please report it";
  return [
    "",
    `Call ${index + 1}: ${call.brokeOwner} differs from the previous request at byte ${withCommas(call.brokeOffset ?? 0)} of ${withCommas(call.bytes ?? 0)} (${why}; ${cost}).`,
  ];
}

interface Totals {
  readonly calls: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Calls whose provider said what came from its cache. */
  readonly cache_reported_calls: number;
  /** Of the calls whose cost is known. */
  readonly cost_usd: number | null;
  readonly unknown_cost_calls: number;
  readonly breaks: number;
  readonly unexplained_breaks: number;
}

function sum(blamed: readonly Blamed[]): Totals {
  const calls = blamed.map(({ call }) => call);
  const add = (value: (call: StoredCall) => number | null) =>
    calls.reduce((total, call) => total + (value(call) ?? 0), 0);
  const broken = calls.filter((call) => call.brokeOwner !== undefined);
  const unknown = calls.filter((call) => call.costUsd === null).length;
  return {
    calls: calls.length,
    cache_read_tokens: add((call) => call.cacheReadTokens),
    cache_write_tokens: add((call) => call.cacheWriteTokens),
    input_tokens: add((call) => call.inputTokens),
    output_tokens: add((call) => call.outputTokens),
    cache_reported_calls: calls.filter((call) => call.cacheReadTokens !== null).length,
    cost_usd: calls.length > 0 && unknown === calls.length ? null : add((call) => call.costUsd),
    unknown_cost_calls: unknown,
    breaks: broken.length,
    unexplained_breaks: broken.filter((call) => call.cause === undefined).length,
  };
}

function conclusion(totals: Totals): string {
  const { calls, cache_read_tokens: read, cache_write_tokens: written, input_tokens: missed } = totals;
  const prompt = read + written + missed;
  const rate =
    prompt === 0 || totals.cache_reported_calls === 0
      ? "the provider does not report cache reads"
      : `${((read / prompt) * 100).toFixed(1)} % of the prompt tokens read from cache`;
  const unknown = totals.unknown_cost_calls > 0 ? `, the cost of ${totals.unknown_cost_calls} unknown` : "";
  const breaks =
    totals.breaks === 0 ? "no break" : `${plural(totals.breaks, "break")}, ${totals.unexplained_breaks} unexplained`;
  return `${plural(calls, "call")}: ${rate} (read ${withCommas(read)}, written ${withCommas(written)}, missed ${withCommas(missed)}), output ${withCommas(totals.output_tokens)}, cost ${money(totals.cost_usd)}${unknown}; ${breaks}.`;
}

const tokens = (count: number | null) => (count === null ? "?" : withCommas(count));
const money = (usd: number | null) => (usd === null ? "unknown" : `$${usd.toFixed(usd !== 0 && usd < 0.01 ? 6 : 2)}`);
const share = ({ bytes, commonBytes }: StoredCall) =>
  commonBytes === undefined || !bytes ? "" : `${Math.floor((commonBytes / bytes) * 100)} %`;

function asJson({ call, lostTokens, lostUsd }: Blamed) {
  return {
    id: call.id,
    session_id: call.sessionId,
    turn: call.turn ?? null,
    task: call.task,
    model: call.model,
    provider: call.provider,
    base_url: call.baseUrl,
    api_mode: call.apiMode,
    started_at: call.startedAt,
    ms: call.ms,
    outcome: call.outcome,
    input_tokens: call.inputTokens,
    output_tokens: call.outputTokens,
    cache_read_tokens: call.cacheReadTokens,
    cache_write_tokens: call.cacheWriteTokens,
    reasoning_tokens: call.reasoningTokens,
    cost_usd: call.costUsd,
    cost_status: call.costStatus,
    cost_source: call.costSource,
    job_id: call.jobId ?? null,
    bytes: call.bytes ?? null,
    common_bytes: call.commonBytes ?? null,
    broke_owner: call.brokeOwner ?? null,
    broke_offset: call.brokeOffset ?? null,
    cause: call.cause ?? null,
    lost_tokens: lostTokens,
    lost_usd: lostUsd,
  };
}

// `hermes prompt cache-plan`: where the markers of a request go, for whoever wonders what is cached.

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
    throw new ExitError(2, `Standard input is not JSON: ${messageOf(error)}`);
  }
  const parsed = Asked.safeParse(value);
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  throw new ExitError(2, `Standard input is not a request: ${first?.path.join(".")}: ${first?.message}`);
}
