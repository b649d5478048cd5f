import { countCodePoints, sliceCodePoints } from "../../kit/code-points.ts";

const LONGEST_LEAF = 200;
const MARK = "...[truncated]";

/** Long texts inside the arguments of a call are cut; what comes out is JSON of the same shape. What is no JSON stays as it is. */
export function truncateToolCallArgsJson(args: string): string {
  const value = parse(args);
  if (value === undefined) return args;
  const cut = shorten(value);
  return cut === value ? args : JSON.stringify(cut);
}

/** The same value when nothing in it was too long. */
function shorten(value: unknown): unknown {
  if (typeof value === "string") {
    return countCodePoints(value) > LONGEST_LEAF ? sliceCodePoints(value, 0, LONGEST_LEAF) + MARK : value;
  }
  if (Array.isArray(value)) {
    const items = value.map(shorten);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, shorten(inner), inner] as const);
  if (entries.every(([, after, before]) => after === before)) return value;
  return Object.fromEntries(entries.map(([key, after]) => [key, after]));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // not ours to mend here
  }
}
