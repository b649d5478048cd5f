// image_generate: a picture from words, through an image model of the user's provider.
import { z } from "zod";
import { register } from "./toolset/registry.ts";

register({
  name: "image_generate",
  toolset: "image_gen",
  emoji: "🎨",
  deferred: true,
  textOrigin: "local",
  requiresEnv: ["OPENAI_API_KEY"],
  description: "Make an image from a description. The result names the file; show it with MEDIA:<path>.",
  parameters: z.object({
    prompt: z.string(),
    aspect_ratio: z.enum(["landscape", "square", "portrait"]).optional().describe("Default landscape"),
  }),
  timeoutMs: () => 180_000,
  onInvalid: (error) => JSON.stringify({ success: false, error }),
  handler: async (args, ctx) => (await import("./media/generate-image.ts")).generateImage(args, ctx),
});
