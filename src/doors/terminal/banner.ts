// The first thing on the screen; how much of it depends on the width.
import { visibleWidth } from "@earendil-works/pi-tui";
import { PRODUCT, VERSION } from "../../home/product.ts";
import { contextSize } from "../../kit/formats.ts";
import type { Theme } from "./theme.ts";
import { cut, padTo } from "./width.ts";

export interface BannerFacts {
  readonly profile: string;
  readonly cwd: string;
  /** Null until the conversation is open. */
  readonly opened: OpenedFacts | null;
  readonly compact: boolean;
}

export interface OpenedFacts {
  readonly model: string;
  readonly provider: string;
  readonly contextLength: number;
  readonly sessionId: string;
  /** Toolset -> its tools. */
  readonly tools: ReadonlyMap<string, readonly string[]>;
}

const LOGO = ["╦ ╦ ╔═╗ ╦═╗ ╔╦╗ ╔═╗ ╔═╗", "╠═╣ ║╣  ╠╦╝ ║║║ ║╣  ╚═╗", "╩ ╩ ╚═╝ ╩╚═ ╩ ╩ ╚═╝ ╚═╝"];
const TOOLSETS_SHOWN = 8;
const LEFT_CELLS = 44;

export function banner(facts: BannerFacts, width: number, theme: Theme): string[] {
  const name = `⚕ ${PRODUCT} ${VERSION}`;
  if (width < 30) return [cut(name, width)];
  if (width < 80 || facts.compact) return box([theme.bold(name), ...left(facts, theme)], Math.min(width, 72), theme);
  const inner = width - 4;
  const leftCells = Math.min(LEFT_CELLS, Math.floor(inner / 2));
  const columns = sideBySide(left(facts, theme), right(facts, inner - leftCells - 3, theme), leftCells);
  const rows = [theme.bold(name), "", ...columns];
  if (width < 95) return box(rows, width, theme);
  return [...LOGO.map((line) => ` ${theme.accent(line)}`), ...box(rows, width, theme)];
}

function left({ opened, cwd, profile }: BannerFacts, theme: Theme): string[] {
  const model = opened ? `${opened.model} (${opened.provider})` : "connecting ...";
  return [
    `${theme.dim("model  ")} ${model}`,
    ...(opened ? [`${theme.dim("context")} ${contextSize(opened.contextLength)}`] : []),
    `${theme.dim("folder ")} ${cwd}`,
    ...(opened ? [`${theme.dim("session")} ${opened.sessionId}`] : []),
    ...(profile === "default" ? [] : [`${theme.dim("profile")} ${profile}`]),
  ];
}

function right({ opened }: BannerFacts, width: number, theme: Theme): string[] {
  if (!opened) return [];
  const toolsets = [...opened.tools];
  const count = toolsets.reduce((sum, [, tools]) => sum + tools.length, 0);
  return [
    ...toolsets.slice(0, TOOLSETS_SHOWN).map(([set, tools]) => `${theme.dim(`${set}:`)} ${tools.join(", ")}`),
    ...(toolsets.length > TOOLSETS_SHOWN ? [theme.dim(`... ${toolsets.length - TOOLSETS_SHOWN} more toolsets`)] : []),
    theme.dim(`${count} tools · /help`),
  ].map((line) => cut(line, width));
}

function sideBySide(one: readonly string[], other: readonly string[], cells: number): string[] {
  const rows = Math.max(one.length, other.length);
  return Array.from({ length: rows }, (_, i) => `${padTo(cut(one[i] ?? "", cells), cells)}   ${other[i] ?? ""}`);
}

function box(rows: readonly string[], width: number, theme: Theme): string[] {
  const inner = width - 4;
  const line = (text: string) => {
    const shown = cut(text, inner);
    return `${theme.dim("│")} ${shown}${" ".repeat(Math.max(0, inner - visibleWidth(shown)))} ${theme.dim("│")}`;
  };
  const edge = "─".repeat(width - 2);
  return [theme.dim(`╭${edge}╮`), ...rows.map(line), theme.dim(`╰${edge}╯`)];
}
