// The process's terminal, with pastes taken out of the key stream before anything scans it piece by piece.
import { type Component, ProcessTerminal, setCapabilityOverrides, TuiMainScreen } from "@earendil-works/pi-tui";
import { onlyStyled, singleKeys } from "../terminal-text.ts";
import { OWN_LINKS } from "./links.ts";
import { PasteReader } from "./pastes.ts";

const LEAST_COLUMNS = 12;
/** The answer to the last question that is asked of a terminal at the start. */
const DEVICE_ATTRIBUTES = /\u001b\[\?([\d;]{0,64})c/;
/** Longer than a terminal takes, across a network too; only a start that ends at once ever waits. */
const ANSWER_MS = 100;

/** What the terminal says of itself. */
export const terminalFacts = { sixel: false };

/** Lines that draw a picture: the only ones that may hold more than text and colours. */
export const ownPictureLines = new Set<string>();

type DataListener = (data: string) => void;

export class ScreenTerminal extends ProcessTerminal {
  readonly #unannouncedLines: () => number;
  #reader: PasteReader | null = null;
  #listener: DataListener | null = null;
  #answered = Promise.withResolvers<void>();
  /** The end of what came before the answer, which may arrive in pieces. */
  #unanswered: string | null = "";

  constructor(options: { unannouncedLines(): number }) {
    super();
    this.#unannouncedLines = options.unannouncedLines;
  }

  /** Below this nothing can be laid out: a wide character alone would be too long for its line. */
  override get columns(): number {
    return Math.max(LEAST_COLUMNS, super.columns);
  }

  override start(onInput: (data: string) => void, onResize: () => void): void {
    this.#answered = Promise.withResolvers<void>();
    this.#unanswered = "";
    const before = new Set(process.stdin.listeners("data"));
    super.start(singleKeys(onInput), onResize);
    // What the base class has just registered reads keys; it gets everything but pastes.
    const readers = process.stdin.listeners("data").filter((listener) => !before.has(listener)) as DataListener[]; // stdin has an encoding
    for (const reader of readers) process.stdin.off("data", reader);
    const reader = new PasteReader({
      onKeys: (data) => {
        for (const read of readers) read(data);
      },
      onPaste: (text) => onInput(`\u001b[200~${text}\u001b[201~`),
      unannouncedLines: this.#unannouncedLines,
    });
    this.#reader = reader;
    this.#listener = (data) => {
      this.#watchForAnswer(data);
      reader.feed(data);
    };
    process.stdin.on("data", this.#listener);
  }

  /** Resolves once the terminal has answered what it was asked: a later answer would be typed into the shell. */
  async settled(): Promise<void> {
    if (this.#unanswered === null || this.#listener === null) return;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, ANSWER_MS);
    await Promise.race([this.#answered.promise, late.promise]);
    clearTimeout(timer);
  }

  #watchForAnswer(data: string): void {
    if (this.#unanswered === null) return;
    const seen = this.#unanswered + data;
    const [, attributes] = DEVICE_ATTRIBUTES.exec(seen) ?? [];
    this.#unanswered = attributes === undefined ? seen.slice(-80) : null;
    if (attributes === undefined) return;
    terminalFacts.sixel = attributes.split(";").includes("4");
    this.#answered.resolve();
  }

  override stop(): void {
    if (this.#listener) process.stdin.off("data", this.#listener);
    this.#listener = null;
    this.#reader?.finish();
    this.#reader = null;
    super.stop();
  }
}

const GAP = "\u0000gap";

/**
 * The renderer, which draws nothing but text and colours whatever its parts hand it. Once lines have scrolled away, the last line of the
 * screen stays the last line of the terminal:
 * - What stands between the transcript and the input and goes again leaves its rows blank until something is written there.
 * - A menu below the input hides the first lines of the screen for as long as it is open; they are not scrolled away for it.
 */
export class DrawnScreen extends TuiMainScreen {
  /** Where blank rows go: between what is written and what is typed. */
  readonly gap: Component = { render: () => [GAP], invalidate: () => undefined };
  /** Rows of the menu below the input. */
  menuRows: () => number = () => 0;
  #cover: Component | null = null;
  #covering = "";
  /** So many lines have scrolled away, at this size. */
  #scrolled = { lines: 0, width: 0, rows: 0 };

  /** Draws this alone, on the terminal's other screen: what is below comes back as it was, with its scrollback. */
  cover(component: Component): void {
    this.renderNow();
    this.#cover = component;
    this.#covering = "";
    this.terminal.write("\u001b[?1049h");
    this.requestRender();
  }

  uncover(): void {
    if (this.#cover === null) return;
    this.#cover = null;
    this.terminal.write("\u001b[?1049l");
    this.requestRender();
  }

  override stop(): void {
    this.uncover();
    super.stop();
  }

  protected override doRender(): void {
    if (this.#cover === null) return super.doRender();
    const { columns, rows } = this.terminal;
    const lines = onlyStyled(this.#cover.render(columns), columns, OWN_LINKS).slice(0, rows);
    const frame = `\u001b[H${lines.map((line) => `${line}\u001b[0m\u001b[K`).join("\r\n")}\u001b[J`;
    if (frame !== this.#covering) this.terminal.write(`\u001b[?2026h\u001b[?25l${frame}\u001b[?2026l`);
    this.#covering = frame;
  }

  override start(): void {
    // Links are made by `links.ts`, which shows the address beside the words; asking tmux about them would take a process.
    setCapabilityOverrides({ hyperlinks: false });
    super.start();
  }

  override restoreRenderState(state: Parameters<TuiMainScreen["restoreRenderState"]>[0]): void {
    super.restoreRenderState(state);
    this.#scrolled = { ...this.#scrolled, lines: state.previousViewportTop };
  }

  protected override resetRenderState(): void {
    super.resetRenderState();
    this.#scrolled = { lines: 0, width: 0, rows: 0 };
  }

  override render(width: number): string[] {
    const lines = this.#settled(super.render(width), width);
    if (ownPictureLines.size === 0) return onlyStyled(lines, width, OWN_LINKS);
    return lines.map((line) => (ownPictureLines.has(line) ? line : (onlyStyled([line], width, OWN_LINKS)[0] ?? "")));
  }

  /** The lines as they fill the terminal; another size draws everything again. */
  #settled(lines: string[], width: number): string[] {
    const { rows } = this.terminal;
    const at = lines.lastIndexOf(GAP);
    if (at === -1) return lines;
    lines.splice(at, 1);
    const before = this.#scrolled.width === width && this.#scrolled.rows === rows ? this.#scrolled.lines : 0;
    const scrolled = Math.max(before, lines.length - this.menuRows() - rows, 0);
    const over = lines.length - scrolled - rows;
    const hidden = Math.min(Math.max(0, over), Math.max(0, at - scrolled));
    this.#scrolled = { lines: scrolled + Math.max(0, over) - hidden, width, rows };
    if (hidden > 0) lines.splice(scrolled, hidden);
    if (over < 0 && scrolled > 0) lines.splice(at, 0, ...new Array<string>(-over).fill(""));
    return lines;
  }
}

// A long conversation: lines that have scrolled away belong to the terminal. The renderer compares all lines it knows for every frame, so
// from time to time it forgets the oldest; they stay in the terminal's scrollback.

const MAX_LINES = 3000;
const KEPT_LINES = 1500;

/** `blocks` are the screen's first lines, oldest first; only ever their beginning is taken away. */
export function forgetScrolledLines(tui: TuiMainScreen, blocks: Component[]): void {
  const width = tui.terminal.columns;
  const lengths = blocks.map((block) => block.render(width).length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (total <= MAX_LINES) return;
  tui.renderNow();
  const state = tui.captureRenderState();
  let lines = 0;
  let count = 0;
  for (const length of lengths) {
    if (total - lines - length < KEPT_LINES || lines + length > state.previousViewportTop) break;
    lines += length;
    count++;
  }
  blocks.splice(0, count);
  tui.restoreRenderState({
    ...state,
    previousLines: state.previousLines.slice(lines),
    cursorRow: state.cursorRow - lines,
    hardwareCursorRow: state.hardwareCursorRow - lines,
    maxLinesRendered: state.maxLinesRendered - lines,
    previousViewportTop: state.previousViewportTop - lines,
  });
}

/** For a block of the transcript: the first of its lines that is on the screen, and so can be drawn again; Infinity: none is. */
export function linesOnScreen(tui: TuiMainScreen, blocks: readonly Component[]): (block: Component) => number {
  tui.renderNow();
  const { previousViewportTop } = tui.captureRenderState();
  const first = new Map<Component, number>();
  let line = 0;
  for (const block of blocks) {
    const { length } = block.render(tui.terminal.columns);
    first.set(
      block,
      Math.max(0, previousViewportTop - line) < length ? Math.max(0, previousViewportTop - line) : Infinity,
    );
    line += length;
  }
  return (block) => first.get(block) ?? Number.POSITIVE_INFINITY;
}

// Restores the user's terminal after any kind of end.
const RESET = [
  "\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l", // mouse
  "\u001b[?1004l", // focus reports
  "\u001b[?2004l", // bracketed paste
  "\u001b[?1047l", // alternate screen; 1049 would also move the cursor
  "\u001b[<u\u001b[>4;0m", // kitty and modifyOtherKeys
  "\u001b[0m\u001b[?25h", // attributes, cursor
].join("");

export function resetTerminal(stream: NodeJS.WriteStream): void {
  if (stream.isTTY) stream.write(RESET);
}

// Ctrl+Z: the terminal is given back, the program stops, and `fg` restores everything.

interface Suspended {
  /** Gives the terminal back to the shell. */
  release(): void;
  /** Takes it again. */
  reclaim(): void;
}

/** The whole process group stops, so that a launcher in front of us does not keep the shell waiting; tools run in groups of their own. */
export function suspend({ release, reclaim }: Suspended): boolean {
  if (process.platform === "win32") return false;
  let back = false;
  const resume = () => {
    if (back) return;
    back = true;
    process.off("SIGCONT", resume);
    clearTimeout(timer);
    reclaim();
  };
  release();
  process.once("SIGCONT", resume);
  process.kill(0, "SIGTSTP");
  // Without a shell that does job control the stop has no effect; then the screen simply comes back.
  const timer = setTimeout(resume, 300);
  return true;
}
