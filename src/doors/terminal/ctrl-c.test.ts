import assert from "node:assert/strict";
import { test } from "node:test";
import { CtrlC, type CtrlCState } from "./keys.ts";

const idle: CtrlCState = { questionOpen: false, busy: false, menuOpen: false, draft: "", pictures: 0 };

test("an open question is cancelled before anything else", () => {
  assert.equal(
    new CtrlC().press({ questionOpen: true, busy: true, menuOpen: true, draft: "x", pictures: 0 }, 0),
    "cancel_question",
  );
});

test("a running turn is interrupted; a second press within two seconds leaves", () => {
  const keys = new CtrlC();
  assert.equal(keys.press({ ...idle, busy: true }, 0), "interrupt");
  assert.equal(keys.press({ ...idle, busy: true }, 1999), "force_exit");
});

test("a second press after two seconds interrupts again", () => {
  const keys = new CtrlC();
  keys.press({ ...idle, busy: true }, 0);
  assert.equal(keys.press({ ...idle, busy: true }, 2001), "interrupt");
});

test("a menu is closed, then text is cleared, then leaving is armed, then done", () => {
  const keys = new CtrlC();
  assert.equal(keys.press({ ...idle, menuOpen: true, draft: "x" }, 0), "close_menu");
  assert.equal(keys.press({ ...idle, draft: "x" }, 10), "clear_draft");
  assert.equal(keys.press(idle, 20), "arm_exit");
  assert.equal(keys.press(idle, 30), "exit");
});

test("interrupting a turn does not arm leaving", () => {
  const keys = new CtrlC();
  keys.press({ ...idle, busy: true }, 0);
  assert.equal(keys.press(idle, 100), "arm_exit");
});
