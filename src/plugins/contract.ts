// What a plugin is handed, and what it may hand over. This file is the whole interface of plugins.
import type { Logger } from "../home/log.ts";
import type { HookCallback } from "./hooks.ts";

/** The default export of a plugin's code file. What it registers counts when it has returned; if it throws, nothing of it does. */
export type RegisterPlugin = (ctx: PluginContext) => unknown;

export interface PluginContext {
  readonly name: string;
  readonly version: string;
  /** The plugin's own folder. */
  readonly folder: string;
  readonly hermesHome: string;
  readonly profileName: string;
  readonly log: Logger;
  /** `plugins.entries.<name>` of config.yaml. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** One of the variables its manifest asks for; undefined for all others. */
  env(name: string): string | undefined;

  registerTool(tool: PluginTool): void;
  registerHook(event: string, callback: HookCallback): void;
  /** A slash command. A name that is taken keeps its meaning. */
  registerCommand(command: PluginCommand): void;
  /** `hermes <name> ...`. */
  registerCliCommand(command: PluginCliCommand): void;
  /** In use when `memory.provider` names it. `create` gets the home's context and makes one provider per conversation. */
  registerMemoryProvider(name: string, create: Factory): void;
  /** In use when `context.engine` names it. */
  registerContextEngine(name: string, create: Factory): void;
  /** In use when `image_gen.provider` names it. */
  registerImageGenProvider(name: string, provider: ImageGenProvider): void;
  /** In use when `web.backend`, `web.search_backend` or `web.extract_backend` names it. */
  registerWebSearchProvider(name: string, provider: WebSearchProvider): void;
  /** In use when `browser.engine` names it. */
  registerBrowserProvider(name: string, provider: BrowserProvider): void;
  /** In use when `tts.provider` names it. */
  registerTtsProvider(name: string, provider: TtsProvider): void;
  registerTranscriptionProvider(name: string, provider: unknown): void;
  registerPlatform(name: string, platform: unknown): void;
  /** A folder with a SKILL.md, relative to the plugin's; its skills are asked for as `plugin:skill`. */
  registerSkill(folder: string): void;

  /** Runs a tool as the model would: hooks and approval included. Needs a running turn; resolves to the whole result, fenced when it is foreign text. */
  dispatchTool(name: string, args: Readonly<Record<string, unknown>>): Promise<string>;
  /** Says something to the conversation: into the running turn, or as a message of its own. False when there is no conversation. */
  injectMessage(text: string): boolean;
  readonly llm: PluginLlm;
}

/** Makes a provider or an engine; what it gets and has to give is the contract of that registry. */
export type Factory = (context: never) => unknown;

// What providers give is checked where it is used: a plugin's code is not ours.

interface ImageGenProvider {
  /** The bytes of a png, jpeg, gif or webp. */
  generate(request: {
    readonly prompt: string;
    readonly aspectRatio: "landscape" | "square" | "portrait";
    /** `image_gen.model`. */
    readonly model?: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<Uint8Array>;
}

/** One of the two, or both. */
interface WebSearchProvider {
  search?(
    query: string,
    how: { readonly limit: number; readonly signal: AbortSignal },
  ): MaybePromise<readonly { readonly url: string; readonly title?: string; readonly description?: string }[]>;
  extract?(
    urls: readonly string[],
    how: { readonly signal: AbortSignal },
  ): MaybePromise<
    readonly (
      | { readonly url: string; readonly title?: string; readonly content: string; readonly finalUrl?: string }
      | { readonly url: string; readonly error: string }
    )[]
  >;
}

interface BrowserProvider {
  /** Asked once per conversation. `close` is called when it is needed no more. */
  open(): MaybePromise<{ readonly cdpUrl: string; close?(): unknown }>;
}

interface TtsProvider {
  /** Characters of one call; default 4096. */
  readonly mostChars?: number;
  speak(request: {
    readonly text: string;
    readonly format: "mp3" | "opus";
    readonly model?: string | undefined;
    readonly voice?: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<Uint8Array>;
}

type MaybePromise<T> = T | Promise<T>;

export interface PluginTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** Default: the plugin's name. */
  readonly toolset?: string;
  readonly emoji?: string;
  readonly requiresEnv?: readonly string[];
  readonly maxResultChars?: number;
  /** Offered through tool search instead of in the list. */
  readonly deferred?: boolean;
  /** Seconds one call may take; default 300. */
  readonly timeout?: number;
  /** Takes the place of a tool of that name; needs `plugins.entries.<plugin>.allow_tool_override: true`. */
  readonly override?: boolean;
  available?(): boolean | Promise<boolean>;
  /** Text for the model, or an envelope with parts. */
  handler(args: Readonly<Record<string, unknown>>, call: PluginCall): unknown;
}

/** The call a tool works for. */
export interface PluginCall {
  readonly sessionId: string;
  readonly taskId: string;
  readonly callId: string;
  readonly platform: string;
  readonly cwd: string;
  /** Stop when it aborts. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  env(name: string): string | undefined;
  /** A line for the screen while it works. */
  progress(text?: string): void;
}

export interface PluginCommand {
  readonly name: string;
  readonly description: string;
  readonly argsHint?: string;
  /** What it resolves to is shown; nothing of it reaches the model. */
  run(args: string, surface: PluginSurface): unknown;
}

interface PluginSurface {
  readonly sessionId: string;
  readonly platform: string;
  readonly cwd: string;
  say(text: string): void;
  warn(text: string): void;
  /** As the user's next message. */
  submit(text: string): void;
}

export interface PluginCliCommand {
  readonly name: string;
  readonly description: string;
  /** Resolves to the exit code; nothing = 0. */
  run(args: readonly string[], io: { out(text: string): void; err(text: string): void }): unknown;
}

export interface PluginLlm {
  /** One question to the conversation's model, counted and capped like every other. Rejects with the reason when there is no answer. */
  complete(request: {
    readonly prompt: string;
    readonly system?: string;
    readonly maxTokens?: number;
    readonly signal?: AbortSignal;
  }): Promise<string>;
}

export type ProviderKind = "image_gen" | "web_search" | "browser" | "tts" | "transcription";

/** The conversation behind the code that runs now. */
export interface ConversationPort {
  dispatchTool(name: string, args: Readonly<Record<string, unknown>>): Promise<string>;
  injectMessage(text: string): boolean;
  complete: PluginLlm["complete"];
}
