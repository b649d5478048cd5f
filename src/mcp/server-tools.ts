// A server's tools as the model gets them: filtered, named, described, and the utilities for its resources and prompts.

import type { CallToolResult, Client, RequestOptions } from "@modelcontextprotocol/client";
import type { McpCaller, McpTool } from "./contract.ts";
import { promptResult, type ResultPorts, resourceResult, toolResult } from "./result.ts";
import { type ServerSettings, toolName } from "./settings.ts";

/** What a server said it has. Plain data: it is kept between runs. */
export interface Listing {
  readonly tools: readonly ListedTool[];
  readonly resources: boolean;
  readonly prompts: boolean;
}

export interface ListedTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: unknown;
}

/** One request to the server, within the time limits, the breaker and the reconnects of its connection. */
type Request = <T>(caller: McpCaller, run: (client: Client, options: RequestOptions) => Promise<T>) => Promise<T>;

interface BuiltTools {
  readonly tools: readonly McpTool[];
  readonly warnings: readonly string[];
}

export async function readListing(client: Client, options: RequestOptions): Promise<Listing> {
  const capabilities = client.getServerCapabilities();
  const listed = capabilities?.tools ? (await client.listTools({}, { ...options, cacheMode: "refresh" })).tools : [];
  return {
    tools: listed.map(({ name, title, description, inputSchema }) => ({
      name,
      title,
      description,
      inputSchema,
    })),
    resources: capabilities?.resources !== undefined,
    prompts: capabilities?.prompts !== undefined,
  };
}

export function buildTools(
  listing: Listing,
  settings: ServerSettings,
  request: Request,
  ports: ResultPorts,
): BuiltTools {
  const warnings: string[] = [];
  const byName = new Map<string, McpTool>();
  const own = listing.tools.filter(({ name }) => isWanted(name, settings));
  const all = [
    ...own.map((tool) => toolOf(tool, settings, request, ports)),
    ...utilitiesOf(listing, settings, request, ports).filter(({ tool }) => !settings.exclude.includes(tool)),
  ];
  for (const tool of all) {
    const taken = byName.get(tool.name);
    if (taken) {
      warnings.push(
        `MCP server "${settings.name}": tool "${tool.tool}" is skipped: its name ${tool.name} is already used by "${taken.tool}".`,
      );
      continue;
    }
    byName.set(tool.name, tool);
  }
  return { tools: [...byName.values()], warnings };
}

/** How many tools a conversation gets of it. */
export function countTools(listing: Listing, settings: ServerSettings): number {
  const asleep = () => Promise.reject(new Error("nobody is connected"));
  return buildTools(listing, settings, asleep, { mediaDir: "", redact: (text) => text }).tools.length;
}

export function isWanted(tool: string, { include, exclude }: Pick<ServerSettings, "include" | "exclude">): boolean {
  return include === null ? !exclude.includes(tool) : include.includes(tool);
}

function toolOf(listed: ListedTool, settings: ServerSettings, request: Request, ports: ResultPorts): McpTool {
  return {
    ...common(listed.name, settings),
    description: listed.description?.trim() || listed.title?.trim() || listed.name,
    parameters: toolParameters(listed.inputSchema),
    async call(args, caller) {
      const result = await request(caller, (client, options) =>
        client.callTool({ name: listed.name, arguments: { ...args } }, options),
      );
      return toolResult(result as CallToolResult, ports); // asked for as a plain call, not as a task
    },
  };
}

function common(tool: string, { name: server, parallel, timeoutMs }: ServerSettings) {
  return { name: toolName(server, tool), server, tool, parallel, timeoutMs };
}

function utilitiesOf(listing: Listing, settings: ServerSettings, request: Request, ports: ResultPorts): McpTool[] {
  const { name: server } = settings;
  const utility = (
    tool: string,
    description: string,
    properties: Record<string, unknown>,
    required: readonly string[],
    call: McpTool["call"],
  ): McpTool => ({
    ...common(tool, settings),
    description,
    parameters: { type: "object", properties, ...(required.length > 0 ? { required } : {}) },
    call,
  });
  const resources = [
    utility("list_resources", `List the resources of the MCP server ${server}.`, {}, [], async (_args, caller) => {
      const { resources: found } = await request(caller, (client, options) => client.listResources({}, options));
      const short = found.map(({ uri, name, description, mimeType }) => ({ uri, name, description, mimeType }));
      return JSON.stringify({ resources: short });
    }),
    utility(
      "read_resource",
      `Read one resource of the MCP server ${server}.`,
      { uri: { type: "string", description: "its address, as list_resources gives it" } },
      ["uri"],
      async (args, caller) => {
        const uri = String(args.uri);
        return resourceResult(await request(caller, (client, options) => client.readResource({ uri }, options)), ports);
      },
    ),
  ];
  const prompts = [
    utility("list_prompts", `List the prompts of the MCP server ${server}.`, {}, [], async (_args, caller) => {
      const { prompts: found } = await request(caller, (client, options) => client.listPrompts({}, options));
      return JSON.stringify({
        prompts: found.map(({ name, description, arguments: args }) => ({ name, description, arguments: args })),
      });
    }),
    utility(
      "get_prompt",
      `Get one prompt of the MCP server ${server}, filled in.`,
      {
        name: { type: "string" },
        arguments: { type: "object", description: "values for its arguments, all texts", properties: {} },
      },
      ["name"],
      async (args, caller) => {
        const params = { name: String(args.name), arguments: texts(args.arguments) };
        return promptResult(await request(caller, (client, options) => client.getPrompt(params, options)), ports);
      },
    ),
  ];
  return [
    ...(listing.resources && settings.resources ? resources : []),
    ...(listing.prompts && settings.prompts ? prompts : []),
  ];
}

function texts(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, typeof inner === "string" ? inner : JSON.stringify(inner)]),
  );
}

// What one server offers: its first list counts at once, a changed one from the next turn on.

interface OfferingOptions {
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

  /** The server has answered before. */
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

// A server's input schema in the shape tool lists have here. What providers refuse beyond that is put right when the list is made.
type Node = Record<string, unknown>;

/** `definitions` become `$defs` with the references rewritten; type and properties are there; `required` names existing ones. */
export function toolParameters(schema: unknown): Node {
  const moved = moveDefinitions(isNode(schema) ? schema : {});
  const properties = isNode(moved.properties) ? moved.properties : {};
  const { required, ...rest } = moved;
  const kept = Array.isArray(required) ? required.filter((key) => typeof key === "string" && key in properties) : [];
  return { ...rest, type: "object", properties, ...(kept.length > 0 ? { required: kept } : {}) };
}

function moveDefinitions(schema: Node): Node {
  const { $schema: _dialect, definitions, ...rest } = walkNode(schema);
  if (!isNode(definitions)) return rest;
  return { ...rest, $defs: { ...definitions, ...(isNode(rest.$defs) ? rest.$defs : {}) } };
}

function walk(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(walk);
  return isNode(value) ? walkNode(value) : value;
}

function walkNode(node: Node): Node {
  return Object.fromEntries(
    Object.entries(node).map(([key, inner]) => {
      if (key === "$ref" && typeof inner === "string") return [key, inner.replace(/^#\/definitions\//, "#/$defs/")];
      // The keys of these are names, not keywords: a parameter may be called "$ref" or "definitions".
      const names = key === "properties" || key === "definitions" || key === "$defs";
      if (!names || !isNode(inner)) return [key, key === "default" || key === "examples" ? inner : walk(inner)];
      return [key, Object.fromEntries(Object.entries(inner).map(([name, schema]) => [name, walk(schema)]))];
    }),
  );
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// How a server's tools are called towards the model.
