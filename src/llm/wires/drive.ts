// What the three wires share: render, send, assemble, and turn every failure into the last event of the stream.
import { parseRateLimitHeaders } from "../usage.ts";
import type { ModelError, ModelEvent, ModelRequest, RenderedRequest, SentBody } from "../wire.ts";
import { writeBody } from "./body.ts";
import { WireFailure } from "./failure.ts";
import { post, type ServerEvent, type WirePorts } from "./transport.ts";

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

export async function* drive(
  protocol: Protocol,
  request: ModelRequest,
  signal: AbortSignal,
  ports: WirePorts,
  onSend?: (sent: SentBody) => void,
): AsyncGenerator<ModelEvent> {
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
          yield* assembler.push(event);
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
