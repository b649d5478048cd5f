// Colours of a skin on the terminal there is: how many it can show, and whether text in them can be read on its background.

/** Red, green and blue from 0 to 255. */
export type Rgb = readonly [red: number, green: number, blue: number];

/** `#rgb`, `#rrggbb`, or one of the terminal's own sixteen colours by name; `dim` is its faint text, `default` its plain one. */
export type Colour = string;

/** How many colours a terminal shows: all, 256, 16, or none. */
export type Depth = "all" | 256 | 16 | 0;

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** What the sixteen look like in most terminals; every terminal may paint them its own way. */
const SIXTEEN: readonly Rgb[] = [
  ...([
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [30, 60, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
  ] as const),
  ...([
    [127, 127, 127],
    [255, 60, 60],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
  ] as const),
];
const GREY: Rgb = [128, 128, 128];

export function isColour(text: string): boolean {
  return text === "dim" || text === "default" || parseHex(text) !== null || indexOf(text) !== null;
}

export function parseHex(text: string): Rgb | null {
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text.trim())?.[1];
  if (digits === undefined) return null;
  const whole = digits.length === 3 ? [...digits].map((digit) => digit + digit).join("") : digits;
  const part = (at: number) => Number.parseInt(whole.slice(at, at + 2), 16);
  return [part(0), part(2), part(4)];
}

/** Of a name such as `cyan` or `bright-black`. */
function indexOf(name: string): number | null {
  const bright = name.startsWith("bright-");
  const at = NAMES.findIndex((one) => one === (bright ? name.slice("bright-".length) : name));
  return at < 0 ? null : at + (bright ? 8 : 0);
}

/** The depth that the variables of a terminal tell. */
export function depthOf(env: (name: string) => string | undefined): Depth {
  const term = env("TERM") ?? "";
  if (/^(?:truecolor|24bit)$/i.test(env("COLORTERM") ?? "") || term.endsWith("-direct")) return "all";
  return /256color|kitty|alacritty|ghostty|wezterm/.test(term) ? 256 : 16;
}

/** The parameters of the sequence that switches text (or with `behind` its background) to a colour, and back; null for none. */
export function sgr(
  colour: Colour,
  depth: Depth,
  { behind = false } = {},
): readonly [open: string, close: string] | null {
  if (depth === 0 || colour === "default") return null;
  if (colour === "dim") return behind ? null : ["2", "22"];
  const close = behind ? "49" : "39";
  const named = indexOf(colour);
  if (named !== null) return [String(named + (named < 8 ? 30 : 82) + (behind ? 10 : 0)), close];
  const rgb = parseHex(colour);
  if (rgb === null) return null;
  const base = behind ? 48 : 38;
  if (depth === "all") return [`${base};2;${rgb.join(";")}`, close];
  if (depth === 256) return [`${base};5;${nearest256(rgb)}`, close];
  const index = nearest(rgb, SIXTEEN);
  return [String(index + (index < 8 ? 30 : 82) + (behind ? 10 : 0)), close];
}

const STEPS = [0, 95, 135, 175, 215, 255];

function nearest256(rgb: Rgb): number {
  const cube = rgb.map((value) =>
    nearest(
      [value, value, value],
      STEPS.map((step) => [step, step, step] as const),
    ),
  );
  const [r = 0, g = 0, b = 0] = cube;
  const inCube: Rgb = [STEPS[r] ?? 0, STEPS[g] ?? 0, STEPS[b] ?? 0];
  const level = Math.max(0, Math.min(23, Math.round(((rgb[0] + rgb[1] + rgb[2]) / 3 - 8) / 10)));
  const grey: Rgb = [8 + level * 10, 8 + level * 10, 8 + level * 10];
  return distance(rgb, grey) < distance(rgb, inCube) ? 232 + level : 16 + 36 * r + 6 * g + b;
}

function nearest(rgb: Rgb, table: readonly Rgb[]): number {
  const distances = table.map((one) => distance(rgb, one));
  return distances.indexOf(Math.min(...distances));
}

const distance = (a: Rgb, b: Rgb) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2;

// Contrast, as WCAG 2 counts it: 21 for black on white, 1 for nothing at all.

const READABLE = 4.5;
/** Faint text is to be faint, and yet there. */
const FAINT = 3.2;

export function contrast(one: Rgb, other: Rgb): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number]; // two of them
  return (light + 0.05) / (dark + 0.05);
}

function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number]; // as many as went in
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const isLight = (background: Rgb) => luminance(background) > 0.35;

/**
 * The colour, moved towards black or white until it can be read on the background. The terminal's own colours are left alone on a dark
 * one: its owner chose them for it. On a light one most terminals keep the yellow and the faint grey they have on black.
 */
export function readable(colour: Colour, background: Rgb | null): Colour {
  if (background === null || colour === "default") return colour;
  const own = colour === "dim" ? GREY : indexOf(colour) === null ? null : (SIXTEEN[indexOf(colour) ?? 0] ?? GREY);
  const light = isLight(background);
  if (own !== null && !light) return colour;
  const start = own ?? parseHex(colour);
  if (start === null) return colour;
  const goal = colour === "dim" ? FAINT : READABLE;
  const end: Rgb = light ? [0, 0, 0] : [255, 255, 255];
  for (let step = 0; step <= 20; step++) {
    const mixed = start.map((value, at) =>
      Math.round(value + ((end[at] ?? 0) - value) * (step / 20)),
    ) as unknown as Rgb; // three values
    if (contrast(mixed, background) >= goal || step === 20)
      return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
  }
  return colour;
}

// Is the terminal light or dark?

export const WHITE: Rgb = [255, 255, 255];
export const BLACK: Rgb = [0, 0, 0];

/** What the variables tell about the background, in the order of the specification; null: the terminal has to be asked. */
export function knownBackground(env: (name: string) => string | undefined): Rgb | null {
  const light = env("HERMES_LIGHT")?.trim().toLowerCase();
  if (light !== undefined && light !== "") return ["0", "false", "no", "off"].includes(light) ? BLACK : WHITE;
  const theme = env("HERMES_TUI_THEME")?.trim().toLowerCase();
  if (theme === "light") return WHITE;
  if (theme === "dark") return BLACK;
  const colour = parseHex(env("HERMES_TUI_BACKGROUND") ?? "");
  if (colour !== null) return colour;
  const behind = /;(\d{1,3})$/.exec(env("COLORFGBG") ?? "")?.[1];
  if (behind === undefined) return null;
  return behind === "7" || behind === "15" ? WHITE : BLACK;
}
