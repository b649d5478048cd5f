// vision_analyze: looks at an image that lies in a file or on the web.
import { z } from "zod";
import { register } from "./toolset/registry.ts";

register({
  name: "vision_analyze",
  readOnly: true,
  toolset: "vision",
  emoji: "👁️",
  deferred: true,
  textOrigin: "web",
  description: "Look at an image (png, jpeg, gif, webp) and answer a question about it.",
  parameters: z.object({
    image_url: z.string().describe("http(s) address or path of a file"),
    question: z.string(),
  }),
  timeoutMs: (_args, { auxiliary }) => 1000 * (auxiliary.vision.timeout + auxiliary.vision.download_timeout),
  onInvalid: (error) => JSON.stringify({ success: false, error }),
  handler: async (args, ctx) => (await import("./media/pictures.ts")).analyzeImage(args, ctx),
});
