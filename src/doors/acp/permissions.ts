// Questions to the person at the editor: commands, edits, and yes or no. Silence, an error and a client that is gone all mean no.
import type {
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import type { AskRequest } from "../../agent/events.ts";
import { said, t } from "../../home/language/words.ts";
import type { Logger } from "../../home/log.ts";
import { withoutControls } from "../../kit/strip-ansi.ts";
import { type AnswerTo, type ApprovalQuestion, type Question, refuse } from "../../safety/decision.ts";
import type { EditVerdict, FileEdit } from "../../tools/toolset/context.ts";
import { approvalWords } from "../approval-words.ts";
import { textContent } from "./tool-view.ts";
import { diffContent } from "./updates.ts";

/** The way to the client; rejects when it is gone or does not know the call. */
type AskClient = (
  request: Omit<RequestPermissionRequest, "sessionId">,
  signal: AbortSignal,
) => Promise<RequestPermissionResponse>;

/** How long somebody may look at an edit. Commands wait as `approvals.timeout` says. */
const EDIT_MS = 60_000;

type Choice = "allow_once" | "allow_session" | "allow_always" | "deny" | "deny_always";

const KINDS: Readonly<Record<Choice, PermissionOption["kind"]>> = {
  allow_once: "allow_once",
  allow_session: "allow_always",
  allow_always: "allow_always",
  deny: "reject_once",
  deny_always: "reject_always",
};

export class Permissions {
  readonly #ask: AskClient;
  readonly #log: Logger;
  readonly #stop: () => void;
  /** Commands that are refused for the rest of the session. */
  readonly #refused = new Set<string>();
  #checks = 0;
  #edits = 0;

  /** `stop` ends the turn that asks: a client answers "cancelled" when its user has done so. */
  constructor(ask: AskClient, log: Logger, stop: () => void) {
    this.#ask = ask;
    this.#log = log;
    this.#stop = stop;
  }

  /** Answers a question of the agent. Never rejects. */
  async answer(request: AskRequest): Promise<void> {
    const { question, signal } = request;
    const reply = (value: AnswerTo<Question>) => (request.answer as (value: AnswerTo<Question>) => void)(value); // made for its kind below
    switch (question.kind) {
      case "approval":
        return reply(await this.#approve(question, signal));
      case "confirm":
        return reply({
          choice: await this.confirm(question.title, question.detail, question.onceOnly !== true, signal),
        });
      default:
        // Passwords and keys have no place in an editor's dialog; it has no free text either.
        return reply(refuse(question));
    }
  }

  async #approve(question: ApprovalQuestion, signal: AbortSignal): Promise<AnswerTo<ApprovalQuestion>> {
    const { command, note, description } = question;
    if (this.#refused.has(command))
      return { choice: "deny", reason: "the user refused this command for the whole session" };
    const { title, once, no } = approvalWords(question);
    const options: [Choice, string][] = [
      ["allow_once", once],
      ...(question.allowSession === false
        ? []
        : ([["allow_session", t("Allow for this session")]] as [Choice, string][])),
      ...(question.allowAlways ? ([["allow_always", t("Always allow")]] as [Choice, string][]) : []),
      ["deny", no],
      ["deny_always", t("No, and never this command in this session")],
    ];
    const words = [title, ...(note === undefined ? [] : [note])].join("\n\n");
    const choice = await this.#choose(
      {
        toolCallId: `perm-check-${++this.#checks}`,
        title: shown(command),
        kind: "execute",
        status: "pending",
        content: [textContent(words), textContent(command, true)],
        rawInput: { command, description },
      },
      options,
      signal,
    );
    if (choice === "deny_always") this.#refused.add(command);
    if (choice === null || choice === "deny" || choice === "deny_always")
      return { choice: "deny", ...(choice === null && { timedOut: signal.aborted }) };
    return { choice: choice === "allow_once" ? "once" : choice === "allow_session" ? "session" : "always" };
  }

  /** A yes or no; `lasting` offers one that is remembered. */
  async confirm(
    title: string,
    detail: string,
    lasting: boolean,
    signal: AbortSignal,
  ): Promise<"once" | "always" | "cancel"> {
    const choice = await this.#choose(
      {
        toolCallId: `perm-check-${++this.#checks}`,
        title: shown(title),
        kind: "other",
        status: "pending",
        content: [textContent(said(detail === "" ? title : detail))],
      },
      [
        ["allow_once", t("Yes")],
        ...(lasting ? ([["allow_always", t("Always")]] as [Choice, string][]) : []),
        ["deny", t("No")],
      ],
      signal,
    );
    return choice === "allow_once" ? "once" : choice === "allow_always" ? "always" : "cancel";
  }

  /** Whether a folder that is new may load and run what is its own; null: nobody said. */
  async trust(folder: string, signal: AbortSignal): Promise<"trust" | "look only" | null> {
    const words = t("Plugins, servers and programs of this folder may load and run when you trust it: {folder}", {
      folder,
    });
    const choice = await this.#choose(
      {
        toolCallId: `perm-check-${++this.#checks}`,
        title: t("Trust this folder?"),
        kind: "other",
        status: "pending",
        content: [textContent(words)],
        locations: [{ path: folder }],
      },
      [
        ["allow_always", t("Trust it")],
        ["deny", t("Look only")],
      ],
      signal,
    );
    return choice === null ? null : choice === "allow_always" ? "trust" : "look only";
  }

  /** Shows both sides of what would be written. Resolves to whether it may be. */
  async edit(edits: readonly FileEdit[], title: string, signal: AbortSignal): Promise<EditVerdict> {
    const late = AbortSignal.timeout(EDIT_MS);
    const choice = await this.#choose(
      {
        toolCallId: `edit-approval-${++this.#edits}`,
        title: shown(title),
        kind: "edit",
        status: "pending",
        content: edits.map(diffContent),
        locations: edits.map(({ path }) => ({ path })),
      },
      [
        ["allow_once", t("Write it")],
        ["deny", t("No, don't write it")],
      ],
      AbortSignal.any([signal, late]),
    );
    if (choice === "allow_once") return "yes";
    return choice === null && late.aborted ? "silence" : "no";
  }

  /** Null: nobody chose anything. */
  async #choose(
    toolCall: ToolCallUpdate,
    offered: readonly (readonly [Choice, string])[],
    signal: AbortSignal,
  ): Promise<Choice | null> {
    if (signal.aborted) return null;
    const options = offered.map(([optionId, name]) => ({ optionId, name, kind: KINDS[optionId] }));
    try {
      const { outcome } = await this.#ask({ toolCall, options }, signal);
      if (outcome.outcome === "cancelled") {
        // Here, not with the notification that comes too: until then the agent would go on with a refusal that nobody gave.
        this.#stop();
        return null;
      }
      return offered.find(([optionId]) => optionId === outcome.optionId)?.[0] ?? "deny";
    } catch (error) {
      if (!signal.aborted) this.#log.warn("the editor did not answer a question", error);
      return null;
    }
  }
}

const shown = (text: string) => withoutControls(text).replace(/\s+/g, " ").trim();
