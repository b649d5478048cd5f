import assert from "node:assert/strict";
import { test } from "node:test";
import { type Terminal, TuiMainScreen } from "@earendil-works/pi-tui";
import fc from "fast-check";
import { Lines } from "./blocks.ts";
import { DrawnScreen, forgetScrolledLines, linesOnScreen } from "./screen-terminal.ts";

/** A terminal that only listens. */
function silentTerminal() {
  const written: string[] = [];
  const terminal = {
    columns: 80,
    rows: 24,
    write: (data: string) => void written.push(data),
    start: () => undefined,
    stop: () => undefined,
    hideCursor: () => undefined,
    showCursor: () => undefined,
  } as unknown as Terminal; // all that a renderer without input asks of it
  return { terminal, take: () => written.splice(0).join("") };
}

test("old lines are forgotten without a redraw, and what follows is drawn in place", () => {
  const { terminal, take } = silentTerminal();
  const tui = new TuiMainScreen(terminal);
  const blocks = Array.from({ length: 4000 }, (_, i) => new Lines(`line ${i}`));
  tui.addChild({
    render: (width) => blocks.flatMap((block) => block.render(width)),
    invalidate: () => undefined,
  });
  let status = "status 1";
  tui.addChild({ render: () => [status], invalidate: () => undefined });
  tui.renderNow();
  take();

  forgetScrolledLines(tui, blocks);
  assert.equal(blocks.length, 1500);
  assert.equal(take().includes("\u001b[2J"), false, "nothing is cleared");
  status = "status 2";
  blocks.push(new Lines("a new line"));
  tui.renderNow();
  const drawn = take();
  assert.ok(drawn.includes("a new line") && drawn.includes("status 2"));
  assert.ok(!drawn.includes("\u001b[2J") && !drawn.includes("line 3990"), "only what changed is drawn");

  forgetScrolledLines(tui, blocks);
  assert.equal(blocks.length, 1501, "few lines are left alone");
});

test("a cover is drawn on the terminal's other screen; below it nothing changes until it is gone", () => {
  const { terminal, take } = silentTerminal();
  const screen = new DrawnScreen(terminal);
  let below = "below 1";
  screen.addChild({ render: () => [below], invalidate: () => undefined });
  screen.cover({ render: () => ["cover\u001b[2J"], invalidate: () => undefined });
  screen.renderNow();
  assert.match(take(), /below 1[\s\S]*\u001b\[\?1049h[\s\S]*\u001b\[Hcover\u001b\[0m/);
  below = "below 2";
  screen.renderNow();
  assert.equal(take(), "", "what did not change is not drawn again");
  screen.uncover();
  screen.renderNow();
  const drawn = take();
  assert.match(drawn, /\u001b\[\?1049l[\s\S]*below 2/);
  assert.doesNotMatch(drawn, /\u001b\[[23]J|cover/);
});

test("of each block it is known from which line on it can be drawn again", () => {
  const { terminal } = silentTerminal();
  const tui = new TuiMainScreen(terminal);
  const blocks = [10, 10, 10].map(
    (count) => new Lines(Array.from({ length: count }, (_, i) => `line ${i}`).join("\n")),
  );
  for (const block of blocks) tui.addChild(block);
  const from = linesOnScreen(tui, blocks);
  assert.deepEqual([...blocks, new Lines("other")].map(from), [6, 0, 0, Number.POSITIVE_INFINITY]);
});

test("the last line stays at the bottom, and a menu scrolls nothing away, whatever comes and goes", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.record({ said: fc.integer({ min: 1, max: 12 }) }),
          fc.record({ question: fc.integer({ min: 0, max: 9 }) }),
          fc.record({ menu: fc.integer({ min: 0, max: 8 }) }),
        ),
        { maxLength: 30 },
      ),
      (steps) => {
        const { terminal, take } = silentTerminal();
        const screen = new DrawnScreen(terminal);
        const rows = { said: 10, question: 0, menu: 0 };
        const part = (name: keyof typeof rows) => ({
          render: () => Array.from({ length: rows[name] }, (_, at) => `${name} ${at}`),
          invalidate: () => undefined,
        });
        const line = (text: string) => ({ render: () => [text], invalidate: () => undefined });
        for (const one of [part("said"), screen.gap, part("question"), line("input"), part("menu"), line("status")])
          screen.addChild(one);
        screen.menuRows = () => rows.menu;
        screen.renderNow();
        take();
        const state = () => {
          const { previousLines, previousViewportTop: top } = screen.captureRenderState();
          return { lines: previousLines.map((text) => text.replace(/\u001b\S*/g, "").trim()), top };
        };
        let scrolled = 0;
        for (const step of steps) {
          if ("said" in step) rows.said += step.said;
          else Object.assign(rows, step);
          screen.renderNow();
          assert.ok(!take().includes("\u001b[2J"), "nothing is cleared");
          const { lines, top } = state();
          assert.equal(top, Math.max(scrolled, rows.said + rows.question + 2 - terminal.rows), "menus scroll nothing");
          scrolled = top;
          if (top > 0 || rows.said + rows.question + rows.menu + 2 >= terminal.rows)
            assert.equal(lines.length, top + terminal.rows);
          assert.equal(lines.at(-1), "status");
          const seen = lines.slice(top).filter((text) => text !== "");
          assert.deepEqual(
            seen.filter((text) => text.startsWith("said")).at(-1),
            `said ${rows.said - 1}`,
            "what was said last is seen",
          );
          for (const [at, text] of lines.slice(0, top).entries()) assert.equal(text, `said ${at}`);
        }
      },
    ),
  );
});
