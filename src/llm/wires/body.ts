// A request body as text, and where in it stands what the next request is held against. The long part is written once and never copied.

import { asList, asRecord, asText, type Json } from "../../kit/moved-json.ts";
import { mayHoldLoneSurrogate, scrubSurrogates } from "../../kit/surrogates.ts";
import type { SentBody } from "../wire.ts";

/** Same value, same bytes as `JSON.stringify`, and no lone surrogate anywhere. */
export function writeBody(body: Json): SentBody {
  const written = write(body);
  if (!mayHoldLoneSurrogate(written.text)) return written;
  return write(scrubSurrogates(body) as Json); // an object stays one
}

/** Where the three protocols keep what was said. */
const SPOKEN = ["messages", "input"];

function write(body: Json): SentBody {
  const text = JSON.stringify(body);
  let system = textIn(body.system ?? body.instructions);
  let tools = "";
  // How much of the text stands before and behind the messages: the other fields are short, so writing them twice costs little.
  let [ahead, behind] = [1, 1];
  let found = false;
  for (const [key, value] of Object.entries(body)) {
    const name = JSON.stringify(key).length + 1;
    if (SPOKEN.includes(key) && Array.isArray(value) && !found) {
      found = true;
      const opens = ["system", "developer"].includes(asText(asRecord(value[0]).role));
      if (opens) system = textIn(asRecord(value[0]).content);
      ahead += name + 1 + (opens ? JSON.stringify(value[0]).length + Math.min(1, value.length - 1) : 0);
      behind += 1;
      continue;
    }
    const written = JSON.stringify(value);
    if (written === undefined) continue;
    if (key === "tools") tools = written;
    if (found) behind += name + written.length + 1;
    else ahead += name + written.length + 1;
  }
  const messages = found ? text.slice(ahead, text.length - behind) : "";
  return {
    text,
    system,
    tools: marked(body.tools) ? withoutMarkers(tools) : tools,
    messages: marked(body.messages) ? withoutMarkers(messages) : messages,
  };
}

/** One text, whether it is sent whole or cut in two for a marker. */
function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  return asList(content)
    .map((part) => asText(asRecord(part).text))
    .join("");
}

const MARKERS = [',"cache_control":{"type":"ephemeral"}', ',"cache_control":{"type":"ephemeral","ttl":"1h"}'];

/** Looking at the places where a marker may be is much quicker than looking through the text. */
function marked(list: unknown): boolean {
  return asList(list).some((entry) => {
    const { cache_control, content } = asRecord(entry);
    return cache_control !== undefined || (Array.isArray(content) && marked(content));
  });
}

/** A marker is always the last key of its part, so its text can be cut out of the JSON. */
function withoutMarkers(json: string): string {
  return MARKERS.reduce((text, marker) => text.replaceAll(marker, ""), json);
}
