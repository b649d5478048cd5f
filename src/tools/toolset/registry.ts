// A tool is one file that registers itself when it is imported. There is no central list anywhere.

import type { z } from "zod";
import type { Config } from "../../home/config/schema.ts";
import type { Logger } from "../../home/log.ts";
import { UserError } from "../../kit/errors.ts";
import { isZodSchema, jsonSchemaOf } from "../../llm/json-schema.ts";
import type { ContentPart, HistoryMessage } from "../../llm/messages.ts";
import type { JsonSchema } from "../../llm/wire.ts";
import type { TextOrigin, ToolContext, ToolState } from "./context.ts";

/** What a handler gives back: text for the model, or parts with a text that stands in for them. */
export type ToolOutput = string | MultimodalOutput;

export interface MultimodalOutput {
  readonly _multimodal: true;
  readonly content: readonly ContentPart[];
  readonly text_summary?: string;
}

/**
 * One tool.
 *
 * - `handler` gets arguments that passed `parameters`; it honours `ctx.signal`, and it may throw: the dispatcher makes an error result of it.
 * - `description` never names a tool of another toolset.
 * - `available` is asked at most every 30 s; without it the tool is always offered.
 */
export interface ToolSpec<Schema extends z.ZodObject = z.ZodObject> extends ToolTraits {
  readonly parameters: Schema;
  handler(args: z.infer<Schema>, ctx: ToolContext): Promise<ToolOutput> | ToolOutput;
}

/** A tool whose schema comes from elsewhere (an MCP server, a plugin). Its arguments are coerced but only checked for presence. */
export interface ForeignToolSpec extends ToolTraits {
  readonly parameters: JsonSchema;
  handler(args: Readonly<Record<string, unknown>>, ctx: ToolContext): Promise<ToolOutput> | ToolOutput;
}

interface ToolTraits {
  readonly name: string;
  readonly toolset: string;
  readonly description: string;
  readonly available?: (facts: AvailabilityFacts) => boolean | Promise<boolean>;
  /** Shown in set-up; not a gate by itself. */
  readonly requiresEnv?: readonly string[];
  readonly emoji?: string;
  /** Characters of one result before it is moved to a file; `Infinity` = the tool limits itself. */
  readonly maxResultChars?: number;
  /** Offered through tool search instead of in the list. */
  readonly deferred?: boolean;
  /** Its calls may run side by side with others (MCP servers that say so). */
  readonly parallel?: boolean;
  /** It changes nothing, whatever it is called with: plan mode runs it. */
  readonly readOnly?: boolean;
  /** Where the text of its results comes from. */
  readonly textOrigin?: TextOrigin;
  /** The port it cannot do without: where the run has none, the tool is not offered. */
  readonly port?: "ask" | "deliver" | "schedule";
  /** Parameters that are offered only where commands run in a sandbox that they may ask to leave. */
  readonly sandboxParameters?: readonly string[];
  /** Tools of other sets its description may name: `{tools}` in it becomes those that the session has. */
  readonly mentions?: readonly string[];
  /** Merged over the schema each time the list is made. */
  readonly dynamicSchema?: () => Partial<{ description: string; parameters: JsonSchema }>;
  /** The tool's own time limit for one call in milliseconds; the loop gives a call up some time after it. */
  readonly timeoutMs?: (args: Readonly<Record<string, unknown>>, config: Config) => number | undefined;
  /** It shows signs of life itself; the loop must not show any for it. */
  readonly showsLife?: true;
  /** Reads back from a resumed conversation what this family keeps in it. */
  readonly hydrate?: (state: ToolState, history: readonly HistoryMessage[]) => void;
  /** Optional texts that say something when they are blank; any other blank one counts as left out. */
  readonly verbatim?: readonly string[];
  /** The result when the arguments do not pass, for tools whose results have a shape of their own. */
  readonly onInvalid?: (problem: string) => ToolOutput;
}

export interface AvailabilityFacts {
  env(name: string): string | undefined;
  readonly platform: string;
  /** Ports the run has. */
  readonly ports?: ReadonlySet<string>;
  /** Commands run in a sandbox of this machine. */
  readonly sandboxed?: boolean;
}

/** A registered tool, its schema ready as JSON Schema. Reading `spec` loads the tool's file where only its outline was known. */
export interface ToolEntry {
  readonly name: string;
  readonly toolset: string;
  readonly spec: ToolSpec | ForeignToolSpec;
  /** What is data in the spec. */
  readonly traits: Omit<ToolOutline, "parameters">;
  readonly parameters: JsonSchema;
}

/**
 * A tool before its file is loaded: all that a request needs to offer it. The bundler writes outlines of the built-in tools down, so that
 * a run loads the schema library and a tool's code with the first call, not before the first request.
 */
interface ToolOutline
  extends Pick<
    ToolTraits,
    | "name"
    | "toolset"
    | "description"
    | "requiresEnv"
    | "emoji"
    | "maxResultChars"
    | "deferred"
    | "parallel"
    | "readOnly"
    | "mentions"
    | "port"
    | "textOrigin"
    | "sandboxParameters"
  > {
  readonly parameters: JsonSchema;
  /** Functions in the spec that are wanted before the first call: for these the file is loaded. */
  readonly asks?: readonly EarlyQuestion[];
}

const EARLY_QUESTIONS = ["available", "dynamicSchema", "hydrate"] as const;
type EarlyQuestion = (typeof EARLY_QUESTIONS)[number];

/** Who registers. Core and bundled plugins may replace a tool of another toolset; a user's plugin only with the user's consent. */
interface Registrant {
  readonly plugin: string;
  readonly bundled: boolean;
  /** `plugins.entries.<plugin>.allow_tool_override` */
  readonly mayOverride: boolean;
}

interface RegisterOptions {
  readonly override?: boolean;
  readonly by?: Registrant;
}

/**
 * All tools of a process.
 *
 * - `generation` rises with every change; whoever remembers something derived from the registry remembers the generation with it.
 * - A refused registration is logged, not thrown: one bad tool never takes the others down.
 */
export class ToolRegistry {
  #entries = new Map<string, ToolEntry>();
  #aliases = new Map<string, string>();
  #generation = 0;
  #log: Logger | null = null;
  #unsaid: ((log: Logger) => void)[] = [];

  get generation(): number {
    return this.#generation;
  }

  register<Schema extends z.ZodObject>(spec: ToolSpec<Schema>, options?: RegisterOptions): boolean;
  register(spec: ForeignToolSpec, options?: RegisterOptions): boolean;
  register(spec: ToolSpec | ForeignToolSpec, options: RegisterOptions = {}): boolean {
    const present = this.#entries.get(spec.name);
    if (present && present.toolset !== spec.toolset && !this.#mayReplace(present, spec.toolset, options)) return false;
    this.#entries.set(spec.name, toolEntry(spec));
    this.#generation++;
    return true;
  }

  /** Offers tools whose file is loaded by the first who needs more than their outline. `load` has to register them. */
  outline(tools: readonly ToolOutline[], load: () => void): void {
    for (const outline of tools) this.#entries.set(outline.name, this.#outlined(outline, load));
    this.#generation++;
  }

  deregister(name: string, by?: Registrant): boolean {
    const entry = this.#entries.get(name);
    if (!entry) return false;
    if (by && !entry.toolset.startsWith("mcp-")) requireOverride(by, `remove the tool "${name}"`);
    this.#entries.delete(name);
    if (![...this.#entries.values()].some(({ toolset }) => toolset === entry.toolset)) {
      for (const [alias, target] of this.#aliases) if (target === entry.toolset) this.#aliases.delete(alias);
    }
    this.#generation++;
    return true;
  }

  /** Gives a toolset a second name, e.g. the server name `github` for `mcp-github`. */
  alias(alias: string, toolset: string): void {
    this.#aliases.set(alias, toolset);
    this.#generation++;
  }

  get(name: string): ToolEntry | undefined {
    return this.#entries.get(name);
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  names(): string[] {
    return [...this.#entries.keys()].sort();
  }

  toolsets(): string[] {
    return [...new Set([...this.#entries.values()].map((entry) => entry.toolset))].sort();
  }

  /** The tools that registered under this toolset or under the toolset this alias stands for. */
  toolsOf(toolset: string): string[] {
    const wanted = this.#aliases.get(toolset) ?? toolset;
    return [...this.#entries.values()].flatMap(({ name, toolset: own }) => (own === wanted ? [name] : [])).sort();
  }

  aliasTarget(alias: string): string | undefined {
    return this.#aliases.get(alias);
  }

  /** Tools register before any log is open; what they had to say is written as soon as one is. */
  useLog(log: Logger): void {
    this.#log = log;
    for (const say of this.#unsaid.splice(0)) say(log);
  }

  #outlined({ parameters, ...traits }: ToolOutline, load: () => void): ToolEntry {
    const loaded = () => {
      if (this.#entries.get(traits.name) === entry) load();
      const present = this.#entries.get(traits.name);
      if (!present || present === entry) throw new Error(`the file of tool "${traits.name}" does not register it`);
      return present.spec;
    };
    const entry: ToolEntry = {
      name: traits.name,
      toolset: traits.toolset,
      traits,
      parameters,
      get spec() {
        return loaded();
      },
    };
    return entry;
  }

  #mayReplace(present: ToolEntry, toolset: string, options: RegisterOptions): boolean {
    const what = `tool "${present.name}" of toolset "${present.toolset}"`;
    if (!options.override) {
      this.#say((log) => log.error(`${what} stays: toolset "${toolset}" tried to register the same name`));
      return false;
    }
    if (options.by) requireOverride(options.by, `replace the ${what}`);
    this.#say((log) => log.info(`${what} is replaced by toolset "${toolset}"`));
    return true;
  }

  #say(say: (log: Logger) => void): void {
    if (this.#log) say(this.#log);
    else this.#unsaid.push(say);
  }
}

/** A registry with tools of its own over another one's, for a conversation that brings some along. What it registers nobody else sees. */
export class LayeredRegistry extends ToolRegistry {
  readonly #base: ToolRegistry;

  constructor(base: ToolRegistry) {
    super();
    this.#base = base;
  }

  override get generation(): number {
    return this.#base.generation + super.generation;
  }

  override get(name: string): ToolEntry | undefined {
    return super.get(name) ?? this.#base.get(name);
  }

  override has(name: string): boolean {
    return super.has(name) || this.#base.has(name);
  }

  override names(): string[] {
    return [...new Set([...super.names(), ...this.#base.names()])].sort();
  }

  override toolsets(): string[] {
    return [...new Set([...super.toolsets(), ...this.#base.toolsets()])].sort();
  }

  override toolsOf(toolset: string): string[] {
    return [...new Set([...super.toolsOf(toolset), ...this.#base.toolsOf(toolset)])].sort();
  }

  override aliasTarget(alias: string): string | undefined {
    return super.aliasTarget(alias) ?? this.#base.aliasTarget(alias);
  }
}

/** The registry of this process. Tool files reach it through `register`. */
export const registry = new ToolRegistry();

/** Registers a tool of the core. Called at the top level of a tool file, once per tool. */
export function register<Schema extends z.ZodObject>(spec: ToolSpec<Schema>): void {
  registry.register(spec);
}

/** One of the functions of a spec that are wanted before the first call, without loading the file of a tool that has none. */
export function early<Question extends EarlyQuestion>(entry: ToolEntry, question: Question): ToolTraits[Question] {
  return entry.traits.asks?.includes(question) ? entry.spec[question] : undefined;
}

/** What the bundler writes down of a tool. */
export function outlineOf({ traits, parameters, spec }: ToolEntry): ToolOutline {
  const { name, toolset, description, requiresEnv, emoji, maxResultChars, deferred, textOrigin, mentions, port } =
    traits;
  const { sandboxParameters, readOnly } = traits;
  const asks = EARLY_QUESTIONS.filter((question) => spec[question] !== undefined);
  const data = {
    name,
    toolset,
    description,
    requiresEnv,
    emoji,
    maxResultChars,
    deferred,
    readOnly,
    textOrigin,
    mentions,
    port,
    sandboxParameters,
    parameters,
    asks,
  };
  return Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined)) as unknown as ToolOutline; // only what is undefined was left out
}

function requireOverride(by: Registrant, what: string): void {
  if (by.bundled || by.mayOverride) return;
  throw new UserError(
    `plugin "${by.plugin}" may not ${what}; to allow it set plugins.entries.${by.plugin}.allow_tool_override: true in config.yaml`,
  );
}

/** An entry that stands in no registry: whoever holds it runs it. */
export function toolEntry(spec: ToolSpec | ForeignToolSpec): ToolEntry {
  let parameters: JsonSchema | null = null;
  return {
    name: spec.name,
    toolset: spec.toolset,
    spec,
    traits: { ...spec, asks: EARLY_QUESTIONS },
    // Made on first use: most runs of the program never look at most schemas.
    get parameters() {
      parameters ??= isZodSchema(spec.parameters) ? jsonSchemaOf(spec.parameters) : spec.parameters;
      return parameters;
    },
  };
}
