// Where the text of a finished call came from. Text that neither the user nor this program wrote is from outside: it is fenced, and from
// then on the conversation knows that it was read.
import { realpath } from "node:fs/promises";
import { basename } from "node:path";
import type { TextOrigin } from "../llm/messages.ts";
import { expandPath } from "../safety/paths.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { SessionStore } from "../sessions/store.ts";
import { pathsOfBatch } from "../tools/toolset/batch-plan.ts";
import type { HookedCall } from "../tools/toolset/context.ts";
import { resultFileName } from "../tools/toolset/results.ts";
import type { SessionTools } from "../tools/toolset/session-tools.ts";
import { FOREIGN_TEXT_KEY, readForeign } from "./foreign-text.ts";

/** Text from outside, and who it is from in a few words for a person. */
export interface Outside {
  readonly origin: TextOrigin;
  readonly from: string;
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
    for (const path of new Set(paths)) if (!this.#trusts(path) && !this.#written.has(await real(path))) return path;
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
const FOREIGN = new Set(["web_extract", "web_search", "vision_analyze"]);

/** Tools whose text is from outside whatever they are asked for. */
export function isUntrusted(name: string): boolean {
  return FOREIGN.has(name) || name.startsWith("browser_") || name.startsWith("mcp_");
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
