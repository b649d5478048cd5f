// What outlives a session: the agent's notes and the user's profile. The store itself is reached through a port.
import { z } from "zod";
import { toolError } from "./dispatch.ts";
import { register } from "./registry.ts";

const ACTION = { type: "string", enum: ["add", "replace", "remove"] };
const CONTENT = { type: "string", description: "The entry; for add and replace" };
const OLD_TEXT = { type: "string", description: "A substring of the one entry meant; for replace and remove" };
const OPERATION = {
  type: "object",
  properties: { action: ACTION, content: { type: "string" }, old_text: { type: "string" } },
  required: ["action"],
};
const OPERATIONS = {
  type: "array",
  items: OPERATION,
  description: "Several changes of one target, all or nothing; instead of action",
};

// The store judges the arguments, so that every refusal has its code; this schema only tells the model what to write.
const shown = (schema: Readonly<Record<string, unknown>>) =>
  z
    .unknown()
    .meta({ ...schema })
    .optional();
const parameters = z
  .object({
    action: shown(ACTION),
    target: shown({ type: "string", enum: ["memory", "user"] }),
    content: shown(CONTENT),
    old_text: shown(OLD_TEXT),
    operations: shown(OPERATIONS),
  })
  .meta({ required: ["target"] });

register({
  name: "memory",
  toolset: "memory",
  emoji: "🧠",
  description:
    "Your lasting memory: entries are part of every future turn, so keep them few and compact.\n" +
    "Save without being asked when the user corrects you, says 'remember this' or 'don't do that again'; when they share a preference, " +
    "habit or personal detail; when you find out something about the environment (system, tools, projects); when you learn a convention, " +
    "API quirk or workflow of this set-up.\n" +
    "Priority: user preferences and corrections > environment facts > procedural knowledge. The best entry spares the user saying it again.\n" +
    "Targets: 'user' = who the user is (name, role, preferences, style, dislikes); 'memory' = your notes (environment, conventions, tool " +
    "quirks, lessons).\n" +
    "Skip: trivial or obvious things, what is easily found again, raw data dumps, temporary task or TODO state. Progress and finished work " +
    "are found by searching past sessions; reusable procedures become skills.\n" +
    "Write facts ('User prefers short answers'), not orders to yourself.\n" +
    "Put all changes of one moment into one call with operations. The size limit is checked on the result only, so one batch can remove or " +
    "shorten old entries and add new ones; when a write reports a full store, reissue it as such a batch. replace and remove find their " +
    "entry by old_text, a substring that only that entry contains.",
  parameters,
  textOrigin: "local",
  async handler(args, ctx) {
    if (!ctx.memory) return toolError("memory must be handled by the agent loop");
    return JSON.stringify(await ctx.memory.apply(args, ctx));
  },
});
