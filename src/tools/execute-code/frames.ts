// What a script's keeper says, line by line. Lines without the mark are not its own: a warning of the shell, an interpreter that is missing.
import { z } from "zod";

const text = z.string();
const frame = z.discriminatedUnion("t", [
  z.object({ t: z.literal("start"), language: text }),
  z.object({ t: z.literal("out"), text }),
  z.object({ t: z.literal("err"), text }),
  z.object({ t: z.literal("tail"), of: z.enum(["out", "err"]), text, cut: z.number() }),
  // A script may send anything here; whatever it is, it waits for an answer.
  z.object({
    t: z.literal("call"),
    id: z.number(),
    tool: text.catch(""),
    args: z.record(z.string(), z.unknown()).catch({}),
  }),
  z.object({
    t: z.literal("judge"),
    id: z.number(),
    line: text.optional().catch(undefined),
    write: text.optional().catch(undefined),
  }),
  z.object({ t: z.literal("end"), code: z.number() }),
]);
export type Frame = z.infer<typeof frame>;

const KEPT_CHARS = 2000;
const LONGEST_LINE = 64_000_000;

export class FrameReader {
  readonly #mark: string;
  readonly #take: (frame: Frame) => void;
  #line = "";
  /** The end of what came without the mark. */
  rest = "";

  constructor(mark: string, take: (frame: Frame) => void) {
    this.#mark = mark;
    this.#take = take;
  }

  push(text: string): void {
    const lines = (this.#line + text).split("\n");
    this.#line = (lines.pop() ?? "").slice(0, LONGEST_LINE);
    for (const line of lines) this.#read(line);
  }

  #read(line: string): void {
    const at = line.indexOf(this.#mark);
    if (at < 0) {
      this.rest = `${this.rest}${line}\n`.slice(-KEPT_CHARS);
      return;
    }
    const parsed = frame.safeParse(parse(line.slice(at + this.#mark.length)));
    if (parsed.success) this.#take(parsed.data);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // not a frame after all
  }
}
