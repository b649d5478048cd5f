// Lines that every compression keeps word for word. They live with the session and go with it into its continuations.
import { UserError } from "../../kit/errors.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { Transcript } from "../transcript.ts";

const KEY = "pins";
const MOST_LINES = 100;
const MOST_CHARS = 8000;

export class Pins {
  readonly #transcript: Transcript;
  readonly #store: SessionStore | null;
  /** Without a store they live as long as the conversation. */
  #kept: readonly string[] = [];

  constructor(transcript: Transcript, store: SessionStore | null) {
    this.#transcript = transcript;
    this.#store = store;
  }

  async list(): Promise<readonly string[]> {
    if (!this.#store) return this.#kept;
    const value = await this.#store.getValue(this.#transcript.sessionId, KEY);
    return Array.isArray(value) ? value.filter((line) => typeof line === "string") : [];
  }

  /** Resolves to all pinned lines; throws `UserError` when there is no room. */
  async add(text: string): Promise<readonly string[]> {
    const lines = text.split("\n").flatMap((line) => line.trim() || []);
    const pins = [...(await this.list()), ...lines];
    const chars = pins.reduce((sum, line) => sum + line.length, 0);
    if (pins.length > MOST_LINES || chars > MOST_CHARS) {
      throw new UserError(
        `That is too much to pin: at most ${MOST_LINES} lines and ${MOST_CHARS} characters together. /pin remove N makes room.`,
      );
    }
    return this.#save(pins);
  }

  /** By its number in the list, from 1. Resolves to the removed line; null when there is none of that number. */
  async remove(number: number): Promise<string | null> {
    const pins = await this.list();
    const line = pins[number - 1];
    if (line === undefined) return null;
    await this.#save(pins.toSpliced(number - 1, 1));
    return line;
  }

  async #save(pins: readonly string[]): Promise<readonly string[]> {
    this.#kept = pins;
    if (!this.#store) return pins;
    await this.#transcript.open();
    await this.#store.setValue(this.#transcript.sessionId, KEY, pins);
    return pins;
  }
}
