// What clients write: messages with text and pictures, in the forms of both OpenAI APIs, read into ours. Whatever is not understood is
// refused by the name of its field.
import { isRecord } from "../../kit/json.ts";
import { type ContentPart, type HistoryMessage, textOf, type UserInput } from "../../llm/messages.ts";
import { badField } from "./contract.ts";

type Body = Readonly<Record<string, unknown>>;
type Content = string | readonly ContentPart[];

const MOST_PARTS = 1000;
const LONGEST_TEXT = 65_536;
const MOST_MESSAGES = 10_000;

/** One message of a client. `system` speaks of the agent, the others are the conversation. */
interface GivenMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: Content;
}

const ROLES: Readonly<Record<string, GivenMessage["role"] | "ignored">> = {
  ...{ system: "system", developer: "system", user: "user", assistant: "assistant" },
  // Results of tools that the client ran: ours are in the store.
  ...{ tool: "ignored", function: "ignored" },
};

/** A conversation as a client sends it: what comes last is to be answered. */
interface GivenConversation {
  readonly system: string | undefined;
  readonly history: readonly HistoryMessage[];
  readonly input: UserInput;
  /** The first thing that the user said in it. */
  readonly firstUserText: string;
}

/** `messages` of chat/completions. */
export function readMessages(value: unknown): GivenConversation {
  if (!Array.isArray(value) || value.length === 0)
    throw badField("messages", "messages must be a list with at least one message");
  const given = readList(value, "messages");
  const system = given.filter(({ role }) => role === "system").map(({ content }) => textOf(content).trim());
  const talk = given.filter(({ role }) => role !== "system");
  const last = talk.findLastIndex(({ role }) => role === "user");
  const asked = talk[last];
  if (asked === undefined || !isVisible(asked.content))
    throw badField("messages", "No user message: the last message must be one of the user, with text or a picture");
  // The beginning of an answer that the client wants to be continued.
  const begun = talk.slice(last + 1).map(({ content }) => textOf(content));
  const note = begun.join("\n").trim();
  return {
    system: system.filter((text) => text !== "").join("\n") || undefined,
    history: asHistory(talk.slice(0, last)),
    input: {
      ...inputOf(asked.content),
      ...(note === "" ? {} : { note: `[Your answer so far, sent by the client: ${note}]` }),
    },
    firstUserText: textOf(talk.find(({ role }) => role === "user")?.content ?? ""),
  };
}

/** `input` of responses and runs: a text, or a list of which the last is to be answered. */
export function readInput(value: unknown): Omit<GivenConversation, "firstUserText"> {
  if (value === undefined || value === null || value === "") throw badField("input", "input is missing");
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) throw badField("input", "input is empty");
  const given = list.flatMap((one, at): GivenMessage[] => {
    const param = Array.isArray(value) ? `input[${at}]` : "input";
    if (typeof one === "string") return [{ role: "user", content: withinLimit(one, param) }];
    if (!isRecord(one)) throw badField(param, `${param} must be a text or an object with role and content`);
    // Items of an earlier answer, sent back: the chain has them.
    if (typeof one.type === "string" && one.type !== "message" && one.role === undefined) return [];
    return readList([one], "input", at);
  });
  const system = given.filter(({ role }) => role === "system").map(({ content }) => textOf(content).trim());
  const talk = given.filter(({ role }) => role !== "system");
  const asked = talk.at(-1);
  if (asked === undefined || asked.role !== "user" || !isVisible(asked.content))
    throw badField("input", "No user message: the last item of input must be one of the user, with text or a picture");
  return {
    system: system.filter((text) => text !== "").join("\n") || undefined,
    history: asHistory(talk.slice(0, -1)),
    input: inputOf(asked.content),
  };
}

/** `conversation_history`: undefined when it was not given. */
export function readHistory(value: unknown): readonly HistoryMessage[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw badField("conversation_history", "conversation_history must be a list of messages");
  for (const [at, one] of value.entries())
    if (!isRecord(one) || one.role === undefined || !("content" in one))
      throw badField(
        `conversation_history[${at}]`,
        `conversation_history[${at}] must be an object with role and content`,
      );
  return asHistory(readList(value, "conversation_history").filter(({ role }) => role !== "system"));
}

/** `message` or `input` of a session's chat. */
export function readSaid(body: Body): UserInput {
  const [param, value] = body.message === undefined ? ["input", body.input] : ["message", body.message];
  const content = readContent(value, String(param));
  if (value === undefined || !isVisible(content))
    throw badField(String(param), "message is missing: a text, or a list of text and picture parts");
  return inputOf(content);
}

/** A text of the body, or nothing. */
export function optionalText(body: Body, name: string, { longest = LONGEST_TEXT } = {}): string | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw badField(name, `${name} must be a text`);
  if (value.length > longest) throw badField(name, `${name} must have at most ${longest} characters`);
  return value;
}

const YES = new Set(["true", "1", "yes", "on"]);
const NO = new Set(["false", "0", "no", "off"]);

/** Programs write truth values in many ways; what is none of them counts as not given. */
export function flag(value: unknown, fallback: boolean): boolean {
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return value !== 0;
  const word = typeof value === "string" ? value.trim().toLowerCase() : "";
  return YES.has(word) || (!NO.has(word) && fallback);
}

// --- one message

function readList(list: readonly unknown[], name: string, from = 0): GivenMessage[] {
  if (list.length > MOST_MESSAGES) throw badField(name, `${name} must have at most ${MOST_MESSAGES} messages`);
  return list.flatMap((one, at): GivenMessage[] => {
    const param = `${name}[${from + at}]`;
    if (!isRecord(one)) throw badField(param, `${param} must be an object with role and content`);
    const role = typeof one.role === "string" && Object.hasOwn(ROLES, one.role) ? ROLES[one.role] : undefined;
    if (role === undefined)
      throw badField(`${param}.role`, `${param}.role must be one of ${Object.keys(ROLES).join(", ")}`);
    if (role === "ignored") return [];
    const content = readContent(one.content, `${param}.content`);
    if (role === "system" && typeof content !== "string")
      throw badField(`${param}.content`, "a system message holds text only", "unsupported_content_type");
    return [{ role, content }];
  });
}

function readContent(value: unknown, param: string): Content {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return readParts(value, param);
  if (isRecord(value)) return readParts([value], param);
  return withinLimit(typeof value === "string" ? value : String(value), param);
}

function withinLimit(text: string, param: string): string {
  if (text.length > LONGEST_TEXT)
    throw badField(param, `${param} must have at most ${LONGEST_TEXT} characters`, "invalid_content_part");
  return text;
}

function readParts(value: readonly unknown[], param: string): Content {
  if (value.length > MOST_PARTS)
    throw badField(param, `${param} must have at most ${MOST_PARTS} parts`, "invalid_content_part");
  const parts = value.map((part) => readPart(part, param));
  const text = textOf(parts);
  withinLimit(text, param);
  return parts.every(({ type }) => type === "text") ? text : parts;
}

function readPart(part: unknown, param: string): ContentPart {
  if (typeof part === "string") return { type: "text", text: part };
  if (!isRecord(part)) throw badField(param, `a part of ${param} must be a text or an object`, "invalid_content_part");
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      if (typeof part.text !== "string")
        throw badField(param, `a text part of ${param} has no text`, "invalid_content_part");
      return { type: "text", text: part.text };
    case "image_url":
    case "input_image":
      return { type: "image_url", image_url: readPicture(part.image_url, part.detail, param) };
    default:
      throw badField(
        param,
        `${param} holds a part of the type ${describe(part.type)}; text and pictures are supported`,
        "unsupported_content_type",
      );
  }
}

function readPicture(
  value: unknown,
  outer: unknown,
  param: string,
): { readonly url: string; readonly detail?: string } {
  const given = isRecord(value) ? value : { url: value, detail: outer };
  const url = typeof given.url === "string" ? given.url.trim() : "";
  if (/^data:/i.test(url) && !/^data:image\//i.test(url))
    throw badField(param, `${param} holds data that is not a picture`, "unsupported_content_type");
  if (!/^(?:https?:\/\/[^/]|data:image\/[\w.+-]+[;,])/i.test(url))
    throw badField(
      param,
      `a picture of ${param} needs an http(s) address or a data:image/... URL`,
      "invalid_image_url",
    );
  return { url, ...(typeof given.detail === "string" ? { detail: given.detail } : {}) };
}

const describe = (value: unknown) => (typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : typeof value);

const isVisible = (content: Content) => (typeof content === "string" ? content.trim() !== "" : content.length > 0);

function asHistory(messages: readonly GivenMessage[]): HistoryMessage[] {
  return messages.flatMap(({ role, content }): HistoryMessage[] => {
    if (!isVisible(content)) return [];
    if (role === "assistant") return [{ role, content: textOf(content) }];
    return role === "user" ? [{ role, content }] : [];
  });
}

function inputOf(content: Content): UserInput {
  if (typeof content === "string") return { text: content, from: "person" };
  const pictures = content.filter(({ type }) => type === "image_url");
  return { text: textOf(content), from: "person", parts: pictures };
}
