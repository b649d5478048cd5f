import { StoreError } from "../../../sessions/store.ts";
import type { CliContext } from "../context.ts";
import type { Finding } from "./finding.ts";

export async function checkStore(ctx: CliContext): Promise<readonly Finding[]> {
  try {
    const store = await ctx.store();
    const [health, stats] = await Promise.all([store.health(), store.stats()]);
    const facts: Finding = {
      level: "ok",
      text: `${stats.sessions} sessions, ${stats.messages} messages, ${(stats.sizeBytes / 1e6).toFixed(1)} MB`,
    };
    return [
      facts,
      ...health.map(({ ok, text, fix }): Finding => ({ level: ok ? "ok" : "error", text, ...(fix ? { fix } : {}) })),
    ];
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const fix =
      error.code === "busy"
        ? "wait until the other hermes process is done, or end it"
        : '"hermes sessions repair --check-only" examines the file; nothing is deleted';
    return [{ level: "error", text: error.message, fix }];
  }
}
