// The first thing on the screen.
import { PRODUCT, VERSION } from "../../home/product.ts";
import { contextSize } from "../../kit/formats.ts";
import type { Target } from "../../llm/wire.ts";
import { cut } from "./status-line.ts";
import type { Theme } from "./theme.ts";

export interface BannerFacts {
  readonly profile: string;
  readonly cwd: string;
  readonly target: Target | null;
  readonly toolCount: number | null;
}

/** A small box; on very narrow terminals a single line. */
export function banner(facts: BannerFacts, width: number, theme: Theme): string[] {
  const name = `⚕ ${PRODUCT} ${VERSION}`;
  if (width < 30) return [cut(name, width)];
  const model = facts.target
    ? `${facts.target.model} (${facts.target.provider}) · ${contextSize(facts.target.contextLength)}`
    : "connecting ...";
  const rows = [
    `${theme.bold(name)}${facts.profile === "default" ? "" : ` · profile ${facts.profile}`}`,
    theme.dim(`model  ${model}`),
    theme.dim(`folder ${facts.cwd}`),
    theme.dim(
      `${facts.toolCount === null ? "" : `${facts.toolCount} tools · `}/help lists the commands · Ctrl+C twice leaves`,
    ),
  ];
  return rows.map((row) => cut(`  ${row}`, width));
}
