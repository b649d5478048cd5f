// Calls a person who looks elsewhere when the agent waits for an answer: bell, desktop notification, window title.

import type { Config } from "../../home/config/schema.ts";
import { t } from "../../home/language/words.ts";
import type { Question } from "../../safety/decision.ts";
import { printable } from "../terminal-text.ts";

interface AttentionOptions {
  write(data: string): void;
  settings(): Pick<Config["display"], "bell_on_question" | "notify_on_question" | "window_title">;
  /** A variable of the environment, such as TERM. */
  env(name: string): string | undefined;
}

const BELL = "\u0007";
const ESC = "\u001b";
const NOTICE_CHARS = 120;
// xterm keeps titles on a stack; a terminal without one is left with the second title.
const PUSH_TITLE = `${ESC}[22;2t`;
const POP_TITLE = `${ESC}[23;2t`;
const title = (text: string) => `${ESC}]2;${text}${BELL}`;

/** They show OSC 777 and not OSC 9. The others either show OSC 9 or ignore it. */
const KNOWS_777 = /^(?:foot|rxvt|urxvt|vte|gnome)/;

export class Attention {
  readonly #options: AttentionOptions;
  #titled = false;

  constructor(options: AttentionOptions) {
    this.#options = options;
  }

  /** A question is on the screen. */
  call(question: Question): void {
    if (this.#isPlain) return;
    const { bell_on_question, notify_on_question, window_title } = this.#options.settings();
    const needs = question.kind === "approval" ? t("needs approval") : t("has a question");
    const out: string[] = [];
    if (window_title) {
      out.push(this.#titled ? "" : PUSH_TITLE, title(`⚠ hermes – ${needs}`));
      this.#titled = true;
    }
    if (notify_on_question) out.push(this.#notice(`hermes ${needs}`, aboutOf(question)));
    if (bell_on_question) out.push(BELL);
    if (out.length > 0) this.#options.write(out.join(""));
  }

  /** Nothing waits any more. */
  settle(): void {
    if (!this.#titled) return;
    this.#titled = false;
    this.#options.write(title("hermes") + POP_TITLE);
  }

  get #isPlain(): boolean {
    const term = this.#options.env("TERM") ?? "";
    return term === "" || term === "dumb";
  }

  #notice(head: string, about: string): string {
    const { env } = this.#options;
    const term = env("TERM") ?? "";
    // The console of Linux takes the letters behind "ESC ]" for colours.
    if (term === "linux") return "";
    const shows777 = KNOWS_777.test(term) || env("VTE_VERSION") !== undefined;
    const sequence = shows777
      ? `${ESC}]777;notify;${head};${about}${BELL}`
      : `${ESC}]9;${about === "" ? head : `${head}: ${about}`}${BELL}`;
    // tmux hands on only what is wrapped for it, and drops it where that is switched off.
    return env("TMUX") === undefined ? sequence : `${ESC}Ptmux;${sequence.replaceAll(ESC, ESC + ESC)}${ESC}\\`;
  }
}

/** One line without what would end or split the sequence it stands in. */
function aboutOf(question: Question): string {
  const text =
    question.kind === "approval"
      ? question.command
      : question.kind === "clarify"
        ? question.question
        : question.kind === "confirm"
          ? question.title
          : "";
  const line = printable(text)
    .replace(/[\s;]+/g, " ")
    .trim();
  return [...line].slice(0, NOTICE_CHARS).join("");
}
