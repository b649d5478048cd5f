import type { Component } from "@earendil-works/pi-tui";
import type { OpenAgent } from "../../agent/opened.ts";
import type { Config } from "../../home/config/schema.ts";
import { said, t } from "../../home/language/words.ts";
import type { OpenHome } from "../../home/open.ts";
import { hermesCommand, PRODUCT, VERSION } from "../../home/paths.ts";
import { contextSize, plural } from "../../kit/formats.ts";
import { type HistoryMessage, textOf } from "../../llm/messages.ts";
import { withoutPictureWords } from "../../llm/pictures/fit.ts";
import { placeOf } from "../../llm/wire.ts";
import { cellWidth, cut, padCells, printable, type Theme } from "../terminal-text.ts";
import type { ChatRequest } from "../typed-input.ts";
import type { Transcript } from "./transcript.ts";

/** What the user should know about a conversation that was just opened, and what was said in it before. */
export function introduce(conversation: OpenAgent, transcript: Transcript, display: Config["display"]): void {
  if (conversation.demo && !conversation.resumed) transcript.info(WHAT_IT_IS);
  for (const note of conversation.notes) transcript.dim(note);
  if (conversation.yolo) transcript.warn("YOLO: dangerous commands run without asking. /yolo turns it off.");
  showRecap(conversation, transcript, display);
}

/** The last lines of the first screen. */
export function greet({ resumed }: OpenAgent, transcript: Transcript, welcome: string, random: () => number): void {
  if (welcome !== "") transcript.dim(welcome);
  if (!resumed) transcript.dim(t("Tip: {tip}", { tip: said(pickTip(random)) }));
}

/** A newer version, if one is known of. Nobody waits for this. */
export async function tellUpdate(request: ChatRequest, transcript: Transcript): Promise<void> {
  const { updateAtStart } = await import("../update-check.ts");
  const available = await updateAtStart(request);
  if (available !== null)
    transcript.dim(
      t("A newer version is available: {version}. Get it with: {command}", {
        version: said(available),
        command: hermesCommand("update"),
      }),
    );
}

function showRecap(conversation: OpenAgent, transcript: Transcript, display: Config["display"]): void {
  const { resumed, history } = conversation;
  if (!resumed) return;
  const origin = resumed.continuationOf ? ` ${t("(continuation of {id})", { id: resumed.continuationOf })}` : "";
  transcript.dim(`resumed ${resumed.title ?? resumed.id}${origin}, ${plural(history.length, "message")}`);
  if (display.resume_display === "minimal") return;
  const { entries, olderExchanges } = recap(history, {
    exchanges: display.resume_exchanges,
    userChars: display.resume_max_user_chars,
    assistantChars: display.resume_max_assistant_chars,
    assistantLines: display.resume_max_assistant_lines,
    skipToolOnly: display.resume_skip_tool_only,
  });
  if (olderExchanges > 0) transcript.dim(`... ${plural(olderExchanges, "earlier exchange")}`);
  for (const entry of entries) {
    if (entry.who === "user") transcript.user(entry.text);
    else if (entry.who === "tools") transcript.feed(entry.text);
    else transcript.answer(entry.text);
  }
}

/** The banner. It shows how the program was started and is not rewritten by later conversations: it has scrolled away by then. */
export class Header implements Component {
  readonly startedAt: number;
  readonly #request: ChatRequest;
  readonly #theme: Theme;
  readonly #rows: () => number;
  #opened: OpenedFacts | null = null;
  #skills: number | null = null;

  constructor(request: ChatRequest, theme: Theme, rows: () => number) {
    this.#request = request;
    this.#theme = theme;
    this.#rows = rows;
    this.startedAt = request.clock.now();
  }

  /** `changed`: something came to be known later. */
  async show(conversation: OpenAgent, changed: () => void): Promise<void> {
    if (this.#opened) return;
    const { target, agent, toolNames, definitions, placeWords } = conversation;
    const { home, cwd, clock, platform } = this.#request;
    const { registry } = await import("../../tools/toolset/registry.ts");
    const sent = new Set(definitions.map((tool) => tool.function.name));
    const { direct = [], later = [] } = Object.groupBy(toolNames, (name) => (sent.has(name) ? "direct" : "later"));
    const openedAt = clock.now();
    const servers = await this.#servers();
    let latest: readonly BannerServer[] = [];
    this.#opened = {
      model: printable(target.model),
      provider: printable(placeOf(target)),
      contextLength: target.contextLength,
      sessionId: agent.sessionId,
      runs: home.folders.isTrusted(cwd) ? placeWords : `${placeWords}, look only`,
      tools: Map.groupBy(direct, (name) => registry.get(name)?.toolset ?? "other"),
      onDemand: later.length,
      get servers() {
        // Servers connect while the screen is there already; later changes belong to the transcript.
        if (latest.length === 0 || clock.now() - openedAt < SERVERS_MS)
          latest = servers.map((name) => ({ name, tools: registry.toolsOf(`mcp-${name}`).length }));
        return latest;
      },
    };
    void conversation.skills?.namesAtStart(platform).then(({ size }) => {
      this.#skills = size;
      changed();
    });
  }

  async #servers(): Promise<readonly string[]> {
    if (Object.keys(this.#request.home.config().mcp_servers).length === 0) return [];
    const { wantedServers } = await import("../../mcp/settings.ts");
    return wantedServers(this.#request);
  }

  render(width: number): string[] {
    const { home, cwd } = this.#request;
    const { profile } = home.paths;
    const compact = home.config().display.compact;
    const known = { opened: this.#opened, skills: this.#skills };
    return banner(
      { profile, cwd: printable(home.display(cwd)), ...known, compact, rows: this.#rows() },
      width,
      this.#theme,
    );
  }

  invalidate(): void {
    // drawn anew for every frame
  }
}

// The first thing on the screen; how much of it depends on the width.

export interface BannerFacts {
  readonly profile: string;
  readonly cwd: string;
  /** Null until the conversation is open. */
  readonly opened: OpenedFacts | null;
  readonly compact: boolean;
  /** How many there are; null until they are counted. */
  readonly skills: number | null;
  /** Rows of the terminal. */
  readonly rows: number;
}

interface BannerServer {
  readonly name: string;
  /** 0 while it is not connected. */
  readonly tools: number;
}

interface OpenedFacts {
  readonly model: string;
  readonly provider: string;
  readonly contextLength: number;
  readonly sessionId: string;
  /** Where commands run, and whether the folder is only looked at. */
  readonly runs: string;
  /** Toolset -> its tools, of those that are offered to the model. */
  readonly tools: ReadonlyMap<string, readonly string[]>;
  /** Tools that the model finds through tool search. */
  readonly onDemand: number;
  /** MCP servers. */
  readonly servers: readonly BannerServer[];
}

const TOOLSETS_SHOWN = 8;
/** The first screen of a lower terminal holds the banner, a few lines and the input only if the banner is short. */
const LOW_ROWS = 30;
const TOOLSETS_SHOWN_LOW = 2;
const LEFT_CELLS = 44;
const SERVERS_MS = 10_000;

export function banner(facts: BannerFacts, width: number, theme: Theme): string[] {
  const { agentName, logo, hero } = theme.look;
  const name = `⚕ ${agentName === "Hermes" ? PRODUCT : agentName} ${VERSION}`;
  if (width < 30) return [cut(name, width)];
  const title = theme.title(name);
  if (width < 80 || facts.compact)
    return box(
      [title, ...left(facts, theme), ...summary(facts, Math.min(width, 72) - 4, theme)],
      Math.min(width, 72),
      theme,
    );
  const inner = width - 4;
  const leftCells = Math.min(Math.max(LEFT_CELLS, Math.floor(inner / 3)), Math.floor(inner / 2));
  const columns = sideBySide(left(facts, theme), right(facts, inner - leftCells - 3, theme), leftCells);
  const rows = [title, "", ...columns];
  if (width < 95 || facts.rows < LOW_ROWS) return box(rows, width, theme);
  return [...[...logo, ...hero].map((line) => cut(` ${theme.logo(line)}`, width)), ...box(rows, width, theme)];
}

function left({ opened, cwd, profile }: BannerFacts, theme: Theme): string[] {
  const model = opened ? `${opened.model} (${opened.provider})` : t("connecting ...");
  const row = (label: string, text: string) => `${theme.label(padCells(said(label), 7))} ${theme.bannerText(text)}`;
  return [
    row("model", model),
    ...(opened ? [row("context", contextSize(opened.contextLength))] : []),
    row("folder", cwd),
    ...(opened ? [row("runs", said(opened.runs))] : []),
    ...(opened ? [`${theme.label(padCells(said("session"), 7))} ${theme.sessionLabel(opened.sessionId)}`] : []),
    ...(profile === "default" ? [] : [row("profile", profile)]),
  ];
}

function right(facts: BannerFacts, width: number, theme: Theme): string[] {
  const { opened } = facts;
  if (!opened) return [];
  // Where few fit, those with most tools say most.
  const weight = ([set, tools]: readonly [string, readonly string[]]) => (set === "other" ? 0 : tools.length);
  const toolsets = [...opened.tools].sort((one, other) => weight(other) - weight(one));
  const shown = facts.rows < LOW_ROWS ? TOOLSETS_SHOWN_LOW : TOOLSETS_SHOWN;
  const more = toolsets.length - shown;
  return [
    ...toolsets
      .slice(0, shown)
      .map(([set, tools]) => `${theme.label(`${set}:`)} ${theme.bannerText(tools.join(", "))}`),
    ...(more > 0 ? [theme.dim(said(`... ${plural(more, "more toolset")}`))] : []),
    ...opened.servers.map(
      ({ name, tools }) =>
        `${theme.label("mcp:")} ${tools > 0 ? theme.bannerText(said(`${name} (${plural(tools, "tool")})`)) : theme.dim(said(`${name} (not connected)`))}`,
    ),
    ...summary(facts, width, theme),
  ].map((line) => cut(line, width));
}

/** `17 tools + 18 on demand · 12 skills · /help` */
function summary({ opened, skills }: BannerFacts, width: number, theme: Theme): string[] {
  if (!opened) return [];
  const count = [...opened.tools.values()].reduce((sum, tools) => sum + tools.length, 0);
  const later = opened.onDemand > 0 ? ` + ${opened.onDemand} on demand` : "";
  const known = skills === null || skills === 0 ? [] : [said(plural(skills, "skill"))];
  const tools = said(`${plural(count, "tool")}${later}`);
  const line = [tools, ...known, "/help"].join(" · ");
  return (cellWidth(line) <= width ? [line] : [tools, [...known, "/help"].join(" · ")]).map(theme.dim);
}

function sideBySide(one: readonly string[], other: readonly string[], cells: number): string[] {
  const rows = Math.max(one.length, other.length);
  return Array.from({ length: rows }, (_, i) => `${padCells(cut(one[i] ?? "", cells), cells)}   ${other[i] ?? ""}`);
}

function box(rows: readonly string[], width: number, theme: Theme): string[] {
  const inner = width - 4;
  const line = (text: string) => {
    const shown = cut(text, inner);
    return `${theme.border("│")} ${shown}${" ".repeat(Math.max(0, inner - cellWidth(shown)))} ${theme.border("│")}`;
  };
  const edge = "─".repeat(width - 2);
  return [theme.border(`╭${edge}╮`), ...rows.map(line), theme.border(`╰${edge}╯`)];
}

/** For whoever has not connected a model yet: most likely a first look. */
const WHAT_IT_IS =
  "Hermes is a personal AI agent: it works with your files, your shell and the web, remembers you, and learns skills.";

// One of these is shown at start.
const TIPS: readonly string[] = [
  "You can type while the agent works: by default Enter interrupts it. /busy queue lets it finish first, /busy steer adds your message to the running turn.",
  "/queue TEXT is sent when the turn ends; /steer TEXT reaches the agent with its next tool result.",
  "Alt+Enter, Ctrl+J or a backslash before Enter start a new line.",
  "Ctrl+R searches your input history; Up and Down step through it.",
  "Ctrl+G opens your draft in $EDITOR.",
  "Ctrl+S stashes the draft; press it again to restore it.",
  "Esc twice on an empty line lets you edit and resend your last message.",
  "/undo removes the last exchange, /retry resends your last message.",
  "/branch continues in a copy; the original conversation is not changed.",
  "/resume lists earlier conversations; /resume 3 opens the third one.",
  "hermes -c resumes your latest conversation.",
  "@ completes project files, Tab completes paths.",
  "/model switches the model for this conversation; --global makes it the default.",
  "/usage shows tokens and cost by purpose.",
  "Ctrl+V attaches the picture on the clipboard; you can also drop a file on the screen or type @pic.png.",
  "/copy copies the last answer to the clipboard, /copy 2 the one before.",
  "A long paste is shown as a placeholder; the model gets the full text.",
  "Ctrl+O shows the output of recent tool calls, Ctrl+T the model's thinking.",
  "/details expanded shows tool output as it happens; /details collapsed folds it again.",
  "/verbose sets how much of the tool feed is shown.",
  "/reasoning show displays the model's thinking; /reasoning high makes it think harder.",
  "/yolo runs dangerous commands without asking, in this conversation only.",
  "Define your own slash commands in config.yaml: quick_commands.",
  "Pipe a question in: cat question.txt | hermes -z -",
  "Ctrl+C stops the agent; twice on an empty line quits.",
];

function pickTip(random: () => number): string {
  return TIPS[Math.floor(random() * TIPS.length)] ?? "";
}

// Hints that are shown once in a home's life.

const HINTS = {
  busy_input_prompt:
    "Enter while the agent works stops it and sends the new message. /busy queue waits for the turn to end, /busy steer adds the message to the running turn.",
  tool_progress_prompt: "Each of these lines is a tool call. /verbose shows more or fewer of them.",
} as const;

export type HintName = keyof typeof HINTS;

/** The hint, the first time; null ever after. `shown` is what this process has shown already: writing takes a moment. */
export function firstTimeHint(name: HintName, home: OpenHome, shown: Set<HintName>): string | null {
  if (shown.has(name) || home.config().onboarding.seen[name] || home.managed || home.configBroken) return null;
  shown.add(name);
  home
    .setConfigKey(["onboarding", "seen", name], true)
    .catch((error: unknown) => home.log.warn(`the hint ${name} could not be marked as seen`, error));
  return HINTS[name];
}

// What was said before, short enough to read when a conversation is taken up again.

interface RecapLimits {
  readonly exchanges: number;
  readonly userChars: number;
  readonly assistantChars: number;
  readonly assistantLines: number;
  readonly skipToolOnly: boolean;
}

interface RecapEntry {
  readonly who: "user" | "assistant" | "tools";
  readonly text: string;
}

interface Recap {
  readonly entries: readonly RecapEntry[];
  /** Exchanges before the first one shown. */
  readonly olderExchanges: number;
}

interface Exchange {
  readonly user: string;
  readonly replies: string[];
  readonly tools: string[];
}

/** The last exchanges, cut to size; the very last reply is whole. */
export function recap(messages: readonly HistoryMessage[], limits: RecapLimits): Recap {
  const exchanges = exchangesOf(messages);
  const shown = exchanges.slice(-limits.exchanges);
  const entries = shown.flatMap((exchange, index): RecapEntry[] => {
    const last = index === shown.length - 1;
    const replies = exchange.replies.map((reply, i) =>
      last && i === exchange.replies.length - 1 ? reply : cutText(reply, limits.assistantChars, limits.assistantLines),
    );
    if (limits.skipToolOnly && exchange.user === "" && replies.length === 0) return [];
    return [
      { who: "user", text: cutText(exchange.user, limits.userChars, Number.POSITIVE_INFINITY) },
      ...(exchange.tools.length > 0 ? [{ who: "tools" as const, text: toolLine(exchange.tools) }] : []),
      ...replies.map((text) => ({ who: "assistant" as const, text })),
    ];
  });
  return { entries, olderExchanges: exchanges.length - shown.length };
}

function exchangesOf(messages: readonly HistoryMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const message of messages) {
    if (message.role === "user") exchanges.push({ user: withImages(message.content), replies: [], tools: [] });
    const current = exchanges.at(-1);
    if (message.role !== "assistant" || !current) continue;
    if (message.content?.trim()) current.replies.push(message.content.trim());
    current.tools.push(...(message.tool_calls ?? []).map((call) => call.function.name));
  }
  return exchanges;
}

function withImages(content: HistoryMessage["content"]): string {
  const images = Array.isArray(content) ? content.filter((part) => part.type === "image_url").length : 0;
  const { text, pictures } = withoutPictureWords(textOf(content));
  return [text, ...new Array<string>(images + pictures).fill("[image]")].join(" ").trim();
}

function toolLine(tools: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of tools) counts.set(name, (counts.get(name) ?? 0) + 1);
  const names = [...counts].map(([name, count]) => (count > 1 ? `${name}×${count}` : name));
  return `${plural(tools.length, "tool call")}: ${names.join(", ")}`;
}

function cutText(text: string, chars: number, lines: number): string {
  const fewLines = text.split("\n").slice(0, lines).join("\n");
  const points = [...fewLines];
  const cut = points.length > chars ? points.slice(0, chars).join("") : fewLines;
  return cut.length < text.length ? `${cut.trimEnd()}...` : text;
}
