import { chooseTarget } from "../../../agent/open-model.ts";
import { isLocalEndpoint } from "../../../llm/providers/hosts.ts";
import { ProviderError } from "../../../llm/providers/provider-error.ts";
import type { Target } from "../../../llm/wire.ts";
import type { CliContext } from "../context.ts";
import type { Finding } from "./finding.ts";

const REACH_MS = 10_000;

export async function checkProvider(ctx: CliContext): Promise<readonly Finding[]> {
  try {
    const { target, demo } = await chooseTarget(ctx.home, {});
    if (demo) {
      return [
        {
          level: "warn",
          text: "no provider is configured; the built-in demo model answers",
          fix: '"hermes setup" connects a real one',
        },
      ];
    }
    const chosen: Finding = {
      level: "ok",
      text: `${target.model} at ${target.provider} (${target.apiMode}), window ${target.contextLength} tokens${target.windowAssumed ? " (assumed; say it with model.context_length)" : ""}`,
    };
    return [chosen, await reach(target)];
  } catch (error) {
    if (error instanceof ProviderError) return [{ level: "error", text: error.message }];
    throw error;
  }
}

/** Any answer means that somebody is there; only 401 and 403 say something about the key. */
async function reach(target: Target): Promise<Finding> {
  const url = `${target.baseUrl.replace(/\/$/, "")}${target.apiMode === "anthropic_messages" ? "/v1/models" : "/models"}`;
  try {
    const response = await fetch(url, {
      headers:
        target.apiMode === "anthropic_messages"
          ? { "x-api-key": target.apiKey, "anthropic-version": "2023-06-01" }
          : { authorization: `Bearer ${target.apiKey}` },
      signal: AbortSignal.timeout(REACH_MS),
    });
    await response.body?.cancel();
    if (response.status === 401 || response.status === 403) {
      return {
        level: "error",
        text: `${target.baseUrl} refuses the key (HTTP ${response.status})`,
        fix: "set the right key with hermes config set; docs/reference/providers.md lists the names",
      };
    }
    return { level: "ok", text: `${target.baseUrl} answers` };
  } catch (error) {
    const reason =
      error instanceof Error ? ((error.cause as NodeJS.ErrnoException)?.code ?? error.message) : String(error);
    return {
      level: "error",
      text: `${target.baseUrl} cannot be reached (${reason})`,
      fix: isLocalEndpoint(target.baseUrl)
        ? "start the server, or correct model.base_url"
        : "check the network, or correct model.base_url",
    };
  }
}
