import type { ApiMode, ModelRequest, RenderedRequest, Wire } from "../wire.ts";
import { drive, type Protocol } from "./drive.ts";
import type { WirePorts } from "./transport.ts";

/** A wire that also shows what it would send. */
export interface RenderingWire extends Wire {
  render(request: ModelRequest): Promise<RenderedRequest>;
}

const PROTOCOLS: Readonly<Partial<Record<ApiMode, () => Promise<Protocol>>>> = {
  chat_completions: async () => (await import("./chat/protocol.ts")).chatProtocol,
};

async function load(mode: ApiMode): Promise<Protocol> {
  const protocol = await PROTOCOLS[mode]?.();
  if (!protocol) throw new Error(`The ${mode} wire is not part of this build.`);
  return protocol;
}

/** The wire of an API mode. Its module is loaded with the first request. */
export function createWire(mode: ApiMode, ports: WirePorts): RenderingWire {
  return {
    async *stream(request, signal) {
      yield* drive(await load(mode), request, signal, ports);
    },
    async render(request) {
      return (await load(mode)).render(request);
    },
  };
}
