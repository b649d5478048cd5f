// Models write almost-JSON. What can be repaired without guessing is repaired; the rest was cut off, or is complete and no JSON.
// Hand-written: jsonrepair closes whatever is open, which makes a call that was cut off look complete.

import { messageOf } from "../kit/errors.ts";

interface RepairOptions {
  /** The answer ended at its length limit: missing brackets are missing content, so none are added. */
  readonly truncated?: boolean;
}

interface RepairedArguments {
  /** Valid, compact JSON text. */
  readonly json: string;
  /** `cut`: the text ends in the middle. `invalid`: it is complete, but no JSON. Both have lost their content. */
  readonly outcome: "valid" | "repaired" | "cut" | "invalid";
  /** Why they are invalid. */
  readonly problem?: string;
}

const MAX_SURPLUS_CLOSERS = 50;
/** Deeper arguments serve no tool, and whatever walks them later (also from the store, in every request) would run out of stack. */
const MAX_LEVELS = 500;

/** Valid JSON text for whatever a model sent as arguments; `{}` when nothing can be saved. */
export function repairToolCallArguments(raw: unknown, options: RepairOptions = {}): string {
  return repairArguments(raw, options).json;
}

/** Like `repairToolCallArguments`, and says whether anything was repaired or lost. */
export function repairArguments(raw: unknown, options: RepairOptions = {}): RepairedArguments {
  if (raw === null || raw === undefined) return { json: "{}", outcome: "valid" };
  if (typeof raw === "object") return { json: JSON.stringify(raw), outcome: "valid" };
  const text = String(raw).trim();
  if (text === "" || text === "None") return { json: "{}", outcome: "valid" };
  if (isTooDeep(text)) return lost(text, options, `nested deeper than ${MAX_LEVELS} levels`);
  const strict = compact(text);
  if (strict.json !== null) return { json: strict.json, outcome: "valid" };
  const mended = mend(text, options.truncated === true);
  const json = mended === null ? null : compact(mended).json;
  return json === null ? lost(text, options, strict.problem) : { json, outcome: "repaired" };
}

/** A text that ends in a closing bracket says itself that it is complete, unless the whole answer was cut. */
function lost(text: string, { truncated = false }: RepairOptions, problem: string): RepairedArguments {
  if (truncated || !/[}\]]$/.test(text)) return { json: "{}", outcome: "cut" };
  return { json: "{}", outcome: "invalid", problem };
}

function isTooDeep(text: string): boolean {
  if (text.length <= 2 * MAX_LEVELS) return false;
  let level = 0;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const char = text[index];
    if (char === "\\") index++;
    else if (char === '"') inString = !inString;
    else if (inString) continue;
    else if (char === "[" || char === "{") level++;
    else if (char === "]" || char === "}") level--;
    if (level > MAX_LEVELS) return true;
  }
  return false;
}

function compact(text: string): { readonly json: string } | { readonly json: null; readonly problem: string } {
  try {
    return { json: JSON.stringify(JSON.parse(text)) };
  } catch (error) {
    return { json: null, problem: messageOf(error) };
  }
}

/** One walk over the text: control characters escaped, trailing commas and surplus closers gone, open brackets closed in nesting order. */
function mend(text: string, truncated: boolean): string | null {
  const open: string[] = [];
  let out = "";
  let inString = false;
  // A comma is written only when something follows that is no closer.
  let comma = "";
  let surplus = 0;
  for (let index = 0; index < text.length; index++) {
    const char = text.charAt(index);
    if (inString) {
      if (char === '"') inString = false;
      out += char < " " ? escapeControl(char) : char;
      if (char === "\\") out += text.charAt(++index);
      continue;
    }
    if (char.trim() === "") continue;
    if (char !== "}" && char !== "]") {
      if (surplus > 0) return null;
      out += comma;
      comma = char === "," ? "," : "";
      if (char !== ",") out += char;
      if (char === '"') inString = true;
      if (char === "{") open.push("}");
      if (char === "[") open.push("]");
      continue;
    }
    comma = "";
    const level = open.lastIndexOf(char);
    if (level < 0) {
      // A closer nobody opened is surplus only at the very end; elsewhere the text is beyond repair.
      if (open.length > 0 || ++surplus > MAX_SURPLUS_CLOSERS) return null;
      continue;
    }
    if (level < open.length - 1 && truncated) return null;
    while (open.length > level) out += open.pop();
  }
  if (inString || (open.length > 0 && truncated)) return null;
  return out + open.reverse().join("");
}

function escapeControl(char: string): string {
  return JSON.stringify(char).slice(1, -1);
}
