// What a chat sees of a turn before its answer: the text as it is written, the tools at work, signs of life. All of it is best effort: an
// error here is logged and never reaches the turn.
import type { AgentEvent, ToolCallView } from "../../agent/events.ts";
import { type Clock, within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { feedRow } from "../feed.ts";
import { isOn, masked, splitFor } from "./answer.ts";
import type { PlatformEntry } from "./contract.ts";
import { LiveChat, type LiveOptions, StreamedText } from "./live-text.ts";

/** Something that is being written. */
interface Block {
  /** Brings the chat up to date as far as that is due. `later`: look again soon; `rest`: nothing to do until it changes; `done`: nothing ever. */
  step(): Promise<"later" | "rest" | "done">;
  /** Nothing is added to it any more. */
  close(): void;
}

const TYPING_MS = 1500;
/** How long an answer waits for what was said before it. */
const FLUSH_MS = 15_000;

export class LiveReply {
  readonly #options: LiveOptions;
  readonly #chat: LiveChat;
  readonly #streams: boolean;
  readonly #over = new AbortController();
  /** In the order of the chat; the last one may still grow. */
  readonly #blocks: Block[] = [];
  readonly #bubbles: Bubble[] = [];
  #text: StreamedText | null = null;
  #bubble: Bubble | null = null;
  #lastTool: string | null = null;
  #working: Promise<void> | null = null;
  #dirty = false;
  #sealed = false;
  #pauses = 0;
  #heartbeat: string | null = null;

  constructor(options: LiveOptions) {
    this.#options = options;
    const { entry, adapter, settings } = options;
    this.#chat = new LiveChat(options);
    const { transport } = settings.home.config().streaming;
    const canEdit = entry.canEdit && adapter.edit !== undefined;
    this.#streams = canEdit && transport !== "off" && settings.display(entry, "streaming");
    void this.#keepTyping();
    void this.#keepBeating();
  }

  show(event: AgentEvent): void {
    if (this.#sealed) return;
    switch (event.type) {
      case "text":
        if (this.#streams) this.#segment().add(event.delta);
        break;
      case "text_end":
        this.#endText(event);
        break;
      case "tool_start":
        this.#text?.end("interim");
        this.#text = null;
        this.#toolStarts(event.call);
        break;
      case "subagent":
        if (event.phase === "start") this.#line(`🔀 ${quoted(event.goal, this.#previewLength)}`);
        break;
      case "status":
        if (event.kind === "warn" || event.recovery) this.#line(`⚠️ ${event.message}`);
        break;
    }
    this.#poke();
  }

  /** A question waits: nobody is at work until it is answered, and what follows stands below it. */
  pause(): void {
    this.#pauses++;
    this.#closeBubble();
    this.#poke();
  }

  resume(): void {
    this.#pauses = Math.max(0, this.#pauses - 1);
  }

  /**
   * Ends the stream. Resolves when what was said before the answer is in the chat, with the messages that show the answer so far: the answer
   * is written into them. None, when there is no such text, or the stream was given up and its messages could be removed.
   */
  async streamed(): Promise<readonly string[]> {
    // What was emitted before is on its way through the event queue.
    await new Promise((resolve) => setImmediate(resolve));
    await this.#seal();
    const text = this.#text;
    if (!text?.isFinal) return [];
    if (!text.isGivenUp && !this.#wantsFresh(text)) return text.messages;
    const left = await Promise.all(text.messages.map(async (id) => ((await this.#chat.remove(id)) ? [] : [id])));
    return left.flat();
  }

  /** `unused`: messages of the stream that the answer had no part for. */
  async close(outcome: "answered" | "failed" | "stopped", unused: readonly string[] = []): Promise<void> {
    await this.#seal();
    this.#over.abort();
    if (outcome !== "answered") await this.#text?.stop();
    const bubbles = outcome === "answered" && isOn("cleanup_progress", this.#options.settings, this.#options.entry);
    const gone = [...unused, ...(bubbles ? this.#bubbles.flatMap(({ messages }) => messages) : [])];
    if (this.#heartbeat !== null) gone.push(this.#heartbeat);
    await Promise.all(gone.map((id) => this.#chat.remove(id)));
  }

  /** From here on nothing new is shown; resolves when everything that has an end is written out, or long enough was waited for it. */
  async #seal(): Promise<void> {
    const { clock, log } = this.#options;
    this.#sealed = true;
    this.#text?.end("cut");
    this.#closeBubble();
    this.#poke();
    await within(async () => this.#working, FLUSH_MS, clock).catch((error: unknown) => {
      log.debug(`showing a turn at work was not finished: ${messageOf(error)}`);
    });
  }

  // --- text

  #segment(): StreamedText {
    if (this.#text) return this.#text;
    this.#closeBubble();
    this.#lastTool = null;
    const { entry, settings, clock } = this.#options;
    this.#text = new StreamedText({ entry, settings, clock, chat: this.#chat });
    this.#blocks.push(this.#text);
    return this.#text;
  }

  #endText({ text, kind, streamed }: Extract<AgentEvent, { type: "text_end" }>): void {
    const { settings, entry, adapter } = this.#options;
    if (kind === "final") {
      this.#text?.end("final");
      return;
    }
    const isWanted = settings.display(entry, "interim_assistant_messages");
    const whole = streamed && this.#text !== null;
    this.#text?.end(isWanted || !adapter.remove ? "interim" : "unwanted");
    this.#text = null;
    if (whole || !isWanted || text.trim() === "") return;
    const remark = this.#segment();
    remark.add(text);
    remark.end("interim");
    this.#text = null;
  }

  #wantsFresh(text: StreamedText): boolean {
    const { entry, settings, adapter } = this.#options;
    const after = settings.home.config().streaming.fresh_final_after_seconds;
    return entry.freshFinal === true && adapter.remove !== undefined && after > 0 && text.seconds >= after;
  }

  // --- tools

  get #progress() {
    const { settings, entry } = this.#options;
    return settings.display(entry, "tool_progress");
  }

  get #previewLength(): number {
    return this.#options.settings.home.config().display.tool_preview_length || PREVIEW;
  }

  #toolStarts(call: ToolCallView): void {
    const mode = this.#progress;
    if (mode === "new" && call.name === this.#lastTool) return;
    this.#lastTool = call.name;
    this.#line(toolLine(call, mode === "verbose", this.#previewLength));
  }

  #line(text: string): void {
    if (this.#progress === "off") return;
    const { settings, entry, clock } = this.#options;
    const line = masked(text, settings.home.redact);
    if (this.#bubble?.add(line)) return;
    this.#closeBubble();
    this.#bubble = new Bubble(this.#chat, entry, clock);
    this.#bubble.add(line);
    this.#bubbles.push(this.#bubble);
    this.#blocks.push(this.#bubble);
  }

  #closeBubble(): void {
    this.#bubble?.close();
    this.#bubble = null;
  }

  // --- the one who writes: a block after the other, so that the chat keeps their order

  #poke(): void {
    this.#dirty = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = null;
      // Something was shown between its last look and its end.
      if (this.#dirty) this.#poke();
    });
  }

  async #work(): Promise<void> {
    const { clock, settings, log } = this.#options;
    for (;;) {
      this.#dirty = false;
      const [first] = this.#blocks;
      if (first === undefined || this.#over.signal.aborted) return;
      const state = await first.step().catch((error: unknown) => {
        log.warn("showing a turn at work failed", error);
        return "done" as const;
      });
      if (state === "done") this.#blocks.shift();
      else if (state === "later" || this.#blocks.length > 1) await clock.sleep(settings.timers.stream_tick * 1000);
      else if (!this.#dirty) return;
    }
  }

  // --- signs of life

  async #keepTyping(): Promise<void> {
    const { adapter, target, clock, settings, log } = this.#options;
    if (!adapter.typing) return;
    const { signal } = this.#over;
    while (!signal.aborted) {
      if (this.#pauses === 0)
        await within(async () => adapter.typing?.(target), TYPING_MS, clock, signal).catch((error: unknown) => {
          if (!signal.aborted) log.debug(`typing was not shown: ${messageOf(error)}`);
        });
      await clock.sleep(settings.timers.typing * 1000, signal).catch(() => undefined); // it is over
    }
  }

  async #keepBeating(): Promise<void> {
    const { clock, settings, entry } = this.#options;
    const every = settings.home.config().agent.gateway_notify_interval;
    const { signal } = this.#over;
    if (every <= 0 || !settings.display(entry, "long_running_notifications")) return;
    for (let beats = 1; ; beats++) {
      await clock.sleep(every * 1000, signal).catch(() => undefined); // it is over
      if (signal.aborted || this.#sealed) return;
      if (this.#pauses > 0) continue;
      const text = `⏳ Working — ${Math.max(1, Math.round((beats * every) / 60))} min`;
      const result = await (this.#heartbeat === null || !this.#chat.canEdit
        ? this.#chat.send(text)
        : this.#chat.edit(this.#heartbeat, text, { final: true }));
      if ("messageId" in result) this.#heartbeat = result.messageId ?? this.#heartbeat;
    }
  }
}

// The tools at work: one message that is edited.

const PREVIEW = 40;
const MOST_ARGUMENTS = 300;
const BUBBLE_MS = 1500;

function toolLine({ name, args, preview }: ToolCallView, verbose: boolean, length: number): string {
  const { emoji } = feedRow({ name, args });
  if (verbose) return `${emoji} ${name} ${quoted(JSON.stringify(args), MOST_ARGUMENTS)}`;
  return preview.trim() === "" ? `${emoji} ${name}` : `${emoji} ${name}: ${quoted(preview, length)}`;
}

/** One line of literal text. */
function quoted(text: string, length: number): string {
  const points = [...text.replace(/[\s`]+/g, " ").trim()];
  return `\`${points.length > length ? `${points.slice(0, length - 1).join("")}…` : points.join("")}\``;
}

class Bubble implements Block {
  readonly messages: string[] = [];
  readonly #chat: LiveChat;
  readonly #clock: Clock;
  readonly #fits: (text: string) => boolean;
  readonly #lines: { readonly text: string; times: number }[] = [];
  #shown = "";
  #next = 0;
  #closed = false;
  #strikes = 0;

  constructor(chat: LiveChat, entry: PlatformEntry, clock: Clock) {
    this.#chat = chat;
    this.#clock = clock;
    const { max, length, format = (text: string) => text } = splitFor(entry);
    this.#fits = (text) => length(format(text)) <= max;
  }

  /** False: there is no room for it here. */
  add(text: string): boolean {
    const last = this.#lines.at(-1);
    if (last?.text === text) {
      last.times++;
      return true;
    }
    // Room for a count behind each line.
    if (this.#lines.length > 0 && !this.#fits(`${this.#text}\n${text} (×1000)`)) return false;
    this.#lines.push({ text, times: 1 });
    return true;
  }

  close(): void {
    this.#closed = true;
  }

  get #text(): string {
    return this.#lines.map(({ text, times }) => (times > 1 ? `${text} (×${times})` : text)).join("\n");
  }

  async step(): Promise<"later" | "rest" | "done"> {
    const text = this.#text;
    if (text === this.#shown || this.#strikes > 2) return this.#closed ? "done" : "rest";
    const now = this.#clock.now();
    if (now < this.#next && (!this.#closed || this.#strikes > 0)) return "later";
    const [id] = this.messages.slice(-1);
    const canEdit = id !== undefined && this.#chat.canEdit;
    const news = canEdit || this.#shown === "" ? text : text.slice(commonLines(this.#shown, text));
    const result = canEdit ? await this.#chat.edit(id, text, { final: true }) : await this.#chat.send(news);
    this.#next = this.#clock.now() + BUBBLE_MS;
    if ("failed" in result) {
      this.#strikes++;
      this.#next += 1000 * Math.min(10, result.retryAfter ?? 0);
      return "later";
    }
    if (!canEdit && result.messageId !== null) this.messages.push(result.messageId);
    this.#shown = text;
    return "later";
  }
}

/** Where the first line begins that differs. */
function commonLines(before: string, after: string): number {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at++;
  return at === before.length ? at + 1 : after.lastIndexOf("\n", at) + 1;
}
