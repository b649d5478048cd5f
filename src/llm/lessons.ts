// What a destination refused once is not sent to it again. Each lesson is learnt from a refusal, costs one more request, and stays.
import type { ClassifiedError } from "./errors/classify.ts";
import { refusesStreaming, unsupportedParameter } from "./errors/details.ts";
import { stripGrammar } from "./json-schema.ts";
import type { ContentPart, Message } from "./messages.ts";
import {
  COMMON_LIMIT,
  type ImageLimit,
  isLargeImage,
  picturesToWords,
  pictureUrls,
  refusesImages,
  STRICT_LIMIT,
  stripImagesFromMessages,
} from "./pictures/fit.ts";
import type { ModelError, ModelRequest, ToolDefinition } from "./wire.ts";

const CAPS = ["max_tokens", "max_completion_tokens"] as const;
const KEPT_IMAGES = 3;
const TOO_MANY_IMAGES = /too many images|(?:maximum|limit|more than)[^.]{0,30}\b\d+ images/i;
const UNREADABLE_IMAGE =
  /(?:could not|cannot|failed to|unable to) (?:process|decode|read|load|parse) (?:the |this |your |input ){0,2}image|(?:invalid|unsupported|corrupt(?:ed)?)[ _]image|image_parse_error|not represent a valid image/i;
const NOT_READ = "[picture left out: the server could not read it]";
const NO_SUMMARIES = /reasoning[ .]summar/i;

export class Lessons {
  readonly #dropped = new Set<string>();
  #images = true;
  #toolImages = true;
  #manyImages = true;
  #summaries = true;
  #imageLimit: ImageLimit | null = null;
  /** Addresses of pictures that made the server refuse. */
  readonly #unreadable = new Set<string>();
  #longContext = true;
  #thinking = true;
  #codexItems = true;
  #streaming = true;
  #patterns = true;

  /** Whoever builds the request leaves pictures out: what is left of a message may have to be joined with its neighbour. */
  get takesImages(): boolean {
    return this.#images;
  }

  /** Null: pictures go as they are. Whoever sends the request makes the larger ones smaller. */
  get imageLimit(): ImageLimit | null {
    return this.#imageLimit;
  }

  get streams(): boolean {
    return this.#streaming;
  }

  /** A line for the user when the refusal taught something new: then the request is worth repeating at once. */
  learn(error: ModelError, { reason, statusCode }: ClassifiedError, request: ModelRequest): string | null {
    const body = typeof error.body === "string" ? error.body : JSON.stringify(error.body ?? "");
    const text = `${error.message} ${body}`;
    const unfitResult = reason === "multimodal_tool_content_unsupported";
    if (this.#toolImages && unfitResult && request.messages.some((message) => imagesToText(message) !== message)) {
      this.#toolImages = false;
      return "This model takes no pictures in tool results; they are skipped from now on.";
    }
    const many = statusCode === 400 && request.target.apiMode === "anthropic_messages" && TOO_MANY_IMAGES.test(text);
    if (this.#manyImages && many) {
      this.#manyImages = false;
      return `The server finds the pictures too many; those of the newest ${KEPT_IMAGES} tool results are sent from now on.`;
    }
    const unfit = unfitResult || refusesImages(statusCode, text);
    if (this.#images && unfit && stripImagesFromMessages(request.messages).changed) {
      this.#images = false;
      return "This model takes no pictures; they are skipped from now on.";
    }
    if (reason === "image_too_large") return this.#learnImageSize(request);
    if (statusCode === 400 && UNREADABLE_IMAGE.test(text)) return this.#learnUnreadable(request);
    if (this.#longContext && reason === "oauth_long_context_beta_forbidden") {
      this.#longContext = false;
      return "This account has no long context; it is no longer requested.";
    }
    if (this.#thinking && reason === "thinking_signature") {
      this.#thinking = false;
      return "The server no longer accepts earlier thinking; it is skipped from now on.";
    }
    if (this.#codexItems && reason === "invalid_encrypted_content") {
      this.#codexItems = false;
      return "The server no longer accepts stored reasoning; it is skipped from now on.";
    }
    if (this.#patterns && reason === "llama_cpp_grammar_pattern") {
      this.#patterns = false;
      return "The local server cannot read patterns in tool schemas; they are skipped from now on.";
    }
    if (statusCode === undefined || statusCode < 400 || statusCode >= 500) return null;
    if (this.#streaming && refusesStreaming(error)) {
      this.#streaming = false;
      return "This server cannot stream; answers arrive in one piece from now on.";
    }
    if (this.#summaries && request.target.apiMode === "codex_responses" && NO_SUMMARIES.test(text)) {
      this.#summaries = false;
      return "This account gets no summaries of the model's thinking; they are no longer requested.";
    }
    const parameter = unsupportedParameter(text);
    if (parameter === null || this.#dropped.has(parameter)) return null;
    this.#dropped.add(parameter);
    return `This model does not take the parameter ${parameter}; it is skipped from now on.`;
  }

  /** The large ones are made smaller first, then smaller still; if that does not help, all of them are left out. */
  #learnImageSize({ messages }: ModelRequest): string | null {
    for (const limit of [COMMON_LIMIT, STRICT_LIMIT]) {
      if (this.#imageLimit !== null && limit.bytes >= this.#imageLimit.bytes) continue;
      if (!stripImagesFromMessages(messages, (url) => isLargeImage(url, limit)).changed) continue;
      this.#imageLimit = limit;
      return `The server finds a picture too large; pictures over ${limit.bytes / 2 ** 20} MB or ${limit.side} pixels are made smaller from now on.`;
    }
    if (!this.#images || !stripImagesFromMessages(messages).changed) return null;
    this.#images = false;
    return "The server finds the pictures too large; they are skipped from now on. Send smaller copies in a new conversation.";
  }

  /** Which one it was is not said: all of the newest message that has some. A conversation must not fail for ever over one picture. */
  #learnUnreadable({ messages }: ModelRequest): string | null {
    const known = (url: string) => this.#unreadable.has(url);
    const urls = messages.map((message) => pictureUrls(message).filter((url) => !known(url)));
    const newest = urls.findLast((some) => some.length > 0);
    for (const url of newest ?? []) this.#unreadable.add(url);
    if (newest === undefined) return null;
    const what = newest.length === 1 ? "a picture; it is" : `${newest.length} pictures, or one of them; they are`;
    return `The server could not read ${what} left out. Send a copy in another format, as a PNG or JPEG.`;
  }

  /** The request without what was refused. The same request for a destination that refused nothing. */
  apply(request: ModelRequest): ModelRequest {
    const { overrides, ...rest } = this.#withoutRefused(request);
    const changed = { ...this.#parameters(request), ...overrides };
    return Object.keys(changed).length === 0 ? rest : { ...rest, overrides: changed };
  }

  #withoutRefused(request: ModelRequest): ModelRequest {
    return {
      ...request,
      messages: this.#messages(request.messages),
      ...(this.#patterns ? {} : { tools: request.tools.map(withoutPatterns) }),
      ...(this.#longContext ? {} : { longContext: false }),
      ...(this.#summaries ? {} : { reasoning: { enabled: true, ...request.reasoning, summary: false } }),
      ...(this.#streaming ? {} : { stream: false }),
      ...(this.#codexItems && this.#manyImages ? {} : { replay: { ...request.replay, ...this.#replay() } }),
    };
  }

  #messages(messages: readonly Message[]): readonly Message[] {
    if (this.#thinking && this.#toolImages && this.#unreadable.size === 0) return messages;
    const readable = this.#unreadable.size === 0 ? messages : messages.map((message) => this.#withReadable(message));
    const thought = this.#thinking ? readable : readable.map(withoutThinking);
    return this.#toolImages ? thought : thought.map(imagesToText);
  }

  #withReadable(message: Message): Message {
    if (message.role !== "user" && message.role !== "tool") return message;
    if (!pictureUrls(message).some((url) => this.#unreadable.has(url))) return message;
    const takes = (part: ContentPart) => part.type === "image_url" && this.#unreadable.has(part.image_url.url);
    return picturesToWords(message, takes, NOT_READ);
  }

  #replay(): ModelRequest["replay"] {
    return {
      ...(this.#codexItems ? {} : { codexItems: false }),
      ...(this.#manyImages ? {} : { keepImages: KEPT_IMAGES }),
    };
  }

  /** A field that is `undefined` here is left out of the body. The two names of the output cap stand in for each other. */
  #parameters({ maxTokens }: ModelRequest): Record<string, unknown> {
    const changes: Record<string, unknown> = {};
    for (const name of this.#dropped) changes[name] = undefined;
    // Thoughts that are not asked for cannot be sent back either.
    if (this.#dropped.has("reasoning")) changes.include = undefined;
    const refused = CAPS.filter((name) => this.#dropped.has(name));
    const other = CAPS.find((name) => !this.#dropped.has(name));
    if (refused.length === 1 && other && maxTokens !== undefined) changes[other] = maxTokens;
    return changes;
  }
}

/** The message itself when it is no tool result with a picture. */
function imagesToText(message: Message): Message {
  return message.role === "tool" ? (stripImagesFromMessages([message]).messages[0] ?? message) : message;
}

function withoutThinking(message: Message): Message {
  if (message.role !== "assistant") return message;
  if (!message.reasoning_details && !message.anthropic_content_blocks) return message;
  const { reasoning_details: _, anthropic_content_blocks: __, ...rest } = message;
  return rest;
}

function withoutPatterns(tool: ToolDefinition): ToolDefinition {
  return { ...tool, function: { ...tool.function, parameters: stripGrammar(tool.function.parameters) } };
}
