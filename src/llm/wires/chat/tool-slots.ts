// Tool calls of a chat stream, collected from their pieces.

import { asRecord, asText, type Json } from "../../../kit/moved-json.ts";
import type { FreshCallIds } from "../../call-ids.ts";
import { type FinishedCalls, finishCalls } from "../incoming.ts";

interface Slot {
  id: string;
  name: string;
  args: string;
  extra: unknown;
}

export class ToolSlots {
  readonly #slots: Slot[] = [];
  readonly #byIndex = new Map<number, Slot>();

  get count(): number {
    return this.#slots.length;
  }

  get names(): readonly string[] {
    return this.#slots.map((slot) => slot.name).filter((name) => name !== "");
  }

  /** Takes one piece; answers with the name when this piece brought it. */
  add(piece: Json): string | null {
    const fn = asRecord(piece.function);
    const slot = this.#slotFor(piece.index, asText(piece.id));
    const name = asText(fn.name);
    const isNew = name !== "" && slot.name === "";
    if (name !== "") slot.name = name;
    slot.args +=
      typeof fn.arguments === "object" && fn.arguments !== null ? JSON.stringify(fn.arguments) : asText(fn.arguments);
    slot.extra = piece.extra_content ?? fn.extra_content ?? slot.extra;
    return isNew ? name : null;
  }

  finish(ids: FreshCallIds, options: { truncated: boolean }): FinishedCalls {
    const raw = this.#slots.map(({ id, name, args, extra }) => ({
      id,
      name,
      arguments: args,
      ...(extra !== undefined && { extra: { extra_content: extra } }),
    }));
    return finishCalls(raw, ids, options);
  }

  #slotFor(index: unknown, id: string): Slot {
    const known = typeof index === "number" ? this.#byIndex.get(index) : this.#slots.at(-1);
    // Ollama numbers every call 0: another id on a used index is another call.
    if (known && (id === "" || known.id === "" || known.id === id)) {
      known.id ||= id;
      return known;
    }
    const slot: Slot = { id, name: "", args: "", extra: undefined };
    this.#slots.push(slot);
    if (typeof index === "number") this.#byIndex.set(index, slot);
    return slot;
  }
}
