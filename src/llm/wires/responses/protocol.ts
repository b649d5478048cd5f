import type { Protocol } from "../drive.ts";
import { issuerOf, renderResponsesRequest } from "./request.ts";
import { ResponsesAssembler } from "./stream.ts";

export const responsesProtocol: Protocol = {
  render: renderResponsesRequest,
  begin: ({ target, messages }) => new ResponsesAssembler({ issuer: issuerOf(target), history: messages }),
};
