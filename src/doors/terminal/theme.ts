// Colours by meaning. Without colour every function returns its text unchanged.
export interface Theme {
  readonly accent: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly bold: (text: string) => string;
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
    ok: paint(32, 39),
    warn: paint(33, 39),
    error: paint(31, 39),
    added: paint(32, 39),
    removed: paint(31, 39),
    user: paint(34, 39),
  };
}
