// What the three wires share: render, send, assemble, and turn every failure into the last event of the stream.

import { mayHoldLoneSurrogate, scrubSurrogates } from "../../kit/code-points.ts";
import { asList, asRecord, asText, type Json } from "../../kit/json.ts";
import { parseRateLimitHeaders } from "../usage.ts";
import type { ApiMode, ModelError, ModelEvent, ModelRequest, RenderedRequest, SentBody, Wire } from "../wire.ts";
import { post, type ServerEvent, WireFailure, type WirePorts } from "./transport.ts";

/**
 * One protocol, without any network.
 *
 * - `render` is pure: the same request gives the same bytes.
 * - `begin` makes the assembler of one answer.
 */
export interface Protocol {
  render(request: ModelRequest): RenderedRequest;
  begin(request: ModelRequest): Assembler;
}

/** Turns the events of one answer into ours. Throws WireFailure for an error the server sent as an event. */
export interface Assembler {
  push(event: ServerEvent): readonly ModelEvent[];
  /** The whole answer of a server that did not stream. */
  whole(body: unknown): readonly ModelEvent[];
  /** True once the protocol's own last event was seen: nothing more is read. */
  readonly finished: boolean;
  /** True once the model has ended its answer, though more (usage, the end marker) may follow: nothing of it can be lost any more. */
  readonly answered: boolean;
  /** The stream is over: calls, usage and `done`. Throws WireFailure when the answer was cut off. */
  end(): readonly ModelEvent[];
  /** For an answer that broke off: usage if it came, and what had been received. */
  usageSoFar(): readonly ModelEvent[];
  partial(): ModelError["partial"] | undefined;
}

async function* drive(
  mode: ApiMode,
  request: ModelRequest,
  signal: AbortSignal,
  ports: WirePorts,
  onSend?: (sent: SentBody) => void,
): AsyncGenerator<ModelEvent> {
  const protocol = await PROTOCOLS[mode]();
  const rendered = protocol.render(request);
  const sent = writeBody(rendered.body);
  const assembler = protocol.begin(request);
  const stream = request.stream !== false;
  try {
    onSend?.(sent);
    const answer = await post({
      url: rendered.url,
      headers: rendered.headers,
      body: sent.text,
      ports,
      signal,
      stream,
      limits: request.limits ?? {},
      secret: request.target.apiKey,
    });
    let complete = false;
    try {
      if (answer.streamed) {
        for await (const event of answer.events()) {
          // Not `yield*`, which goes three times around the queue of promises for each word.
          for (const one of assembler.push(event)) yield one;
          if (assembler.finished) break;
        }
      } else yield* assembler.whole(await answer.whole());
      complete = true;
    } catch (thrown) {
      // Some servers never close the stream, or break it off behind the last word. The answer was paid for, and it is there.
      if (!(thrown instanceof WireFailure) || signal.aborted || !assembler.answered) throw thrown;
    } finally {
      answer.close({ complete });
    }
    const rateLimits = parseRateLimitHeaders(answer.headers, request.target.provider);
    for (const event of assembler.end()) yield event.type === "done" && rateLimits ? { ...event, rateLimits } : event;
  } catch (thrown) {
    if (!(thrown instanceof WireFailure)) throw thrown;
    yield* assembler.usageSoFar();
    const partial = assembler.partial();
    yield { type: "failed", error: partial ? { ...thrown.error, partial } : thrown.error };
  }
}

// A request body as text, and where in it stands what the next request is held against. The long part is written once and never copied.

/** Same value, same bytes as `JSON.stringify`, and no lone surrogate anywhere. */
export function writeBody(body: Json): SentBody {
  const written = write(body);
  if (!mayHoldLoneSurrogate(written.text)) return written;
  return write(scrubSurrogates(body) as Json); // an object stays one
}

/** Where the three protocols keep what was said. */
const SPOKEN = ["messages", "input"];

/** A conversation sends the same messages again with each request: what is rendered as the same object is written once. */
const texts = new WeakMap<object, string>();

function textOf(message: unknown): string {
  if (typeof message !== "object" || message === null) return JSON.stringify(message) ?? "null";
  const text = texts.get(message) ?? JSON.stringify(message);
  texts.set(message, text);
  return text;
}

function write(body: Json): SentBody {
  const pieces = ["{"];
  let system = textIn(body.system ?? body.instructions);
  let tools = "";
  // How much of the text stands before and behind the messages: the other fields are short, so writing them twice costs little.
  let [ahead, behind] = [1, 1];
  let found = false;
  for (const [key, value] of Object.entries(body)) {
    const name = JSON.stringify(key).length + 1;
    if (SPOKEN.includes(key) && Array.isArray(value) && !found) {
      found = true;
      const opens = ["system", "developer"].includes(asText(asRecord(value[0]).role));
      if (opens) system = textIn(asRecord(value[0]).content);
      ahead += name + 1 + (opens ? textOf(value[0]).length + Math.min(1, value.length - 1) : 0);
      behind += 1;
      // Joined once, with everything else: the messages are nearly all of the text.
      pieces.push(`${pieces.length > 1 ? "," : ""}${JSON.stringify(key)}:[`);
      for (const [index, message] of value.entries()) pieces.push(index > 0 ? "," : "", textOf(message));
      pieces.push("]");
      continue;
    }
    const written = key === "tools" && Array.isArray(value) ? textOf(value) : JSON.stringify(value);
    if (written === undefined) continue;
    pieces.push(`${pieces.length > 1 ? "," : ""}${JSON.stringify(key)}:${written}`);
    if (key === "tools") tools = written;
    if (found) behind += name + written.length + 1;
    else ahead += name + written.length + 1;
  }
  pieces.push("}");
  const text = pieces.join("");
  const messages = found ? text.slice(ahead, text.length - behind) : "";
  return {
    text,
    system,
    tools: marked(body.tools) ? withoutMarkers(tools) : tools,
    messages: marked(body.messages) ? withoutMarkers(messages) : messages,
  };
}

/** One text, whether it is sent whole or cut in two for a marker. */
function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  return asList(content)
    .map((part) => asText(asRecord(part).text))
    .join("");
}

const MARKERS = [',"cache_control":{"type":"ephemeral"}', ',"cache_control":{"type":"ephemeral","ttl":"1h"}'];

/** Looking at the places where a marker may be is much quicker than looking through the text. */
function marked(list: unknown): boolean {
  return asList(list).some((entry) => {
    const { cache_control, content } = asRecord(entry);
    return cache_control !== undefined || (Array.isArray(content) && marked(content));
  });
}

/** A marker is always the last key of its part, so its text can be cut out of the JSON. */
function withoutMarkers(json: string): string {
  return MARKERS.reduce((text, marker) => text.replaceAll(marker, ""), json);
}

/** A wire that also shows what it would send. */
interface RenderingWire extends Wire {
  render(request: ModelRequest): Promise<RenderedRequest>;
}

const PROTOCOLS: Readonly<Record<ApiMode, () => Promise<Protocol>>> = {
  chat_completions: async () => (await import("./chat.ts")).chatProtocol,
  anthropic_messages: async () => (await import("./anthropic/protocol.ts")).anthropicProtocol,
  codex_responses: async () => (await import("./responses/protocol.ts")).responsesProtocol,
};

/** The wire of an API mode. Its module is loaded with the first request. */
export function createWire(mode: ApiMode, ports: WirePorts): RenderingWire {
  return {
    stream: (request, signal, onSend) => drive(mode, request, signal, ports, onSend),
    async render(request) {
      return (await PROTOCOLS[mode]()).render(request);
    },
  };
}
