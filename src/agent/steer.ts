// Words of the user that reach a running turn: they ride on the end of a tool result, between markers only the runtime can write.
import type { ToolMessage } from "../llm/messages.ts";
import { STEER_CLOSE, STEER_OPEN } from "../prompt/blocks.ts";
import type { Control } from "../sessions/work.ts";
import type { Entry } from "./transcript.ts";

/** The block as it is appended to a tool result. */
export function formatSteer(text: string): string {
  return `\n\n${STEER_OPEN}\n${text}\n${STEER_CLOSE}`;
}

function withSteer(message: ToolMessage, text: string): ToolMessage {
  const block = formatSteer(text);
  if (typeof message.content === "string") return { ...message, content: message.content + block };
  return { ...message, content: [...message.content, { type: "text", text: block.trimStart() }] };
}

/** The last result of a batch carries the block; what its row says carries it too. */
export function steerLast(entries: readonly Entry[], text: string): readonly Entry[] {
  return entries.map((entry, index) => {
    if (index !== entries.length - 1 || entry.message.role !== "tool") return entry;
    const stored = entry.stored?.role === "tool" ? { stored: withSteer(entry.stored, text) } : {};
    return { message: withSteer(entry.message, text), ...stored };
  });
}

/** What the user said meanwhile, waiting for a tool result to ride on. */
export class SteerBox {
  #waiting: { readonly text: string; readonly row: number | undefined }[] = [];
  #read: number[] = [];

  /** False for blank text. `row`: it also waits as a message of its own, for when no result carries it. */
  put(text: string, row?: number): boolean {
    const said = text.trim();
    if (said === "") return false;
    this.#waiting.push({ text: said, row });
    return true;
  }

  /** Everything that waits, as one text; null when nothing does. */
  take(): string | null {
    if (this.#waiting.length === 0) return null;
    const taken = this.#waiting.splice(0);
    this.#read.push(...taken.flatMap(({ row }) => row ?? []));
    return taken.map(({ text }) => text).join("\n");
  }

  /** The messages that the turn has read. Those it has not are left to a turn of their own. */
  endTurn(): readonly number[] {
    this.#waiting = this.#waiting.filter(({ row }) => row === undefined);
    return this.#read.splice(0);
  }

  get empty(): boolean {
    return this.#waiting.length === 0;
  }
}

/** How many model calls a turn may make. */
export class IterationBudget {
  readonly max: number;
  #used = 0;
  #grace: "none" | "granted" | "spent" = "none";

  constructor(max: number) {
    this.max = max;
  }

  /** Takes one call; false when none is left. */
  consume(): boolean {
    if (this.#used < this.max) {
      this.#used++;
      return true;
    }
    if (this.#grace !== "granted") return false;
    this.#grace = "spent";
    return true;
  }

  /** Gives one back; never above the maximum. */
  refund(): void {
    if (this.#used > 0) this.#used--;
  }

  /** One call beyond the maximum; a turn gets it once. */
  grantGrace(): boolean {
    if (this.#grace !== "none") return false;
    this.#grace = "granted";
    return true;
  }

  get used(): number {
    return this.#used;
  }

  get remaining(): number {
    return this.max - this.#used;
  }
}

/** Does what another process asks of the turn that runs here. */
export function obey(
  { kind, says }: Control,
  agent: { interrupt(reason: string): void; steer(text: string, row?: number): boolean },
): void {
  if (kind === "interrupt") agent.interrupt("Stop requested");
  else agent.steer(says.text ?? "", says.row);
}
