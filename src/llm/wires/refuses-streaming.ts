import { asRecord, asText } from "../../kit/moved-json.ts";
import type { ModelError } from "../wire.ts";

/** The server said that it cannot stream: the same request may be sent again with `stream: false`, and so may all that follow. */
export function refusesStreaming({ status, message, body }: ModelError): boolean {
  if (status === undefined || status < 400 || status >= 500) return false;
  const said = `${message} ${asText(body)} ${asText(asRecord(asRecord(body).error).message)}`.toLowerCase();
  return (
    /\bstream/.test(said) && !said.includes("stream_options") && /not supported|unsupported|not support/.test(said)
  );
}
