// text_to_speech: an audio file that says a text.
import { z } from "zod";
import { register } from "./toolset/registry.ts";

register({
  name: "text_to_speech",
  toolset: "tts",
  emoji: "🔊",
  deferred: true,
  textOrigin: "local",
  requiresEnv: ["OPENAI_API_KEY"],
  description: "Speak a text into an audio file. Put media_tag of the result into your answer to send it.",
  parameters: z.object({
    text: z.string(),
    output_path: z.string().optional().describe("Default: a file in the audio cache"),
  }),
  timeoutMs: () => 180_000,
  onInvalid: (error) => JSON.stringify({ success: false, error }),
  handler: async (args, ctx) => (await import("./media/speak.ts")).speak(args, ctx),
});
