import type { Component } from "@earendil-works/pi-tui";
import type { OpenAgent } from "../../agent/opened.ts";
import type { ChatRequest } from "../chat-request.ts";
import { banner, type OpenedFacts } from "./banner.ts";
import type { Theme } from "./theme.ts";

/** The banner. It tells how the program was started and is not rewritten by later conversations: it has scrolled away by then. */
export class Header implements Component {
  readonly startedAt: number;
  readonly #request: ChatRequest;
  readonly #theme: Theme;
  #opened: OpenedFacts | null = null;

  constructor(request: ChatRequest, theme: Theme) {
    this.#request = request;
    this.#theme = theme;
    this.startedAt = request.clock.now();
  }

  async show({ target, agent, toolNames }: OpenAgent): Promise<void> {
    if (this.#opened) return;
    const { registry } = await import("../../tools/toolset/registry.ts");
    this.#opened = {
      model: target.model,
      provider: target.provider,
      contextLength: target.contextLength,
      sessionId: agent.sessionId,
      tools: Map.groupBy(toolNames, (name) => registry.get(name)?.toolset ?? "other"),
    };
  }

  render(width: number): string[] {
    const { home, cwd } = this.#request;
    const { profile } = home.paths;
    const compact = home.config().display.compact;
    return banner({ profile, cwd: home.display(cwd), opened: this.#opened, compact }, width, this.#theme);
  }

  invalidate(): void {
    // drawn anew for every frame
  }
}
