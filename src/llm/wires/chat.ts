import { ChatAssembler } from "./chat/assemble.ts";
import { renderChatRequest } from "./chat/request.ts";
import type { Protocol } from "./drive.ts";

export const chatProtocol: Protocol = {
  render: renderChatRequest,
  begin: ({ target, messages }) => new ChatAssembler({ provider: target.provider, history: messages }),
};
