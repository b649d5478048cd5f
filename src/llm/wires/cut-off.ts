import { WireFailure } from "./failure.ts";

/** The answer ended without its last word. What had come is reported beside the failure. */
export function cutOff(sawAnything: boolean): WireFailure {
  return sawAnything
    ? new WireFailure({ message: "The connection was lost before the answer was complete.", code: "stream_cut" })
    : new WireFailure({ message: "The server ended the stream without an answer.", code: "empty_stream" });
}
