// A request body as text, written piece by piece: the pieces are what the prefix of the next request is held against, and nothing is
// serialised twice for it.
import { mayHoldLoneSurrogate, scrubSurrogates } from "../surrogates.ts";
import type { SentBody } from "../wire.ts";
import { asList, asRecord, asText, type Json } from "./json.ts";

/** Same value, same bytes as `JSON.stringify`, and no lone surrogate anywhere. */
export function writeBody(body: Json): SentBody {
  const written = write(body);
  if (!mayHoldLoneSurrogate(written.text)) return written;
  return write(scrubSurrogates(body) as Json); // an object stays one
}

/** Where the three protocols keep what was said. */
const SPOKEN = ["messages", "input"];

function write(body: Json): SentBody {
  const fields: string[] = [];
  let spoken: readonly unknown[] = [];
  let pieces: readonly string[] = [];
  let tools = "";
  for (const [key, value] of Object.entries(body)) {
    let text: string | undefined;
    if (SPOKEN.includes(key) && Array.isArray(value)) {
      spoken = value;
      pieces = value.map((entry) => JSON.stringify(entry) ?? "null");
      text = `[${pieces.join(",")}]`;
    } else text = JSON.stringify(value);
    if (text === undefined) continue;
    if (key === "tools") tools = withoutMarkers(text);
    fields.push(`${JSON.stringify(key)}:${text}`);
  }
  const [first] = spoken;
  const opens = ["system", "developer"].includes(asText(asRecord(first).role));
  return {
    text: `{${fields.join(",")}}`,
    system: textIn(opens ? asRecord(first).content : (body.system ?? body.instructions)),
    tools,
    messages: (opens ? pieces.slice(1) : pieces).map(withoutMarkers),
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

/** A marker is always the last key of its part, so its text can be cut out of the JSON. */
function withoutMarkers(json: string): string {
  if (!json.includes(',"cache_control":')) return json;
  return MARKERS.reduce((text, marker) => text.replaceAll(marker, ""), json);
}
