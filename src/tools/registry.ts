// A tool is one file that registers itself when it is imported. There is no central list anywhere.
import type { z } from "zod";
import type { ContentPart } from "../llm/messages.ts";
import type { JsonSchema } from "../llm/wire.ts";
import type { TextOrigin, ToolContext } from "./context.ts";

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
export interface ToolSpec<Schema extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly toolset: string;
  readonly description: string;
  readonly parameters: Schema;
  readonly available?: (facts: AvailabilityFacts) => boolean | Promise<boolean>;
  readonly requiresEnv?: readonly string[];
  readonly emoji?: string;
  /** Characters of one result before it is moved to a file; `Infinity` = the tool limits itself. */
  readonly maxResultChars?: number;
  /** Offered through tool search instead of in the list. */
  readonly deferred?: boolean;
  /** Where the text of its results comes from. */
  readonly textOrigin?: TextOrigin;
  /** Merged over the schema each time the list is made. */
  readonly dynamicSchema?: () => Partial<{ description: string; parameters: JsonSchema }>;
  handler(args: z.infer<Schema>, ctx: ToolContext): Promise<ToolOutput> | ToolOutput;
}

export interface AvailabilityFacts {
  env(name: string): string | undefined;
  readonly platform: string;
}

/** A registered tool, its schema ready as JSON Schema. */
export interface ToolEntry {
  readonly name: string;
  readonly toolset: string;
  readonly spec: ToolSpec;
  readonly parameters: JsonSchema;
}
