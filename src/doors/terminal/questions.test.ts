import assert from "node:assert/strict";
import { test } from "node:test";
import type { Component, TUI } from "@earendil-works/pi-tui";
import type { AskRequest } from "../../agent/events.ts";
import type { Question } from "../../safety/decision.ts";
import { makeTheme } from "../terminal-text.ts";
import { Questions } from "./questions.ts";

function desk(draft = "") {
  const world: { focus: Component | null; now: number; draft: string } = { focus: null, now: 1_000_000, draft };
  const settled: string[] = [];
  // The two things a question asks of the screen.
  const tui = {
    setFocus: (component: Component) => {
      world.focus = component;
    },
    requestRender: () => undefined,
  } as unknown as TUI;
  const questions = new Questions(tui, {
    theme: makeTheme(false),
    now: () => world.now,
    draft: () => ({
      getText: () => world.draft,
      handleInput: (key) => {
        world.draft += key;
      },
    }),
    onIdle: () => {
      world.focus = null;
    },
    onSettled: (text) => void settled.push(text),
  });
  const ask = (question: Question, expiresAt: number | null = null) => {
    const controller = new AbortController();
    const answers: unknown[] = [];
    const request: AskRequest = {
      id: "q",
      question,
      signal: controller.signal,
      expiresAt,
      answer: (answer) => void answers.push(answer),
    };
    questions.ask(request);
    return { answers, controller };
  };
  return {
    questions,
    settled,
    ask,
    press: (...keys: string[]) => {
      for (const key of keys) if (!questions.held(key)) world.focus?.handleInput?.(key);
    },
    text: (width = 80) => questions.area.render(width).join("\n"),
    pass: (ms: number) => {
      world.now += ms;
    },
    focused: () => world.focus !== null,
    draft: () => world.draft,
  };
}

const approval = (extra: Partial<Extract<Question, { kind: "approval" }>> = {}): Question => ({
  kind: "approval",
  command: "git push --force",
  description: "force push",
  patternKey: "git force",
  allowAlways: true,
  ...extra,
});

test("Enter on an approval means no", () => {
  const { ask, press, focused, settled } = desk();
  const { answers } = ask(approval());
  press("\r");
  assert.deepEqual(answers, [{ choice: "deny" }]);
  assert.deepEqual(settled, ["✗ not allowed: git push --force"]);
  assert.equal(focused(), false);
});

test("keys of somebody who was typing when a question came answer nothing until they pause", () => {
  const { ask, press, pass, draft, focused } = desk("build ");
  const { answers } = ask(approval());
  for (const key of ["3", " ", "o", "f", " ", "3", "\r", "1"]) {
    press(key);
    pass(700);
  }
  assert.deepEqual([answers, focused(), draft()], [[], true, "build 3 of 31"]);
  pass(200);
  press("3");
  assert.deepEqual(answers, [{ choice: "always" }]);
});

test("whoever was typing can still refuse at once, and a question that comes to an empty line is answered at once", () => {
  const typing = desk("hel");
  const { answers } = typing.ask(approval());
  typing.press("\u001b");
  assert.equal((answers[0] as { choice: string }).choice, "deny");
  const idle = desk();
  const asked = idle.ask(approval());
  idle.press("1");
  assert.deepEqual(asked.answers, [{ choice: "once" }]);
});

const numbers: [boolean, string, string][] = [
  [true, "1", "once"],
  [true, "2", "session"],
  [true, "3", "always"],
  [true, "4", "deny"],
  [false, "3", "deny"],
];
for (const [allowAlways, key, choice] of numbers) {
  test(`number ${key} ${allowAlways ? "with" : "without"} "always" means ${choice}`, () => {
    const { ask, press } = desk();
    const { answers } = ask(approval({ allowAlways }));
    press(key);
    assert.deepEqual(answers, [{ choice }]);
  });
}

const wordings: readonly [about: Parameters<typeof approval>[0], ...shown: RegExp[]][] = [
  [{}, /⚠ Dangerous command: force push/, /1\. Run it once/, /No, don't run it/],
  [{ about: "leaving" }, /⚠ Run this command outside the sandbox\?/, /1\. Run it outside once/, /No, don't run it/],
  [{ about: "outside write" }, /⚠ Write outside the sandbox\?/, /1\. Write it once/, /No, don't write it/],
  [{ about: "address" }, /⚠ force push/, /1\. Open it once/, /No, don't open it/],
  [{ about: "own change" }, /⚠ force push/, /1\. Save it once/, /No, don't save it/],
  [{ about: "other" }, /⚠ force push/, /1\. Run it once/],
];
for (const [extra = {}, ...shown] of wordings) {
  test(`a question about ${"about" in extra ? `"${extra.about}"` : "a dangerous command"} says what a yes would do`, () => {
    const { ask, text } = desk();
    ask(approval(extra));
    for (const part of shown) assert.match(text(), part);
  });
}

test("the whole command is shown, hidden characters spelled out", () => {
  const { ask, text } = desk();
  ask(approval({ command: `echo ${"long ".repeat(60)}end\nsecond\u202e line` }));
  assert.match(text(60), /end\n {2}second<U\+202E> line/);
  assert.doesNotMatch(desk().text(), /Always/);
});

test("several questions wait for each other", () => {
  const { ask, press, text } = desk();
  const first = ask(approval({ command: "first" }));
  const second = ask(approval({ command: "second" }));
  assert.match(text(), /first[\s\S]*1 more to answer/);
  press("1");
  assert.match(text(), /second/);
  press("4");
  assert.deepEqual([first.answers, second.answers], [[{ choice: "once" }], [{ choice: "deny" }]]);
});

test("the time that is left is shown, and silence closes the question", () => {
  const { ask, text, pass, questions, settled } = desk();
  const { controller, answers } = ask(approval(), 1_060_000);
  assert.match(text(), /60s left, then no/);
  pass(60_000);
  controller.abort();
  assert.equal(questions.open, false);
  assert.deepEqual(answers, []);
  assert.deepEqual(settled, ["⌛ no answer in time: not allowed: git push --force"]);
});

test("Ctrl+C's cancel denies, and the next question comes up", () => {
  const { ask, questions, text } = desk();
  const { answers } = ask(approval());
  ask({ kind: "sudo" });
  questions.cancel();
  assert.deepEqual(answers, [{ choice: "deny", reason: "cancelled by the user" }]);
  assert.match(text(), /sudo password/);
});

const clarify: Question = { kind: "clarify", question: "Which?", choices: ["red", "blue"], multiSelect: false };

test("a clarification takes a choice, an own text, or several", () => {
  const one = desk();
  const chosen = one.ask(clarify);
  one.press("2");
  assert.deepEqual(chosen.answers, [{ text: "blue" }]);

  const other = desk();
  const typed = other.ask(clarify);
  other.press("3", ..."绿色", "\r");
  assert.deepEqual(typed.answers, [{ text: "绿色" }]);

  const several = desk();
  const both = several.ask({ ...clarify, multiSelect: true });
  several.press("1", "2", "\r");
  assert.deepEqual(both.answers, [{ text: "red, blue" }]);

  const open = desk();
  const free = open.ask({ ...clarify, choices: null });
  open.press(..."hello", "\r");
  assert.deepEqual(free.answers, [{ text: "hello" }]);
});

test("a password is never drawn", () => {
  const { ask, press, text, settled } = desk();
  const { answers } = ask({ kind: "secret", name: "API_KEY", prompt: "Key?" });
  press(..."hunter2");
  assert.doesNotMatch(text(), /hunter2/);
  assert.match(text(), /•••••••/);
  press("\r");
  assert.deepEqual(answers, [{ text: "hunter2" }]);
  assert.deepEqual(settled, ["🔑 API_KEY: given"]);
});

test("a command's question is cancelled by Escape", async () => {
  const { questions, press } = desk();
  const picked = questions.pick("Sure?", [{ label: "yes", value: true }]);
  press("\u001b");
  assert.equal(await picked, null);
});

test("a no can carry a reason for the agent; without words it is a plain no", () => {
  const { ask, press, settled, text } = desk();
  const first = ask(approval());
  press("5", ..."use --force-with-lease", "\r");
  assert.deepEqual(first.answers, [{ choice: "deny", reason: "use --force-with-lease" }]);
  assert.deepEqual(settled, ["✗ not allowed: git push --force (use --force-with-lease)"]);
  const second = ask(approval());
  press("5");
  assert.match(text(), /Tell the agent why/);
  press("\u001b");
  assert.deepEqual(second.answers, [{ choice: "deny" }]);
});

test("a question says what silence leads to", () => {
  const silence = (question: Question) => {
    const { ask, text } = desk();
    ask(question, 1_060_000);
    return /60s left, (.*)/.exec(text())?.[1];
  };
  assert.equal(silence(approval()), "then no");
  assert.equal(
    silence({ kind: "clarify", question: "Which?", choices: null, multiSelect: false }),
    "then Hermes decides",
  );
  assert.equal(silence({ kind: "sudo" }), "then skipped");
});

test("what is looked at gives way to a question of the agent, and says that it closed", () => {
  const { questions, ask, text, press } = desk();
  let closed = 0;
  const panel: Component = {
    render: () => ["panel"],
    invalidate: () => undefined,
    handleInput: () => questions.cancel(),
  };
  questions.showPanel(panel, () => closed++);
  assert.ok(questions.open);
  ask(approval());
  assert.equal(closed, 1);
  assert.match(text(), /git push --force/);
  questions.cancel();
  questions.showPanel(panel, () => closed++);
  press("x");
  assert.deepEqual([closed, questions.open], [2, false]);
});

test("a question that may expire keeps no finished program waiting", async () => {
  const { questions, press } = desk();
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const picked = questions.pick("Now?", [{ label: "Yes", value: true }], { timeoutMs: 60_000 });
  assert.equal(timers(), before);
  press("\r");
  assert.equal(await picked, true);
});
