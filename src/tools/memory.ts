// What outlives a session: the agent's notes and the user's profile.
import { z } from "zod";
import { toolError } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const ACTION = { type: "string", enum: ["add", "replace", "remove"] };
const CONTENT = { type: "string", description: "add, replace: the entry" };
const OLD_TEXT = { type: "string", description: "replace, remove: text only that entry contains" };
const OPERATION = {
  type: "object",
  properties: { action: ACTION, content: { type: "string" }, old_text: { type: "string" } },
  required: ["action"],
};
const OPERATIONS = {
  type: "array",
  items: OPERATION,
  description: "Several changes of one target, all or none; instead of action",
};

// The store judges the arguments, so that every refusal has its code; this schema only shows the model what to write.
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
    "Your lasting memory; entries are part of every future turn: few and compact.\n" +
    "Save unasked when the user corrects you, says 'remember this' or 'don't do that again'; when they share a preference, habit or personal " +
    "detail; when you find out something about the environment, or a convention, API quirk or workflow of this set-up.\n" +
    "Priority: user preferences and corrections > environment facts > procedural knowledge. The best entry spares the user saying it again.\n" +
    "Targets: 'user' = who the user is; 'memory' = your notes.\n" +
    "Skip: trivial or obvious things, what is easily found again, raw data dumps, temporary task or TODO state. Progress and finished work are " +
    "found in past sessions; reusable procedures become skills.\n" +
    "Put all changes of one moment into one call with operations. The limit is checked on the result: one batch can free room and add; when " +
    "the store is full, reissue as such a batch.",
  parameters,
  verbatim: ["content", "old_text"],
  textOrigin: "local",
  async handler(args, ctx) {
    if (!ctx.memory) return toolError("memory must be handled by the agent loop");
    return JSON.stringify(await ctx.memory.apply(args, ctx));
  },
});
