// Asks the person at the other end.
import { z } from "zod";
import type { ToolContext } from "./toolset/context.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const MAX_CHOICES = 4;
const LABEL_FIELDS = ["label", "description", "text", "title"] as const;

const parameters = z.object({
  question: z.string(),
  choices: z
    .unknown()
    .optional()
    .meta({
      type: "array",
      items: { type: "string" },
      description: "Up to 4 answers; the user may write another",
    }),
  multi_select: z.boolean().optional(),
});

register({
  name: "clarify",
  readOnly: true,
  toolset: "clarify",
  emoji: "❓",
  description:
    "Ask the user when the task is ambiguous or a decision is theirs; not for permission to run commands, nor what you can find out.",
  parameters,
  port: "ask",
  textOrigin: "local",
  handler: ask,
});

async function ask(args: z.infer<typeof parameters>, ctx: ToolContext): Promise<string> {
  const question = args.question.trim();
  if (question === "") return toolError("Question text is required.");
  if (args.choices != null && !Array.isArray(args.choices)) return toolError("choices must be a list of strings.");
  const offered = (args.choices ?? [])
    .map(labelOf)
    .filter((choice) => choice !== "")
    .slice(0, MAX_CHOICES);
  const choices = offered.length > 0 ? offered : null;
  const { text } = await ctx.ask(
    { kind: "clarify", question, choices, multiSelect: args.multi_select ?? false },
    ctx.signal,
  );
  if (text === null && !ctx.interactive) return toolError("Clarify tool is not available in this execution context.");
  if (text === null && ctx.signal.aborted) return toolError("The user ended the turn without an answer.");
  return toolResult({
    question,
    choices_offered: choices,
    user_response: text?.trim() ?? "(no answer: decide yourself and say what you assumed)",
  });
}

/** Models send objects now and then where a text was asked for. */
function labelOf(choice: unknown): string {
  if (typeof choice !== "object" || choice === null) return choice == null ? "" : String(choice).trim();
  const fields = choice as Readonly<Record<string, unknown>>; // read through typeof below
  const found = LABEL_FIELDS.map((field) => fields[field]).find(
    (value) => typeof value === "string" && value.trim() !== "",
  );
  return typeof found === "string" ? found.trim() : "";
}
