import type { Protocol } from "../drive.ts";
import { ChatAssembler } from "./assemble.ts";
import { renderChatRequest } from "./request.ts";

export const chatProtocol: Protocol = {
  render: renderChatRequest,
  begin: ({ target, messages }) => new ChatAssembler({ provider: target.provider, history: messages }),
};
