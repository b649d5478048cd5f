import type { AuxPorts } from "../../llm/auxiliary/client.ts";
import type { AuxiliaryClient } from "../../llm/auxiliary/contract.ts";

/** The client for side tasks, loaded by the first of them: many conversations have none. */
export function lazyAuxiliary(ports: AuxPorts): AuxiliaryClient {
  let opened: Promise<AuxiliaryClient> | null = null;
  const client = () => {
    opened ??= import("../../llm/auxiliary/client.ts").then(({ createAuxiliary }) => createAuxiliary(ports));
    return opened;
  };
  return {
    callAux: async (call) => (await client()).callAux(call),
    resolveAux: async (task, wish) => (await client()).resolveAux(task, wish),
  };
}
