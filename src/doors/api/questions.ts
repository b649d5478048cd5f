// What the agent asks in a run: it waits for a call to the run's approval address. Whatever a program cannot answer is refused at once.
import type { AskRequest } from "../../agent/events.ts";
import type { Clock } from "../../kit/clock.ts";
import { type ApprovalChoice, type Question, refuse } from "../../safety/decision.ts";
import { approvalWords } from "../approval-words.ts";
import { ApiError } from "./contract.ts";

const CHOICES: readonly ApprovalChoice[] = ["once", "session", "always", "deny"];
const ALIASES: Readonly<Record<string, ApprovalChoice>> = {
  ...{ once: "once", approve: "once", approved: "once", allow: "once", yes: "once" },
  ...{ session: "session", always: "always", deny: "deny", denied: "deny", no: "deny" },
};

interface Waiting {
  readonly choices: readonly ApprovalChoice[];
  settle(choice: ApprovalChoice | "closed"): void;
}

interface Asking {
  readonly clock: Clock;
  /** Seconds until silence is a no; 0: it never is. */
  readonly seconds: number;
  /** One event of the stream: a question came up, or it is over. */
  tell(event: "approval.request" | "approval.responded", fields: Readonly<Record<string, unknown>>): void;
}

/** The questions of one run, oldest first. */
export class Questions {
  readonly #waiting: Waiting[] = [];

  get waits(): boolean {
    return this.#waiting.length > 0;
  }

  ask({ question, signal, answer, id }: AskRequest, { clock, seconds, tell }: Asking): void {
    if (question.kind !== "approval" && question.kind !== "confirm") return answer(refuse<Question>(question));
    const choices = offered(question);
    const over = new AbortController();
    const waiting: Waiting = {
      choices,
      settle: (choice) => {
        const at = this.#waiting.indexOf(waiting);
        if (at === -1) return;
        this.#waiting.splice(at, 1);
        over.abort();
        tell("approval.responded", { approval_id: id, choice, resolved: 1 });
        if (choice === "closed") return;
        if (question.kind === "approval") answer({ choice });
        else answer({ choice: choice === "deny" ? "cancel" : choice === "always" ? "always" : "once" });
      },
    };
    this.#waiting.push(waiting);
    tell("approval.request", { approval_id: id, ...described(question), choices });
    if (signal.aborted) return waiting.settle("closed");
    // Answered elsewhere, or the turn has ended.
    signal.addEventListener("abort", () => waiting.settle("closed"), { once: true });
    if (seconds > 0)
      void clock.sleep(seconds * 1000, over.signal).then(
        () => waiting.settle("deny"),
        () => undefined, // it was settled before
      );
  }

  /** What a client decided. Throws an `ApiError` for what cannot be meant; resolves to how many questions that answered. */
  respond(body: Readonly<Record<string, unknown>>): { readonly choice: ApprovalChoice; readonly resolved: number } {
    const word = typeof body.choice === "string" ? body.choice.trim().toLowerCase() : "";
    const choice = Object.hasOwn(ALIASES, word) ? ALIASES[word] : undefined;
    if (choice === undefined)
      throw new ApiError(400, `choice must be one of ${CHOICES.join(", ")}`, {
        ...{ param: "choice", code: "invalid_approval_choice" },
      });
    const [first] = this.#waiting;
    if (first === undefined)
      throw new ApiError(409, "nothing waits for an approval in this run", { code: "approval_not_pending" });
    const meant = body.all === true || body.resolve_all === true ? [...this.#waiting] : [first];
    const refused = meant.find(({ choices }) => !choices.includes(choice));
    if (refused)
      throw new ApiError(400, `"${choice}" is not offered here; choose one of ${refused.choices.join(", ")}`, {
        ...{ param: "choice", code: "invalid_approval_choice" },
      });
    for (const waiting of meant) waiting.settle(choice);
    return { choice, resolved: meant.length };
  }
}

type Asked = Extract<Question, { readonly kind: "approval" | "confirm" }>;

function offered(question: Asked): readonly ApprovalChoice[] {
  const withAlways = question.kind === "approval" ? question.allowAlways : question.onceOnly !== true;
  const withSession = question.kind === "approval" && question.allowSession !== false;
  return CHOICES.filter((choice) => (choice !== "always" || withAlways) && (choice !== "session" || withSession));
}

function described(question: Asked): Readonly<Record<string, unknown>> {
  if (question.kind === "confirm") return { command: question.detail, description: question.title, pattern_key: "" };
  const { command, description, patternKey, note } = question;
  return {
    ...{ command, description, pattern_key: patternKey, title: approvalWords(question).title },
    ...(note === undefined ? {} : { note }),
  };
}
