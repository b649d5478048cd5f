// What one server offers: its first list counts at once, a changed one from the next turn on.
import type { McpTool } from "./contract.ts";
import type { BuiltTools, Listing } from "./server-tools.ts";

export interface OfferingOptions {
  build(listing: Listing): BuiltTools;
  /** The tools are others than before. */
  onTools(): void;
  warn(line: string): void;
}

export class Offering {
  readonly #options: OfferingOptions;
  #tools: readonly McpTool[] = [];
  #warnings: readonly string[] = [];
  #listed: string | null = null;
  #pending: Listing | null = null;

  constructor(options: OfferingOptions) {
    this.#options = options;
  }

  get tools(): readonly McpTool[] {
    return this.#tools;
  }

  get warnings(): readonly string[] {
    return this.#warnings;
  }

  /** The server was heard of before. */
  get isKnown(): boolean {
    return this.#listed !== null;
  }

  /** What the server says now. */
  take(listing: Listing): void {
    if (this.#listed === null) this.#publish(listing);
    else if (JSON.stringify(listing) !== this.#listed) this.#pending = listing;
  }

  /** Between turns: what changed since. */
  applyChanges(): { readonly added: readonly string[]; readonly removed: readonly string[] } | null {
    const listing = this.#pending;
    this.#pending = null;
    if (!listing) return null;
    const before = new Set(this.#tools.map(({ name }) => name));
    this.#publish(listing);
    const after = new Set(this.#tools.map(({ name }) => name));
    return {
      added: [...after].filter((name) => !before.has(name)),
      removed: [...before].filter((name) => !after.has(name)),
    };
  }

  #publish(listing: Listing): void {
    this.#listed = JSON.stringify(listing);
    const { tools, warnings } = this.#options.build(listing);
    this.#tools = tools;
    this.#warnings = warnings;
    for (const warning of warnings) this.#options.warn(warning);
    this.#options.onTools();
  }
}
