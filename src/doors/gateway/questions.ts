// Questions that wait in chats: for an approval, an answer of the user, or a yes to a command. Each is answered once, by somebody who may,
// with a button or with words.
import { randomBytes } from "node:crypto";
import type { AskRequest } from "../../agent/events.ts";
import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import { type ApprovalChoice, type ApprovalQuestion, type Question, refuse } from "../../safety/decision.ts";
import type { WorkStore } from "../../sessions/work.ts";
import { approvalWords } from "../approval-words.ts";
import type { ChatSource } from "./chat.ts";
import type { ChatTarget, ChoiceButton } from "./contract.ts";
import type { Payload } from "./delivery.ts";

/** Where a question is asked, and of whom. */
export interface AskedPlace {
  readonly key: string;
  readonly source: ChatSource;
  readonly target: ChatTarget;
  readonly platform: string;
  readonly account: string;
  /** Several people write there: only whoever asked for the work, or an admin, may answer. */
  readonly shared: boolean;
}

type Kind = "approval" | "clarify" | "confirm";

interface OpenQuestion {
  readonly id: string;
  readonly kind: Kind;
  readonly place: AskedPlace;
  readonly words: ReadonlyMap<string, string>;
  /** Null: what is written is the answer itself. */
  readonly choices: readonly string[] | null;
  readonly outboxId: number;
  /** Labels by choice, for what is shown afterwards. */
  readonly labels: ReadonlyMap<string, string>;
  readonly text: string;
  settle(choice: string, reason?: string): void;
}

interface QuestionsOptions {
  readonly work: WorkStore;
  readonly clock: Clock;
  readonly log: Logger;
  redact(text: string): string;
  /** Something was promised in the name of a bot. */
  wake(platform: string): void;
  /** Of those who may write: whoever asked for the work, or an admin. */
  mayAnswer(who: ChatSource, place: AskedPlace): boolean;
  /** Whether a yes of theirs may change the settings: "always" is for admins. */
  isAdmin(who: ChatSource): boolean;
  /** Takes the buttons away; best effort. */
  closed(place: AskedPlace, messageId: string, text: string): Promise<void>;
}

const CONFIRM_MS = 120_000;
const OVER = "This question is closed.";

const APPROVAL_WORDS: Readonly<Record<string, ApprovalChoice>> = {
  ...{ yes: "once", y: "once", ok: "once", approve: "once", once: "once", "1": "once" },
  ...{ session: "session", always: "always", no: "deny", n: "deny", deny: "deny" },
};
const CONFIRM_WORDS: Readonly<Record<string, "once" | "always" | "cancel">> = {
  ...{ "1": "once", once: "once", approve: "once", yes: "once", y: "once", ok: "once" },
  ...{
    "2": "always",
    always: "always",
    remember: "always",
    "3": "cancel",
    cancel: "cancel",
    no: "cancel",
    n: "cancel",
  },
};

export class Questions {
  readonly #options: QuestionsOptions;
  /** In the order they were asked. */
  readonly #open = new Map<string, OpenQuestion>();

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** Whether something waits for an answer in the chat. */
  waits(key: string): boolean {
    return this.#of(key).length > 0;
  }

  /** Asks what a turn wants to know. Resolves when the question is over. */
  async ask(request: AskRequest, place: AskedPlace): Promise<void> {
    const { question: asked } = request;
    const isAdmin = this.#options.isAdmin(place.source);
    const question = asked.kind === "approval" ? { ...asked, allowAlways: asked.allowAlways && isAdmin } : asked;
    switch (question.kind) {
      case "approval": {
        const buttons = approvalButtons(question);
        const reply = (choice: string, reason?: string) =>
          request.answer({ choice: choice as ApprovalChoice, ...(reason ? { reason } : {}) }); // one of the buttons
        return this.#put("approval", approvalText(question), buttons, APPROVAL_WORDS, place, request.signal, reply);
      }
      case "clarify": {
        const choices = question.choices ?? [];
        const buttons = question.multiSelect ? [] : choices.map((label, at) => ({ label, choice: String(at) }));
        const listed = choices.map((label, at) => `${at + 1}. ${label}`).join("\n");
        const how = question.multiSelect ? "\nYou may name several." : "";
        const text = [`❓ ${question.question}`, listed + how].filter((part) => part !== "").join("\n\n");
        const words = Object.fromEntries(choices.map((_, at) => [String(at + 1), String(at)]));
        const reply = (said: string) =>
          request.answer({ text: buttons.length > 0 ? (choices[Number(said)] ?? said) : said });
        return this.#put("clarify", text, buttons, question.multiSelect ? {} : words, place, request.signal, reply);
      }
      case "confirm": {
        const buttons = confirmButtons(question.onceOnly === true || !isAdmin);
        const text = `${question.title}\n${question.detail}`;
        const reply = (choice: string) => request.answer({ choice: choice as "once" | "always" | "cancel" }); // one of the buttons
        return this.#put("confirm", text, buttons, CONFIRM_WORDS, place, request.signal, reply);
      }
      default:
        // A password has no business in a chat.
        return request.answer(refuse<Question>(question));
    }
  }

  /** The question before a destructive command. Silence and another message both mean no. */
  async confirm(title: string, detail: string, place: AskedPlace): Promise<"once" | "always" | "cancel"> {
    const { clock } = this.#options;
    const over = new AbortController();
    let answer: "once" | "always" | "cancel" = "cancel";
    const asked = this.#put(
      "confirm",
      `${title}\n${detail}`,
      confirmButtons(!this.#options.isAdmin(place.source)),
      CONFIRM_WORDS,
      place,
      over.signal,
      (choice) => {
        answer = choice as typeof answer; // one of the buttons
        over.abort();
      },
    );
    await Promise.race([asked, clock.sleep(CONFIRM_MS, over.signal).catch(() => undefined)]);
    over.abort();
    await asked;
    return answer;
  }

  /** A text that answers what waits. `cancelled`: it answers nothing, and a command that waited for a yes is off. */
  takeText(key: string, text: string, who: ChatSource): "taken" | "no" {
    const [question] = this.#of(key).toReversed();
    if (!question) return "no";
    if (!this.#options.mayAnswer(who, question.place)) return "no";
    const word = text.trim().replace(/^\//, "").toLowerCase();
    const choice = question.words.get(word);
    if (choice !== undefined) {
      question.settle(choice);
      return "taken";
    }
    if (question.kind === "clarify") {
      question.settle(text.trim());
      return "taken";
    }
    if (question.kind === "confirm") question.settle("cancel");
    return "no";
  }

  /** A button was pressed; resolves to what the presser is told. */
  press(id: string, choice: string, who: ChatSource): string {
    const question = this.#open.get(id);
    if (!question) return OVER;
    if (!this.#options.mayAnswer(who, question.place)) return "You may not answer this.";
    if (question.choices !== null && !question.choices.includes(choice)) return "This choice was not offered.";
    question.settle(choice);
    return question.labels.get(choice) ?? "OK";
  }

  /** `/approve`, `/deny`: the oldest question that waits for an approval, or all of them. Resolves to how many were answered. */
  answer(
    key: string,
    choice: ApprovalChoice,
    who: ChatSource,
    { all = false, reason }: { readonly all?: boolean; readonly reason?: string } = {},
  ): number {
    const waiting = this.#of(key);
    const approvals = waiting.filter(({ kind }) => kind === "approval");
    const confirms = waiting.filter(({ kind }) => kind === "confirm");
    const meant = approvals.length > 0 ? approvals : confirms;
    let answered = 0;
    for (const question of all ? meant : meant.slice(0, 1)) {
      if (!this.#options.mayAnswer(who, question.place)) continue;
      const offered = question.choices?.includes(choice) ? choice : choice === "deny" ? "cancel" : "once";
      question.settle(question.kind === "confirm" ? offered : nearest(choice, question.choices ?? []), reason);
      answered++;
    }
    return answered;
  }

  #of(key: string): readonly OpenQuestion[] {
    return [...this.#open.values()].filter(({ place }) => place.key === key);
  }

  async #put(
    kind: Kind,
    text: string,
    buttons: readonly ChoiceButton[],
    words: Readonly<Record<string, string>>,
    place: AskedPlace,
    over: AbortSignal,
    reply: (choice: string, reason?: string) => void,
  ): Promise<void> {
    const { work, redact, log } = this.#options;
    // Short: some platforms give a button 64 bytes for everything.
    const id = randomBytes(6).toString("hex");
    const shown = redact(text);
    const payload: Payload = { type: "question", text: shown, id, buttons, important: true };
    const { platform, account, target } = place;
    const [outboxId = 0] = await work.promise([
      { cause: `question:${id}`, part: 0, platform, account, target, payload },
    ]);
    this.#options.wake(platform);
    const { promise, resolve } = Promise.withResolvers<string>();
    const offered = buttons.map(({ choice }) => choice);
    const question: OpenQuestion = {
      ...{ id, kind, place, outboxId, text: shown },
      choices: offered.length > 0 ? offered : null,
      words: new Map(Object.entries(words).filter(([, choice]) => offered.length === 0 || offered.includes(choice))),
      labels: new Map(buttons.map(({ label, choice }) => [choice, label])),
      settle: (choice, reason) => {
        this.#open.delete(id);
        // First: the reply may end the question by itself.
        resolve(question.labels.get(choice) ?? "answered");
        reply(choice, reason);
      },
    };
    this.#open.set(id, question);
    const end = () => {
      this.#open.delete(id);
      resolve("no answer");
    };
    if (over.aborted) end();
    else over.addEventListener("abort", end, { once: true });
    const outcome = await promise;
    over.removeEventListener("abort", end);
    const messageId = (await work.outboxRow(outboxId))?.platformMessageId ?? null;
    if (messageId !== null && buttons.length > 0)
      await this.#options
        .closed(place, messageId, `${shown}\n\n→ ${outcome}`)
        .catch((error) => log.debug("the buttons of a question stay", error));
  }
}

/** The yes that was meant, as far as it was offered. */
function nearest(choice: ApprovalChoice, offered: readonly string[]): string {
  if (offered.includes(choice)) return choice;
  return choice === "deny" ? "deny" : "once";
}

function approvalButtons(question: ApprovalQuestion): ChoiceButton[] {
  const { once, no } = approvalWords(question);
  return [
    { label: once, choice: "once" },
    ...(question.allowSession === false ? [] : [{ label: "For this conversation", choice: "session" }]),
    ...(question.allowAlways ? [{ label: "Always", choice: "always" }] : []),
    { label: no, choice: "deny" },
  ];
}

function approvalText(question: ApprovalQuestion): string {
  const { title } = approvalWords(question);
  const ways = ["/approve", ...(question.allowSession === false ? [] : ["/approve session"])];
  if (question.allowAlways) ways.push("/approve always");
  const code = question.command.includes("```") ? question.command : `\`\`\`\n${question.command}\n\`\`\``;
  return [`⚠️ ${title}`, code, ...(question.note ? [question.note] : []), `${ways.join(", ")} or /deny`].join("\n\n");
}

const confirmButtons = (onceOnly: boolean): ChoiceButton[] => [
  { label: "Yes, once", choice: "once" },
  ...(onceOnly ? [] : [{ label: "Always", choice: "always" }]),
  { label: "Cancel", choice: "cancel" },
];
