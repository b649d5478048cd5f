// Whose text a conversation has read. From the first text of a stranger on, what changes the agent or sends data out is asked about.
import { realpath } from "node:fs/promises";
import { basename } from "node:path";
import type { HistoryMessage, TextOrigin } from "../llm/messages.ts";
import { expandPath } from "../safety/paths.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { SessionStore } from "../sessions/store.ts";
import { pathsOfBatch } from "../tools/toolset/batch-plan.ts";
import type { HookedCall } from "../tools/toolset/context.ts";
import { resultFileName } from "../tools/toolset/results.ts";
import type { SessionTools } from "../tools/toolset/session-tools.ts";
import type { Transcript } from "./transcript.ts";

/** One text from outside. */
interface ForeignEntry {
  /** The call whose result it was. Empty: it stays, whatever is taken back (it came with a task, or stands in a summary). */
  readonly call: string;
  /** Who it is from, in a few words. */
  readonly from: string;
}

/** Kept with the session; compressions and branches take it along. */
const FOREIGN_TEXT_KEY = "foreign_text";
const MAX_ENTRIES = 100;
const MAX_CHARS = 80;
const NAMED = 3;

/**
 * - Written before the text itself is: a crash in between leaves a conversation that is asked about once too often.
 * - Never shorter by itself: only `/undo` takes entries out, those whose results it took back.
 */
export class ForeignText {
  readonly #transcript: Pick<Transcript, "sessionId">;
  readonly #store: SessionStore | null;
  #entries: readonly ForeignEntry[];

  /** `handed`: what whoever started this conversation had read. */
  constructor(transcript: Pick<Transcript, "sessionId">, store: SessionStore | null, handed: readonly string[] = []) {
    this.#transcript = transcript;
    this.#store = store;
    this.#entries = handed.map((from) => ({ call: "", from }));
  }

  /** What is stored with the session, and what its messages say of themselves. */
  async load(messages: readonly HistoryMessage[]): Promise<void> {
    const stored = await this.#stored();
    const known = new Set(stored.map(({ call }) => call));
    const unknown = messages.flatMap((message) =>
      message.role === "tool" && isForeign(message.text_origin) && !known.has(message.tool_call_id)
        ? [{ call: message.tool_call_id, from: inWords(message.tool_name ?? message.name ?? "a tool") }]
        : [],
    );
    const handed = this.#entries.filter(({ call, from }) => call === "" && !stored.some((one) => one.from === from));
    this.#entries = [...handed, ...unknown, ...stored];
  }

  /** A record that cannot be read may name anybody: then it is asked once too often. */
  async #stored(): Promise<readonly ForeignEntry[]> {
    try {
      return readForeign(await this.#store?.getValue(this.#transcript.sessionId, FOREIGN_TEXT_KEY));
    } catch {
      return [{ call: "", from: "somebody (the record of it cannot be read)" }];
    }
  }

  /** Newest last, each once. */
  get sources(): readonly string[] {
    return [...new Set(this.#entries.map(({ from }) => from).reverse())].reverse();
  }

  /** The newest sources in words for a person; null when everything was written by the user and by us. */
  get words(): string | null {
    const all = this.sources;
    const newest = all.slice(-NAMED).reverse();
    if (newest.length === 0) return null;
    return newest.join(", ") + (all.length > NAMED ? ` and ${all.length - NAMED} more` : "");
  }

  /** What was read while this call ran; null: nothing. */
  during(call: string): string | null {
    return this.#entries.findLast((entry) => entry.call === call)?.from ?? null;
  }

  async add(found: readonly ForeignEntry[]): Promise<void> {
    if (found.length === 0) return;
    const all = [...this.#entries, ...found.map(({ call, from }) => ({ call, from: inWords(from) }))];
    const kept = all.slice(-MAX_ENTRIES);
    // What is not listed any more is still there: the oldest that is listed stands for it.
    this.#entries =
      all.length > kept.length ? kept.map((one, index) => (index === 0 ? { ...one, call: "" } : one)) : kept;
    await this.#save();
  }

  /** These messages were taken back, those are left. */
  async undone(before: readonly HistoryMessage[], after: readonly HistoryMessage[]): Promise<void> {
    const left = new Set(callsOf(after));
    const gone = new Set(callsOf(before).filter((call) => !left.has(call)));
    const kept = this.#entries.filter(({ call }) => !gone.has(call));
    if (kept.length === this.#entries.length) return;
    this.#entries = kept;
    await this.#save();
  }

  async #save(): Promise<void> {
    await this.#store?.setValue(this.#transcript.sessionId, FOREIGN_TEXT_KEY, this.#entries);
  }
}

/** The entries as they are stored; what does not fit is left out. */
function readForeign(value: unknown): readonly ForeignEntry[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry: unknown) => {
    if (typeof entry !== "object" || entry === null || !("call" in entry) || !("from" in entry)) return [];
    const { call, from } = entry;
    return typeof call === "string" && typeof from === "string" ? [{ call, from: inWords(from) }] : [];
  });
}

const isForeign = (origin: string | undefined) => origin === "web" || origin === "mcp" || origin === "file";

const callsOf = (messages: readonly HistoryMessage[]) =>
  messages.flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : []));

/** A host or a file name is a stranger's text too: one short line of it is shown. */
function inWords(from: string): string {
  const line = from.replace(/[\p{C}\p{Z}]+/gu, " ").trim();
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS - 1).toWellFormed()}…` : line;
}

// Where the text of a finished call came from. Text that neither the user nor this program wrote is from outside: it is fenced, and from
// then on the conversation knows that it was read.

/** Text from outside, and who it is from in a few words for a person. */
export interface Outside {
  readonly origin: TextOrigin;
  readonly from: string;
  /** It stands in frames of its own already, beside a text that the conversation is to obey. */
  readonly isFramed?: true;
}

interface Finished {
  readonly call: HookedCall;
  /** As the tool gave it, secrets masked. */
  readonly text: string;
  readonly failed: boolean;
  /** Where the terminal stood when it began. */
  readonly cwd: string;
}

interface OriginPorts {
  readonly tools: Pick<SessionTools, "textOrigin" | "serverOf">;
  readonly environment: Pick<Environment, "home" | "tempDir">;
  readonly store: SessionStore | null;
  /** The folder, or the folder of the file, is one the user trusts. Absent: every folder is. */
  isTrusted?(path: string): boolean;
}

/** What one conversation knows of its own doing, so that it does not take it for somebody else's. */
export class TextOrigins {
  readonly #ports: OriginPorts;
  /** Real paths of files that the conversation wrote. */
  readonly #written = new Set<string>();
  /** Background processes whose output is from outside. */
  readonly #processes = new Map<string, Outside>();
  /** Results that were too long lie in files by these names. */
  readonly #results = new Map<string, Outside | null>();

  constructor(ports: OriginPorts) {
    this.#ports = ports;
  }

  /** Null: the user, this program or a trusted folder wrote it. `within`: what a call that it made brought in. */
  async outside(finished: Finished, within?: Outside): Promise<Outside | null> {
    const found = within ?? (await this.#judge(finished));
    this.#results.set(resultFileName(finished.call.id), found);
    return found;
  }

  async #judge(finished: Finished): Promise<Outside | null> {
    const { call, failed } = finished;
    const { name, args } = call;
    const { tools } = this.#ports;
    if (isUntrusted(name)) return { origin: tools.textOrigin(name) ?? "web", from: this.#toolWords(call) };
    const declared = tools.textOrigin(name);
    if (declared === "web" || declared === "mcp") return { origin: declared, from: this.#toolWords(call) };
    switch (name) {
      case "write_file":
      case "patch":
        if (!failed) await this.#wrote(call, finished.cwd);
        return null;
      case "read_file":
      case "search_files":
        return failed ? null : this.#fromFile(name, String(args.path ?? "."), finished.cwd);
      case "terminal":
        return this.#fromCommand(finished);
      case "process":
        return this.#processes.get(String(args.session_id ?? "")) ?? null;
      case "execute_code":
        return this.#fromScript(finished);
      case "session_search":
        return failed ? null : this.#fromSessions(finished.text);
      case "kanban_show":
      case "kanban_list":
      case "kanban_attachments":
        return fromBoard(name, finished.text);
      default:
        return null;
    }
  }

  #toolWords({ name, args }: HookedCall): string {
    const server = this.#ports.tools.serverOf(name);
    if (server !== null) return `MCP server ${server}`;
    if (name.startsWith("mcp_")) return `MCP tool ${name}`;
    const urls = [args.url, args.image_url, ...(Array.isArray(args.urls) ? args.urls : [])];
    const hosts = [...new Set(urls.flatMap((url) => hostOf(url) ?? []))].slice(0, 2);
    const what = name.startsWith("browser_") ? "browser" : name;
    return [what, ...hosts].join(" ");
  }

  async #fromFile(tool: "read_file" | "search_files", path: string, cwd: string): Promise<Outside | null> {
    const { home, tempDir } = this.#ports.environment;
    const absolute = expandPath(path, cwd, home);
    const saved = absolute.startsWith(`${tempDir}/hermes-results/`) ? this.#results.get(basename(absolute)) : undefined;
    if (saved !== undefined) return saved;
    if ((await this.#untrusted([absolute])) === null) return null;
    return { origin: "file", from: `${tool === "read_file" ? "file" : "files in"} ${this.#display(absolute)}` };
  }

  async #fromCommand({ call, text, cwd }: Finished): Promise<Outside | null> {
    const { command, workdir, background } = call.args;
    const result = fieldsOf(text);
    // It was refused or could not be started: what stands there is ours.
    if (typeof command !== "string" || result.exit_code === -1) return null;
    const { bringsOutsideText, placesOf } = await import("../safety/outside-output.ts");
    const fetched = bringsOutsideText(command);
    const { home } = this.#ports.environment;
    const start = typeof workdir === "string" && workdir !== "" ? expandPath(workdir, cwd, home) : cwd;
    const { reads, writes } = placesOf(command);
    const at = (place: { readonly path: string; readonly from: string | null }) =>
      expandPath(place.path, expandPath(place.from ?? ".", start, home), home);
    const stranger = await this.#untrusted(reads.map(at));
    const silent = background !== true && result.output === "";
    const outside: Outside | null =
      fetched !== null
        ? { origin: "web", from: fetched }
        : stranger === null || silent
          ? null
          : { origin: "file", from: `a command that reads in ${this.#display(stranger)}` };
    // What a command of ours printed into a file is ours too.
    if (!outside) for (const place of writes) this.#written.add(await real(at(place)));
    if (outside && typeof result.session_id === "string") this.#processes.set(result.session_id, outside);
    return outside;
  }

  async #untrusted(paths: readonly string[]): Promise<string | null> {
    const isOwn = async (path: string) => this.#written.size > 0 && this.#written.has(await real(path));
    for (const path of new Set(paths)) if (!this.#trusts(path) && !(await isOwn(path))) return path;
    return null;
  }

  async #fromScript({ call, cwd, failed }: Finished): Promise<Outside | null> {
    const code = String(call.args.code ?? "");
    const { fetchesByCode, pathsInCode } = await import("../safety/outside-output.ts");
    if (fetchesByCode(code)) return { origin: "web", from: "a script that uses the network" };
    const { home } = this.#ports.environment;
    const stranger = await this.#untrusted([cwd, ...pathsInCode(code).map((path) => expandPath(path, cwd, home))]);
    return failed || stranger === null
      ? null
      : { origin: "file", from: `a script that reads in ${this.#display(stranger)}` };
  }

  /** Conversations in which a stranger's text was read may repeat it. */
  async #fromSessions(text: string): Promise<Outside | null> {
    const { store } = this.#ports;
    const ids = [...new Set([...text.matchAll(/"session_id":"([^"\\]{1,100})"/g)].map(([, id = ""]) => id))];
    for (const id of ids.slice(0, 20)) {
      const [newest] = readForeign(await store?.getValue(id, FOREIGN_TEXT_KEY)).slice(-1);
      if (newest) return { origin: "chat", from: `an earlier conversation with ${newest.from}` };
    }
    return null;
  }

  async #wrote(call: HookedCall, cwd: string): Promise<void> {
    const { home } = this.#ports.environment;
    const paths = pathsOfBatch([{ name: call.name, arguments: JSON.stringify(call.args) }], cwd, { home });
    for (const path of paths) this.#written.add(await real(path));
  }

  #trusts(path: string): boolean {
    return this.#ports.isTrusted?.(path) ?? true;
  }

  #display(path: string): string {
    const { home } = this.#ports.environment;
    return path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
  }
}

/** What a model reads out of a picture was written by whoever made the picture. */
const FOREIGN = new Set(["web_extract", "web_search", "vision_analyze", "kanban_attach_url"]);

/** Tools whose text is from outside whatever they are asked for. */
export function isUntrusted(name: string): boolean {
  return FOREIGN.has(name) || name.startsWith("browser_") || name.startsWith("mcp_");
}

/** Cards of others are data. A worker's own card is its task; what others left on it stands there in frames. */
function fromBoard(name: string, text: string): Outside | null {
  const { is_own: isOwn, words_of_others: words, task_id: id, task, count, error } = fieldsOf(text);
  // A refusal is ours.
  if (typeof error === "string") return null;
  if (name === "kanban_list") return count === 0 ? null : { origin: "chat", from: "the task board" };
  const others = Array.isArray(words) ? words.map(String) : [];
  if (isOwn !== true) {
    const shown = typeof task === "object" && task !== null && "id" in task ? task.id : id;
    return { origin: "chat", from: `card ${String(shown)}` };
  }
  if (others.length === 0) return null;
  return { origin: "chat", from: `the board (${others.join(", ")})`, isFramed: true };
}

function hostOf(url: unknown): string | null {
  return typeof url === "string" && /^[a-z]+:\/\//i.test(url) ? (URL.parse(url)?.host ?? null) : null;
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}; // a parsed object
  } catch {
    return {}; // too long for one piece: output there is
  }
}

const real = (path: string) => realpath(path).catch(() => path); // gone meanwhile, or in a container
