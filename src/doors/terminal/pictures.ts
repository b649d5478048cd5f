// Pictures that the agent made or looked at, in terminals that can show them: kitty's and iTerm2's protocols through the renderer package,
// sixel by hand, because that package has none. Everywhere else one line with name, size and pixels.
import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, isAbsolute, join } from "node:path";
import {
  allocateImageId,
  type Component,
  getCapabilities,
  getCellDimensions,
  renderImage,
} from "@earendil-works/pi-tui";
import { imageSize } from "../../llm/pictures/fit.ts";
import { printable, type Theme } from "../terminal-text.ts";
import { CachedBlock } from "./blocks.ts";
import { ownPictureLines, terminalFacts } from "./screen-terminal.ts";
import type { FinishedCall } from "./tool-block.ts";

const MAX_BYTES = 20 * 1024 * 1024;
/** More would take too long to unpack between two frames. */
const MAX_PIXELS = 12_000_000;
const MAX_CELLS = 60;
const MAX_ROWS = 20;
/** They stay in memory for as long as they may have to be drawn again. */
const MOST = 20;
let shown = 0;

interface PictureLook {
  readonly theme: Theme;
  readonly cwd: string;
  /** Files of the agent's tools are files of this machine. */
  readonly filesAreHere: boolean;
}

/** The picture a call was about; null when there is none that can be read here. */
export async function pictureOf(call: FinishedCall, look: PictureLook): Promise<Component | null> {
  const path = picturePath(call, look);
  const facts = path === null ? null : await stat(path).catch(() => null); // gone or not ours: no picture
  if (path === null || !facts?.isFile() || facts.size > MAX_BYTES) return null;
  const bytes = await readFile(path).catch(() => null); // as above
  const size = bytes && imageSize(bytes);
  if (!bytes || !size) return null;
  const caption = `🖼 ${printable(basename(path))} · ${size.width}×${size.height} · ${bytesText(facts.size)}`;
  const protocol = getCapabilities().images ?? (terminalFacts.sixel ? "sixel" : null);
  if (protocol === null || shown >= MOST || size.width * size.height > MAX_PIXELS)
    return new Picture(caption, null, look.theme);
  shown++;
  return new Picture(caption, await drawer(bytes, size, protocol), look.theme);
}

export function picturePath(
  { call, result, failed }: Pick<FinishedCall, "call" | "result" | "failed">,
  { cwd, filesAreHere }: Omit<PictureLook, "theme">,
): string | null {
  if (failed) return null;
  const field = { image_generate: "image", browser_vision: "screenshot_path" }[call.name];
  if (field !== undefined) {
    const path = textField(result, field);
    return path !== null && isAbsolute(path) ? path : null;
  }
  const given = call.name === "vision_analyze" && filesAreHere ? call.args.image_url : undefined;
  if (typeof given !== "string" || /^[a-z][a-z0-9+.-]+:(?!\/\/\/)/i.test(given.trim())) return null;
  const path = given.trim().replace(/^file:\/\//, "");
  if (path.startsWith("~/")) return join(homedir(), path.slice(2));
  return isAbsolute(path) ? path : join(cwd, path);
}

function textField(result: string, name: string): string | null {
  try {
    const value = JSON.parse(result)[name];
    return typeof value === "string" ? value : null;
  } catch {
    return null; // not JSON: it names no file
  }
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Lines of a picture for a width, the caption not counted; null when it cannot be drawn. */
type Drawer = (width: number) => readonly string[] | null;

async function drawer(bytes: Buffer, size: Size, protocol: "kitty" | "iterm2" | "sixel"): Promise<Drawer> {
  const { scaledPixels, asPng } = await import("../../llm/pictures/smaller.ts");
  if (protocol !== "iterm2" && !canUnpack(() => scaledPixels(bytes, 1))) return () => null;
  // The renderer takes a picture with an id away again when its lines are drawn anew.
  const imageId = allocateImageId();
  return (width) => {
    const cell = getCellDimensions();
    const fit = cellsFor(size, Math.min(MAX_CELLS, width - 2), cell);
    if (protocol === "iterm2") return withCursor(bytes.toString("base64"), size, { columns: fit.columns });
    const side = Math.max(fit.columns * cell.widthPx, fit.rows * cell.heightPx);
    const pixels = scaledPixels(bytes, side);
    if (pixels === null) return null;
    if (protocol === "kitty")
      return withCursor(asPng(pixels).toString("base64"), pixels, { columns: fit.columns, imageId });
    const rows = Math.ceil(pixels.height / cell.heightPx);
    // The renderer takes a line with an (empty) kitty command for a picture and does not measure it. Drawn from its last line, so that
    // the room for it is on the screen by then.
    const up = rows > 1 ? `\u001b[${rows - 1}A` : "";
    return [...blank(rows - 1), `\u001b_Gq=2;\u001b\\\u001b7${up}${sixel(pixels)}\u001b8`];
  };
}

/** A broken file shows its name, not an error. */
function canUnpack(unpack: () => object | null): boolean {
  try {
    return unpack() !== null;
  } catch {
    return false; // cut off, or of a kind nobody here can read
  }
}

function withCursor(
  base64: string,
  { width, height }: Size,
  { columns, imageId }: { readonly columns: number; readonly imageId?: number },
): readonly string[] | null {
  const drawn = renderImage(
    base64,
    { widthPx: width, heightPx: height },
    { maxWidthCells: columns, maxHeightCells: MAX_ROWS, moveCursor: false, ...(imageId !== undefined && { imageId }) },
  );
  if (drawn === null) return null;
  if (getCapabilities().images === "kitty") return [drawn.sequence, ...blank(drawn.rows - 1)];
  return [...blank(drawn.rows - 1), `${drawn.rows > 1 ? `\u001b[${drawn.rows - 1}A` : ""}${drawn.sequence}`];
}

const blank = (count: number): string[] => Array.from({ length: Math.max(0, count) }, () => "");

/** As large as it is, but no larger than there is room for. */
function cellsFor(size: Size, most: number, cell: { readonly widthPx: number; readonly heightPx: number }) {
  const natural = size.width / cell.widthPx;
  const byHeight = (MAX_ROWS * cell.heightPx * size.width) / size.height / cell.widthPx;
  const columns = Math.max(1, Math.floor(Math.min(natural, byHeight, most)));
  return { columns, rows: Math.max(1, Math.ceil((columns * cell.widthPx * size.height) / size.width / cell.heightPx)) };
}

class Picture extends CachedBlock {
  readonly #caption: string;
  readonly #draw: Drawer | null;
  readonly #theme: Theme;

  constructor(caption: string, draw: Drawer | null, theme: Theme) {
    super();
    this.#caption = caption;
    this.#draw = draw;
    this.#theme = theme;
  }

  protected draw(width: number): string[] {
    const caption = this.#theme.dim(this.#caption.slice(0, Math.max(1, width - 2)));
    const lines = width < 12 ? null : (this.#draw?.(width) ?? null);
    for (const line of lines ?? []) if (line !== "") ownPictureLines.add(line);
    return [...(lines ?? []), caption];
  }
}

function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

// Sixel: six rows of pixels at a time, each colour of the palette in turn. 6×6×6 colours, with the error of a pixel given to its right
// neighbour, are enough to see what a picture is.

interface Pixels extends Size {
  readonly data: Uint8Array;
}

const LEVELS = 6;

export function sixel({ width, height, data }: Pixels): string {
  const colours = indexed({ width, height, data });
  const used = [...new Set(colours)].sort((one, other) => one - other);
  const palette = used.map((colour) => {
    const share = (level: number) => Math.round((level * 100) / (LEVELS - 1));
    const [red, green, blue] = [Math.floor(colour / 36), Math.floor(colour / 6) % 6, colour % 6];
    return `#${colour};2;${share(red)};${share(green)};${share(blue)}`;
  });
  const bands: string[] = [];
  for (let top = 0; top < height; top += 6) bands.push(band(colours, width, Math.min(6, height - top), top));
  return `\u001bP0;1;0q"1;1;${width};${height}${palette.join("")}${bands.join("-")}\u001b\\`;
}

function indexed({ width, height, data }: Pixels): Uint8Array {
  const colours = new Uint8Array(width * height);
  const step = 255 / (LEVELS - 1);
  for (let y = 0; y < height; y++) {
    const error = [0, 0, 0];
    for (let x = 0; x < width; x++) {
      let colour = 0;
      for (let channel = 0; channel < 3; channel++) {
        const wanted = Math.min(255, Math.max(0, (data[(y * width + x) * 4 + channel] ?? 0) + (error[channel] ?? 0)));
        const level = Math.round(wanted / step);
        error[channel] = (wanted - level * step) / 2;
        colour = colour * LEVELS + level;
      }
      colours[y * width + x] = colour;
    }
  }
  return colours;
}

function band(colours: Uint8Array, width: number, rows: number, top: number): string {
  const masks = new Map<number, Uint8Array>();
  for (let row = 0; row < rows; row++) {
    for (let x = 0; x < width; x++) {
      const colour = colours[(top + row) * width + x] ?? 0;
      const mask = masks.get(colour) ?? new Uint8Array(width);
      mask[x] = (mask[x] ?? 0) | (1 << row);
      masks.set(colour, mask);
    }
  }
  return [...masks].map(([colour, mask]) => `#${colour}${runs(mask)}`).join("$");
}

function runs(mask: Uint8Array): string {
  let out = "";
  for (let x = 0; x < mask.length; ) {
    let end = x + 1;
    while (end < mask.length && mask[end] === mask[x]) end++;
    const char = String.fromCharCode(63 + (mask[x] ?? 0));
    out += end - x > 3 ? `!${end - x}${char}` : char.repeat(end - x);
    x = end;
  }
  return out;
}
