// The agent inside another program: contract.ts on one side, `Agent` on the other.
import { homedir } from "node:os";
import { resolve } from "node:path";
import type { AgentEvent, AskRequest, TurnOutcome } from "../../agent/events.ts";
import { openAgent as openConversation } from "../../agent/open.ts";
import type { OpenRequest } from "../../agent/open-request.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { type OpenHome, openHome } from "../../home/open.ts";
import { profileName } from "../../home/profiles.ts";
import { systemClock } from "../../kit/clock.ts";
import { messageOf, UserError } from "../../kit/errors.ts";
import { isDirectory } from "../../kit/files.ts";
import { asRecord, isRecord } from "../../kit/json.ts";
import type { UserInput } from "../../llm/messages.ts";
import { refuse } from "../../safety/decision.ts";
import { createRedactor } from "../../safety/redact.ts";
import { openSessionStore } from "../../sessions/open.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type {
  AgentInput,
  AgentQuestion,
  AgentStreamEvent,
  Answer,
  OpenOptions,
  SendOptions,
  HermesAgent as ToKeep,
} from "./contract.ts";
import { ownTools } from "./own-tools.ts";

/** `env`: the environment of the program around it. */
export async function openAgent(given: OpenOptions, env: NodeJS.ProcessEnv): Promise<ToKeep> {
  const options = checked(given);
  const cwd = resolve(options.cwd ?? process.cwd());
  if (!(await isDirectory(cwd))) throw new UserError(`openAgent: cwd: there is no folder ${cwd}.`);
  const home = await openHome({
    argv: options.profile === undefined ? [] : ["-p", options.profile],
    env: { ...env, ...(options.home === undefined ? {} : { HERMES_HOME: resolve(options.home) }) },
    osHome: env.HOME || homedir(),
    cwd,
    redactorFor: (settings) => createRedactor(settings),
  });
  let store: SessionStore | null = null;
  try {
    store = await openSessionStore({
      path: home.paths.stateDb,
      journalMode: home.config().database.journal_mode,
      log: home.log.child("sessions"),
      clock: systemClock,
      sessionsDir: home.paths.sessionsDir,
      inMemory: home.unwritable !== null,
    });
    const conversation = await openConversation(requestFor(options, { home, store, cwd }));
    return new HermesAgent(conversation, { home, store, options });
  } catch (error) {
    await store?.close();
    await home.close();
    throw error;
  }
}

const isText = (value: unknown) => typeof value === "string" && value.trim() !== "";
const isList = (value: unknown) => Array.isArray(value);

/** What each option takes, and the words for it. */
const OPTIONS: Readonly<Record<keyof OpenOptions, readonly [fits: (value: unknown) => boolean, what: string]>> = {
  home: [isText, "the path of a folder"],
  profile: [(value) => isText(value) && profileName(String(value)) !== null, "the name of a profile"],
  cwd: [isText, "the path of a folder"],
  resume: [(value) => value === true || isText(value), "an id, a title or true"],
  model: [isText, "the name of a model"],
  provider: [isText, "the name of a provider"],
  toolsets: [(value) => Array.isArray(value) && value.every(isText), "a list of names"],
  instructions: [(value) => typeof value === "string", "a text"],
  tools: [isList, "a list of tools"],
  maxTurns: [(value) => Number.isSafeInteger(value) && Number(value) >= 1, "a whole number from 1 on"],
  ignoreRules: [(value) => typeof value === "boolean", "true or false"],
  onQuestion: [(value) => typeof value === "function", "a function"],
};

/** Programs are not always written in TypeScript: what cannot be meant is said by its name before anything is opened. */
function checked(options: unknown): OpenOptions {
  if (!isRecord(options)) throw new UserError('openAgent takes an object with options, such as { cwd: "/work" }.');
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(OPTIONS, name))
      throw new UserError(`openAgent has no option "${name}"; it has ${Object.keys(OPTIONS).join(", ")}.`);
    const [fits, what] = OPTIONS[name as keyof OpenOptions]; // it has that name
    if (value !== undefined && !fits(value)) throw new UserError(`openAgent: ${name} must be ${what}.`);
  }
  return options;
}

interface Opened {
  readonly home: OpenHome;
  readonly store: SessionStore;
}

function requestFor(options: OpenOptions, { home, store, cwd }: Opened & { readonly cwd: string }): OpenRequest {
  const { model, provider, toolsets, maxTurns, ignoreRules, resume, instructions, tools = [] } = options;
  return {
    ...{ home, clock: systemClock, cwd, platform: "library", source: "library" },
    store: async () => store,
    interactive: options.onQuestion !== undefined,
    ...{ model, provider, toolsets, maxTurns, ignoreRules },
    ...(resume === undefined ? {} : { resume: { name: resume === true ? null : resume } }),
    ...(instructions === undefined ? {} : { overlay: () => instructions }),
    titles: true,
    ownTools: ownTools(tools),
  };
}

class HermesAgent implements ToKeep {
  readonly notes: readonly string[];
  readonly #conversation: OpenAgent;
  readonly #opened: Opened;
  readonly #onQuestion: OpenOptions["onQuestion"];
  #closed: Promise<void> | null = null;

  constructor(conversation: OpenAgent, { options, ...opened }: Opened & { readonly options: OpenOptions }) {
    const { home } = opened;
    this.#conversation = conversation;
    this.#opened = opened;
    this.#onQuestion = options.onQuestion?.bind(options);
    const { folder, standing } = home.folders.standing(conversation.cwd);
    // Where somebody can be asked a door with a screen asks about the folder; here it is said.
    const asks = this.#onQuestion !== undefined && standing === "unknown";
    const name = home.display(folder);
    const trust = `${name} is not trusted: nothing in it loads or runs on its own. To change that: hermes trust add ${name}`;
    this.notes = [...home.warnings, ...conversation.notes, ...(asks ? [trust] : [])];
  }

  get sessionId(): string {
    return this.#conversation.agent.sessionId;
  }

  get model(): string {
    return this.#conversation.target.model;
  }

  get toolNames(): readonly string[] {
    return this.#conversation.toolNames;
  }

  async *send(input: AgentInput, options: SendOptions = {}): AsyncGenerator<AgentStreamEvent, void, undefined> {
    if (this.#closed) throw new UserError("the agent is closed; open another one.");
    if (options.signal !== undefined && !(options.signal instanceof AbortSignal))
      throw new UserError("signal must be an AbortSignal.");
    const said = await readInput(input);
    for await (const event of this.#conversation.agent.run(said, options.signal ? { signal: options.signal } : {})) {
      if (event.type === "ask") void this.#answer(event.request);
      const shown = streamed(event);
      if (shown !== null) yield shown;
    }
  }

  async ask(input: AgentInput, options?: SendOptions): Promise<Answer> {
    for await (const event of this.send(input, options)) if (event.type === "done") return event.answer;
    throw new Error("the turn ended without a result");
  }

  steer(text: string): boolean {
    return this.#conversation.agent.steer(text);
  }

  interrupt(reason?: string): void {
    this.#conversation.agent.interrupt(reason);
  }

  settled(): Promise<void> {
    return this.#conversation.agent.settled();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { home, store } = this.#opened;
    try {
      await this.#conversation.close("agent_close");
    } finally {
      await store.close();
      await home.close();
    }
  }

  /** Whatever is not a clear yes is a no; what the program's own code throws is one too. */
  async #answer(request: AskRequest): Promise<void> {
    const { question, signal } = request;
    const reply = (value: unknown) => request.answer(value as never); // each branch gives the answer of its own kind
    const shown = shownQuestion(question);
    let given: unknown = null;
    try {
      given = await this.#onQuestion?.(shown, signal);
    } catch (error) {
      this.#opened.home.log.warn("onQuestion failed; the answer is no", messageOf(error));
    }
    const word = typeof given === "string" ? given : null;
    if (question.kind !== "approval" && question.kind !== "confirm") return reply({ text: word });
    const offered: readonly string[] = "choices" in shown ? (shown.choices ?? []) : [];
    reply(word !== null && offered.includes(word) ? { choice: word } : refuse(question));
  }
}

async function readInput(input: AgentInput): Promise<UserInput> {
  if (typeof input === "string") return { text: input };
  const { text, images = [] } = asRecord(input) as Partial<Exclude<AgentInput, string>>; // checked on the next lines
  if (typeof text !== "string" || !Array.isArray(images) || !images.every(isText))
    throw new UserError("what is said must be a text, or { text, images } with the paths of pictures.");
  if (images.length === 0) return { text };
  const { PictureError, pictureFile, withPaths } = await import("../../tools/media/user-pictures.ts");
  try {
    const pictures = await Promise.all(images.map((path) => pictureFile(resolve(path))));
    return withPaths({ text, parts: pictures.map(({ part }) => part) }, pictures);
  } catch (error) {
    throw error instanceof PictureError ? new UserError(error.message) : error;
  }
}

function shownQuestion(question: AskRequest["question"]): AgentQuestion {
  switch (question.kind) {
    case "approval": {
      const { command, description: reason, note = null, allowSession, allowAlways } = question;
      const session = allowSession === false ? [] : (["session"] as const);
      const always = allowAlways ? (["always"] as const) : [];
      return { kind: "approval", command, reason, note, choices: ["once", ...session, ...always, "deny"] };
    }
    case "confirm": {
      const { title, detail, onceOnly } = question;
      const choices = onceOnly ? (["once", "cancel"] as const) : (["once", "always", "cancel"] as const);
      return { kind: "confirm", reason: title, note: detail, choices };
    }
    case "clarify":
      return { kind: "clarify", text: question.question, choices: question.choices };
    case "sudo":
      return { kind: "secret", text: "The password for sudo" };
    case "secret":
      return { kind: "secret", text: question.prompt };
  }
}

/** Null: nothing that an embedding program sees. */
function streamed(event: AgentEvent): AgentStreamEvent | null {
  switch (event.type) {
    case "text":
    case "thinking":
      return { type: event.type, delta: event.delta };
    case "text_end":
      return { type: "message", text: event.text, isFinal: event.kind === "final" };
    case "tool_start": {
      const { id, name, args, preview } = event.call;
      return { type: "tool_start", id, name, args, preview };
    }
    case "tool_end": {
      const { call, failed, ms, result, diff = null } = event;
      return { type: "tool_end", id: call.id, name: call.name, failed, seconds: ms / 1000, result, diff };
    }
    case "status":
      return event.kind === "heartbeat" ? null : { type: "status", message: event.message };
    case "done":
      return { type: "done", answer: answerOf(event.outcome) };
    default:
      return null;
  }
}

function answerOf(outcome: TurnOutcome): Answer {
  const { finalText, completed, failed, interrupted, error = null, sessionId, model, apiCalls, totals } = outcome;
  const { inputTokens, outputTokens, costUsd } = totals;
  return {
    text: finalText ?? "",
    ...{ completed, failed, interrupted, error, sessionId, model, apiCalls },
    usage: { inputTokens, outputTokens, costUsd },
  };
}
