import type { Protocol } from "../drive.ts";
import { renderAnthropicRequest } from "./request.ts";
import { AnthropicAssembler } from "./stream.ts";

export const anthropicProtocol: Protocol = {
  render: renderAnthropicRequest,
  begin: ({ messages }) => new AnthropicAssembler(messages),
};
