// A long conversation: lines that have scrolled away belong to the terminal. The renderer compares all lines it knows for every frame, so
// from time to time it is told to forget the oldest; they stay where the user scrolls back to.
import type { Component, TuiMainScreen } from "@earendil-works/pi-tui";

const MOST_LINES = 3000;
const KEPT_LINES = 1500;

/** `blocks` are the screen's first lines, oldest first; only ever their beginning is taken away. */
export function forgetScrolledLines(tui: TuiMainScreen, blocks: Component[]): void {
  const width = tui.terminal.columns;
  const lengths = blocks.map((block) => block.render(width).length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (total <= MOST_LINES) return;
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
