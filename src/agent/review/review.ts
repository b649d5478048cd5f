// One look back, from the prompt to the line the user sees.

import type { Config } from "../../home/config/schema.ts";
import { sliceCodePoints, truncateCodePoints } from "../../kit/code-points.ts";
import { messageOf } from "../../kit/errors.ts";
import { type HistoryMessage, textOf } from "../../llm/messages.ts";
import type { CommandGuard } from "../../safety/decision.ts";
import type { SessionTools } from "../../tools/toolset/session-tools.ts";
import type { Assembly, ModelChoice } from "../assembly.ts";
import type { Conversation, SentSoFar } from "../conversation.ts";
import type { AgentEventBody } from "../events.ts";
import type { Trigger } from "../nudges.ts";
import { IterationBudget } from "../steer.ts";
import { playTurn } from "../turn.ts";

interface ReviewRun {
  readonly triggers: readonly Trigger[];
  /** The conversation as it stood when the turn was over. */
  readonly sent: SentSoFar;
  readonly signal: AbortSignal;
}

/** Resolves to the line for the user, or null. What it saved before it was stopped is reported as well. */
export async function runReview(parent: Conversation, { triggers, sent, signal }: ReviewRun): Promise<string | null> {
  const { assembly } = parent;
  const { session } = assembly;
  const { conversation, tools, budget } = await forkForReview(parent, sent);
  const ended: EndedCall[] = [];
  const emit = (event: AgentEventBody) => {
    if (event.type === "tool_end" && !event.failed) ended.push({ ...event.call, result: event.result });
    if (event.type === "usage") parent.countSideCall(event.usage);
  };
  await parent.nudges.reviewStarts(triggers);
  try {
    const outcome = await playTurn(
      conversation,
      { text: reviewPrompt(triggers), from: "synthetic" },
      { signal, interactive: false, budget, emit, notify: () => undefined, interruptMessage: () => undefined },
    );
    if (outcome.failed) assembly.log.warn(`the review came to nothing: ${outcome.error ?? outcome.finalText}`);
  } finally {
    await tools.state.dispose();
  }
  return reviewLine(ended, noticeMode(assembly.config(), session.platform));
}

// A fork of the agent: the same model, prompt, tool list and history byte for byte, so that the provider has read it all before;
// but nothing it does is stored as conversation, nobody can be asked, and only memory and skills can be changed.

const SKILL_TOOLS = ["skills_list", "skill_view", "skill_manage"];

interface Fork {
  readonly conversation: Conversation;
  readonly tools: SessionTools;
  readonly budget: IterationBudget;
}

async function forkForReview(parent: Conversation, sent: SentSoFar): Promise<Fork> {
  const { assembly } = parent;
  const { timeout, max_iterations } = assembly.config().auxiliary.background_review;
  const routed = await otherModel(assembly, sent);
  const memory = assembly.memory === undefined ? [] : ["memory"];
  // The whole list is offered, as the prefix wants it; what a review has no business with is refused when it is called.
  const tools = assembly.tools.only(new Set([...memory, ...SKILL_TOOLS]));
  const budget = new FirmBudget(max_iterations);
  const model = routed ?? sent.model;
  const forked: Assembly = {
    ...quiet(assembly),
    session: {
      ...assembly.session,
      id: sent.sessionId,
      turn: sent.turn,
      store: null,
      lane: null,
      history: routed ? digestOf(sent.messages) : sent.messages,
      origin: "background_review",
      task: "background_review",
      interactive: false,
      reviews: false,
    },
    // No stand-ins: a look back is not worth a cold cache elsewhere.
    model: { ...model, fallbacks: [], ...(timeout > 0 && { liveness: { ...model.liveness, totalSeconds: timeout } }) },
    prompt: {
      system: async () => (routed ? `${REVIEWER}\n\n${sent.system.text}` : sent.system),
      ...(assembly.prompt.ephemeral ? { ephemeral: () => assembly.prompt.ephemeral?.() } : {}),
      ...(assembly.prompt.prefill ? { prefill: assembly.prompt.prefill } : {}),
    },
    tools,
    limits: { ...assembly.limits, maxIterations: budget.max, compression: false, lastAnswer: false },
  };
  return { conversation: parent.fork(forked), tools, budget };
}

/** Nobody outside hears of a review. What was shown to it has not been shown in the conversation: it remembers its own reading. */
function quiet(assembly: Assembly): Assembly {
  const { compression: _, follower: __, hints: ___, events: ____, mode: _____, ...rest } = assembly;
  const { skills, ...toolPorts } = assembly.toolPorts ?? {};
  const own = skills?.fork();
  return { ...rest, toolPorts: { ...toolPorts, ...(own ? { skills: own } : {}) }, guardFor: () => DENY };
}

const DENY: CommandGuard = {
  decide: async () => ({
    approved: false,
    message: "Commands do not run in a review.",
    description: null,
    patternKey: null,
  }),
};

/** A model of its own only where the settings name one whole and it can be asked; otherwise the conversation's, whose cache is warm. */
async function otherModel(assembly: Assembly, { model }: SentSoFar): Promise<ModelChoice | null> {
  const settings = assembly.config().auxiliary.background_review;
  const provider = settings.base_url && isAuto(settings.provider) ? "custom" : settings.provider;
  if (isAuto(provider) || settings.model === "" || !assembly.resolveSpec) return null;
  const { base_url, api_key, context_length } = settings;
  try {
    const target = await assembly.resolveSpec({
      provider,
      model: settings.model,
      ...(base_url ? { baseUrl: base_url } : {}),
      ...(api_key ? { apiKey: api_key } : {}),
      ...(context_length ? { contextLength: context_length } : {}),
    });
    const same = target.model === model.target.model && target.baseUrl === model.target.baseUrl;
    if (same) return null;
    const { extra_body } = settings;
    return { target, ...(Object.keys(extra_body).length > 0 ? { overrides: extra_body } : {}) };
  } catch (error) {
    const why = messageOf(error);
    assembly.log.warn(`auxiliary.background_review: ${why} Using the conversation's own model instead.`);
    return null;
  }
}

const isAuto = (provider: string) => provider === "" || provider === "auto";

/** What is refused costs its call: a model that goes on asking for it must come to an end. */
class FirmBudget extends IterationBudget {
  override refund(): void {
    // nothing is given back
  }
}

// A conversation made short for a model that has not seen it: the end word for word, the rest in one line per message.

const VERBATIM = 24;
const USER_CHARS = 300;
const ASSISTANT_CHARS = 200;

export function digestOf(messages: readonly HistoryMessage[]): readonly HistoryMessage[] {
  let start = Math.max(0, messages.length - VERBATIM);
  // Results without their calls are no legal beginning.
  while (messages[start]?.role === "tool") start++;
  const older = messages.slice(0, start).flatMap(lineOf);
  if (older.length === 0) return messages.slice(start);
  const digest: HistoryMessage = { role: "user", content: `[Earlier in this conversation]\n${older.join("\n")}` };
  return [digest, ...messages.slice(start)];
}

function lineOf(message: HistoryMessage): readonly string[] {
  if (message.role === "user") return [`USER: ${cutText(textOf(message.content), USER_CHARS)}`];
  if (message.role !== "assistant") return [];
  const said = message.content?.trim() ? [`ASSISTANT: ${cutText(message.content, ASSISTANT_CHARS)}`] : [];
  const names = (message.tool_calls ?? []).map((call) => call.function.name);
  return names.length > 0 ? [...said, `ASSISTANT[tools: ${names.join(", ")}]`] : said;
}

function cutText(text: string, max: number): string {
  // Long texts are not walked to their end for the sake of one line.
  return truncateCodePoints(sliceCodePoints(text.trim(), 0, max + 1).replace(/\s+/g, " "), max, "…");
}

// What the model is asked when it looks back at a conversation.

const NOTHING = "Nothing to save.";

const MEMORY = `Review the conversation above with your memory in mind:

1. Has the user revealed anything about themselves that is worth keeping: who they are, their wishes, preferences, personal details?
2. Has the user shown what they expect of you: how you should behave, how they like to work, in which way things should be done?

If something stands out, save it with the memory tool. Write each entry as a short fact that will still be true in a month; replace or merge an entry that says something similar instead of adding a second one.`;

const SKILLS = `Review the conversation above with your skills in mind.

Was there a way of working that was not obvious: something found by trial and error, a change of course because of what happened on the way, a method the user expected that was not yours? Signs to look for: the user corrected style, format or steps, or was annoyed by them; a workflow was put right; a technique, a fix or a use of a tool came up that will be needed again; a skill that was loaded turned out wrong, stale or incomplete.

Save it in the first of these places that fits:
1. A skill that was loaded in this conversation: patch it.
2. An existing skill for the same class of task (skills_list shows them, skill_view reads one): patch it with a section, a step or a pitfall.
3. A support file of such a skill, with a line in SKILL.md that points to it: references/ for detail and knowledge, templates/ for starting points, scripts/ for what can be run again.
4. A new skill for the whole class of task, with a rich SKILL.md. Its name says what kind of work it is for; never a ticket, an error message, a code name or "fix-this".

Read a skill with skill_view before you change it. Skills that came with the program, were installed or belong to the user are protected: leave them as they are, and name in your answer what you would change. Where two skills overlap, only mention it.

Do not save: failures that come from this machine's momentary state, claims that a tool does not work, passing errors, the story of this one task, attempts that never worked out dressed up as a method. When something failed and was solved, save the solution.`;

const OUTRO = {
  memory: `If nothing stands out, answer "${NOTHING}" and stop.`,
  skills: `Most conversations with real work hold something. If this one truly does not, answer "${NOTHING}" and stop.`,
  both: `Act on whichever of the two has something to offer. If neither has, answer "${NOTHING}" and stop.`,
};

const LIMITS =
  "Only the memory and skill tools run in this review; every other call is refused. The user is not reading along: do not ask, and keep your last answer to one line.";

function reviewPrompt(triggers: readonly Trigger[]): string {
  const memory = triggers.includes("memory");
  const skills = triggers.includes("skills");
  if (memory && skills) return [MEMORY, SKILLS, OUTRO.both, LIMITS].join("\n\n");
  return skills ? [SKILLS, OUTRO.skills, LIMITS].join("\n\n") : [MEMORY, OUTRO.memory, LIMITS].join("\n\n");
}

/** In front of the conversation's own prompt when another model looks at a digest of it. */
const REVIEWER =
  "You look back at a conversation that another model has held with its user, and save what should outlive it. You are not talking to the user. What follows is the prompt that conversation was held with; the messages are its digest.";

// What a review did, in one line for the user. Only what was really saved, or staged for approval, is reported.

/** A call that came to an end, with its result as the model got it. */
export interface EndedCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: string;
}

type NoticeMode = "off" | "on" | "verbose";

export function noticeMode({ display }: Config, platform: string): NoticeMode {
  const own = display.platforms[platform];
  const given = isFields(own) ? own.memory_notifications : undefined;
  if (given === "off" || given === "on" || given === "verbose") return given;
  if (typeof given === "boolean") return given ? "on" : "off";
  return display.memory_notifications;
}

/** Null when there is nothing to report. */
export function reviewLine(calls: readonly EndedCall[], mode: NoticeMode): string | null {
  const parts = summaryParts(calls, mode);
  return parts.length === 0 ? null : `💾 Self-improvement review: ${parts.join(" · ")}`;
}

export function summaryParts(calls: readonly EndedCall[], mode: NoticeMode): readonly string[] {
  if (mode === "off") return [];
  const done = calls.flatMap((call) => {
    const result = parse(call.result);
    return result?.success === true && result.no_change !== true ? [{ ...call, result }] : [];
  });
  const written = done.filter(({ result }) => result.staged !== true);
  const staged = done.filter(({ result }) => result.staged === true);
  const describe = mode === "verbose" ? inDetail : inShort;
  const parts = [...written.flatMap(describe), ...stagedParts(staged, mode)];
  return [...new Set(parts)];
}

interface Done {
  readonly name: string;
  readonly args: Fields;
  readonly result: Fields;
}

type Fields = Readonly<Record<string, unknown>>;

function inShort({ name, args, result }: Done): readonly string[] {
  if (name === "skill_manage") return textIn(result.message) ? [textIn(result.message)] : [];
  if (name !== "memory" || changedNothing(result)) return [];
  return [`${labelOf(args)} updated`];
}

function inDetail({ name, args, result }: Done): readonly string[] {
  if (name === "skill_manage") return [`📝 ${skillDetail(args, result)}`];
  if (name !== "memory" || changedNothing(result)) return [];
  const operations = Array.isArray(args.operations) && args.operations.length > 0 ? args.operations : [args];
  return operations.map((one) => `${labelOf(args)} ${operationDetail(isFields(one) ? one : {})}`);
}

function operationDetail({ action, content, old_text }: Fields): string {
  if (action === "remove") return `➖ ${cut(old_text, 60)}`;
  return `${action === "replace" ? "✏️" : "➕"} ${cut(content, 120)}`;
}

function skillDetail(args: Fields, result: Fields): string {
  const skill = `Skill '${textIn(args.name)}'`;
  if (args.action === "patch") return `${skill} patched: "${cut(args.old_string, 80)}" → "${cut(args.new_string, 80)}"`;
  const description = /^description:\s*(.+)$/m.exec(textIn(args.content))?.[1]?.replace(/^["']|["']$/g, "");
  if (args.action === "create" && description) return `${skill} created: ${cut(description, 120)}`;
  if (args.action === "edit" && description) return `${skill} rewritten: ${cut(description, 120)}`;
  return textIn(result.message);
}

function stagedParts(staged: readonly Done[], mode: NoticeMode): readonly string[] {
  if (staged.length === 0) return [];
  if (mode !== "verbose") return [`${staged.length} change${staged.length === 1 ? "" : "s"} staged for approval`];
  return staged.map((done) => {
    const what = done.name === "memory" ? inDetail({ ...done, result: {} }).join(" · ") : textIn(done.result.gist);
    return `staged: ${what || textIn(done.result.message)}`;
  });
}

/** A duplicate is a success that wrote nothing. */
const changedNothing = ({ message }: Fields) => /already exists/.test(textIn(message));

const labelOf = ({ target }: Fields) => (target === "user" ? "User profile" : "Memory");

const cut = (value: unknown, max: number) => truncateCodePoints(textIn(value).replace(/\s+/g, " ").trim(), max, "…");

const textIn = (value: unknown) => (typeof value === "string" ? value : "");

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch {
    return null; // a refusal in words, a result that was cut: nothing was saved by it
  }
}
