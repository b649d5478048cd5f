// Colours by meaning. Without colour every function returns its text unchanged.
import type { SelectListTheme } from "@earendil-works/pi-tui";

export interface Theme {
  readonly accent: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly bold: (text: string) => string;
  readonly italic: (text: string) => string;
  readonly underlined: (text: string) => string;
  readonly struck: (text: string) => string;
  readonly ok: (text: string) => string;
  readonly warn: (text: string) => string;
  readonly error: (text: string) => string;
  readonly added: (text: string) => string;
  readonly removed: (text: string) => string;
  readonly user: (text: string) => string;
}

export function makeTheme(color: boolean): Theme {
  const paint = (open: number, close: number) => (text: string) =>
    color && text !== "" ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  return {
    accent: paint(36, 39),
    dim: paint(2, 22),
    bold: paint(1, 22),
    italic: paint(3, 23),
    underlined: paint(4, 24),
    struck: paint(9, 29),
    ok: paint(32, 39),
    warn: paint(33, 39),
    error: paint(31, 39),
    added: paint(32, 39),
    removed: paint(31, 39),
    user: paint(34, 39),
  };
}

export function selectTheme(theme: Theme): SelectListTheme {
  return {
    selectedPrefix: theme.accent,
    selectedText: theme.accent,
    description: theme.dim,
    scrollInfo: theme.dim,
    noMatch: theme.dim,
  };
}
