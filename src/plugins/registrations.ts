// Runs a plugin's `register` and writes down what it hands over. Nothing of it counts before it has returned.
import { resolve, sep } from "node:path";
import type { Logger } from "../home/log.ts";
import type {
  ConversationPort,
  Factory,
  PluginCliCommand,
  PluginCommand,
  PluginContext,
  PluginTool,
  ProviderKind,
  RegisterPlugin,
} from "./contract.ts";
import type { FoundPlugin } from "./find.ts";
import { HOOKS, type HookCallback } from "./hooks.ts";

export interface Registrations {
  readonly tools: PluginTool[];
  readonly hooks: { readonly event: string; readonly call: HookCallback }[];
  readonly commands: PluginCommand[];
  readonly cliCommands: PluginCliCommand[];
  readonly memories: { readonly name: string; readonly create: Factory }[];
  readonly engines: { readonly name: string; readonly create: Factory }[];
  readonly providers: { readonly kind: ProviderKind; readonly name: string; readonly provider: unknown }[];
  readonly platforms: { readonly name: string; readonly platform: unknown }[];
  readonly skills: string[];
}

export interface RegisterPorts {
  readonly hermesHome: string;
  readonly profileName: string;
  readonly log: Logger;
  readonly settings: Readonly<Record<string, unknown>>;
  env(name: string): string | undefined;
  /** Null where no conversation is at hand. */
  conversation(): ConversationPort | null;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const COMMAND = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** Rejects with the reason when the plugin does, or when what it hands over is no such thing. */
export async function collectRegistrations(
  register: RegisterPlugin,
  plugin: FoundPlugin,
  ports: RegisterPorts,
): Promise<Registrations> {
  const taken: Registrations = {
    ...{ tools: [], hooks: [], commands: [], cliCommands: [], memories: [], engines: [] },
    ...{ providers: [], platforms: [], skills: [] },
  };
  const door = { open: true };
  try {
    await register(makeContext(taken, plugin, ports, door));
  } finally {
    door.open = false;
  }
  return taken;
}

function makeContext(
  taken: Registrations,
  plugin: FoundPlugin,
  ports: RegisterPorts,
  door: { readonly open: boolean },
): PluginContext {
  const { manifest, folder } = plugin;
  const given = new Set(manifest.requiresEnv);
  /** The session's tools are chosen when it starts; what comes later would never be seen. */
  const add = <T>(list: T[], entry: T, what: string) => {
    if (!door.open) throw new Error(`${what} was registered after register() had returned; register everything in it`);
    list.push(entry);
  };
  const provider = (kind: ProviderKind) => (name: string, value: unknown) =>
    add(taken.providers, { kind, name: checkName(name, `${kind} provider`), provider: value }, `provider ${name}`);
  const inConversation = (what: string): ConversationPort => {
    const conversation = ports.conversation();
    if (!conversation) throw new Error(`${what} needs a running conversation`);
    return conversation;
  };
  return {
    name: manifest.name,
    version: manifest.version,
    folder,
    hermesHome: ports.hermesHome,
    profileName: ports.profileName,
    log: ports.log,
    settings: ports.settings,
    env: (name) => (given.has(name) ? ports.env(name) : undefined),
    registerTool: (tool) => add(taken.tools, checkTool(tool), `tool ${tool?.name}`),
    registerHook(event, call) {
      if (typeof call !== "function") throw new Error(`hook ${event}: the callback is not a function`);
      if (!(event in HOOKS))
        ports.log.warn(`plugin "${manifest.name}": there is no event ${event}; it is registered anyway`);
      add(taken.hooks, { event, call }, `hook ${event}`);
    },
    registerCommand: (command) => add(taken.commands, checkCommand(command, "/"), `command ${command?.name}`),
    registerCliCommand: (command) =>
      add(taken.cliCommands, checkCommand(command, "hermes "), `command ${command?.name}`),
    registerMemoryProvider: (name, create) =>
      add(taken.memories, checkFactory(name, create, "memory provider"), `memory provider ${name}`),
    registerContextEngine: (name, create) =>
      add(taken.engines, checkFactory(name, create, "context engine"), `context engine ${name}`),
    registerImageGenProvider: provider("image_gen"),
    registerWebSearchProvider: provider("web_search"),
    registerBrowserProvider: provider("browser"),
    registerTtsProvider: provider("tts"),
    registerTranscriptionProvider: provider("transcription"),
    registerPlatform: (name, platform) =>
      add(taken.platforms, { name: checkName(name, "platform"), platform }, `platform ${name}`),
    registerSkill(path) {
      const at = resolve(folder, path);
      if (at !== folder && !at.startsWith(folder + sep)) throw new Error(`the skill ${path} is outside the plugin`);
      add(taken.skills, at, `skill ${path}`);
    },
    dispatchTool: async (name, args) => inConversation("dispatchTool").dispatchTool(name, args),
    injectMessage: (text) => ports.conversation()?.injectMessage(text) ?? false,
    llm: { complete: async (request) => inConversation("llm").complete(request) },
  };
}

function checkTool(tool: PluginTool): PluginTool {
  checkName(tool?.name, "tool");
  if (typeof tool.handler !== "function") throw new Error(`tool ${tool.name}: handler is not a function`);
  if (typeof tool.description !== "string" || tool.description.trim() === "")
    throw new Error(`tool ${tool.name}: it needs a description`);
  const { parameters } = tool;
  if (parameters !== undefined && (typeof parameters !== "object" || parameters.type !== "object"))
    throw new Error(`tool ${tool.name}: parameters must be the JSON Schema of an object`);
  return tool;
}

function checkCommand<C extends PluginCommand | PluginCliCommand>(command: C, lead: string): C {
  if (typeof command?.name !== "string" || !COMMAND.test(command.name))
    throw new Error(`"${command?.name}" is not a valid name for a command (lower-case letters, digits, - and _)`);
  if (typeof command.run !== "function") throw new Error(`${lead}${command.name}: run is not a function`);
  if (typeof command.description !== "string") throw new Error(`${lead}${command.name}: it needs a description`);
  return command;
}

/** Each conversation has one of its own, so what is registered is what makes them. */
function checkFactory(
  name: unknown,
  create: Factory,
  what: string,
): { readonly name: string; readonly create: Factory } {
  const named = checkName(name, what);
  if (typeof create === "function") return { name: named, create };
  throw new Error(`${what} ${named}: the second argument must be a function that makes it, not ${kindOf(create)}`);
}

function checkName(name: unknown, what: string): string {
  if (typeof name === "string" && NAME.test(name)) return name;
  const given = typeof name === "string" ? `"${name}"` : `${kindOf(name)}, given first,`;
  throw new Error(`${given} is not a valid name for a ${what} (letters, digits, - and _, at most 64)`);
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
