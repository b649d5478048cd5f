import type { ApiMode, ModelRequest, RenderedRequest, Wire } from "../wire.ts";
import { drive, type Protocol } from "./drive.ts";
import type { WirePorts } from "./transport.ts";

/** A wire that also shows what it would send. */
export interface RenderingWire extends Wire {
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
    async *stream(request, signal, onSend) {
      yield* drive(await PROTOCOLS[mode](), request, signal, ports, onSend);
    },
    async render(request) {
      return (await PROTOCOLS[mode]()).render(request);
    },
  };
}
