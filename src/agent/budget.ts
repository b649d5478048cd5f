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
