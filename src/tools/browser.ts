// A real browser, one for each conversation. The schemas only: what drives it is loaded with the first call.
import { z } from "zod";
import type { Config } from "../home/config/schema.ts";
import { register } from "./toolset/registry.ts";

const START_SECONDS = 30;
const seconds = (_args: unknown, config: Config) => 1000 * (config.browser.command_timeout + START_SECONDS);
const looking = (_args: unknown, config: Config) =>
  1000 * (config.browser.command_timeout + START_SECONDS + config.auxiliary.vision.timeout);

const shared = {
  toolset: "browser",
  deferred: true,
  textOrigin: "web",
  timeoutMs: seconds,
  onInvalid: (error: string) => JSON.stringify({ success: false, error }),
} as const;
const ref = z.string().describe("From the last snapshot, like @e5");
const actions = () => import("./browser/actions.ts");

register({
  ...shared,
  name: "browser_navigate",
  readOnly: true,
  emoji: "🌐",
  description:
    "Open a web page in a real browser and get a compact snapshot of it: elements with refs (@e5) for the other browser tools. " +
    "For pages that need clicks, forms or scripts.",
  parameters: z.object({ url: z.string().describe("http or https") }),
  handler: async (args, ctx) => (await actions()).navigate(args, ctx),
});

register({
  ...shared,
  name: "browser_snapshot",
  readOnly: true,
  emoji: "📸",
  description:
    "The open page as text, an accessibility tree with refs. Refs of earlier snapshots are void afterwards. Take one after the page changed.",
  parameters: z.object({ full: z.boolean().optional().describe("All text and link targets; default false: compact") }),
  handler: async (args, ctx) => (await actions()).snapshot(args, ctx),
});

register({
  ...shared,
  name: "browser_click",
  emoji: "👆",
  description: "Click an element of the open page.",
  parameters: z.object({ ref }),
  handler: async (args, ctx) => (await actions()).click(args, ctx),
});

register({
  ...shared,
  name: "browser_type",
  emoji: "⌨️",
  description:
    "Replace the text of an input field of the open page. Typed literally: nothing is filled in from variables.",
  parameters: z.object({ ref, text: z.string() }),
  handler: async (args, ctx) => (await actions()).type(args, ctx),
});

register({
  ...shared,
  name: "browser_scroll",
  readOnly: true,
  emoji: "↓",
  description: "Scroll the open page by most of a screen.",
  parameters: z.object({ direction: z.enum(["up", "down"]) }),
  handler: async (args, ctx) => (await actions()).scroll(args, ctx),
});

register({
  ...shared,
  name: "browser_back",
  readOnly: true,
  emoji: "◀️",
  description: "Go back to the page before this one.",
  parameters: z.object({}),
  handler: async (_args, ctx) => (await actions()).back(ctx),
});

register({
  ...shared,
  name: "browser_press",
  emoji: "⌨️",
  description: "Press a key in the open page.",
  parameters: z.object({ key: z.string().describe("Enter, Tab, Escape, ArrowDown, Control+a, …") }),
  handler: async (args, ctx) => (await actions()).press(args, ctx),
});

register({
  ...shared,
  name: "browser_get_images",
  readOnly: true,
  emoji: "🖼️",
  description: "List the images of the open page with address, alternative text and size.",
  parameters: z.object({}),
  handler: async (_args, ctx) => (await actions()).getImages(ctx),
});

register({
  ...shared,
  name: "browser_vision",
  readOnly: true,
  emoji: "👁️",
  description:
    "Look at a screenshot of the open page and answer a question about it: layout, pictures, captchas, what text cannot tell. " +
    "The screenshot stays on disk.",
  parameters: z.object({
    question: z.string(),
    annotate: z.boolean().optional().describe("Draw the refs of clickable elements into the picture"),
  }),
  timeoutMs: looking,
  handler: async (args, ctx) => (await import("./browser/actions.ts")).look(args, ctx),
});

register({
  ...shared,
  name: "browser_console",
  emoji: "🖥️",
  description:
    "Console output and script errors of the open page; with expression, the value of that JavaScript in the page.",
  parameters: z.object({
    clear: z.boolean().optional().describe("Forget the messages after reading them"),
    expression: z.string().optional(),
  }),
  handler: async (args, ctx) => (await actions()).readConsole(args, ctx),
});

register({
  ...shared,
  name: "browser_cdp",
  emoji: "🔧",
  description:
    "Send one Chrome DevTools Protocol command to the open page, for what the other browser tools cannot do " +
    "(Emulation.setDeviceMetricsOverride, Network.getCookies, Input.dispatchMouseEvent, …).",
  parameters: z.object({
    method: z.string().describe("Domain.command"),
    params: z.record(z.string(), z.unknown()).optional(),
    timeout: z.number().optional().describe("Seconds"),
  }),
  handler: async (args, ctx) => (await import("./browser/cdp.ts")).sendCommand(args, ctx),
});

register({
  ...shared,
  name: "browser_dialog",
  emoji: "💬",
  description:
    "Answer the alert, confirm or prompt dialog that stands over the page; until then the page does nothing else.",
  parameters: z.object({
    action: z.enum(["accept", "dismiss"]),
    prompt_text: z.string().optional().describe("What a prompt is answered with"),
  }),
  verbatim: ["prompt_text"],
  handler: async (args, ctx) => (await actions()).answerDialog(args, ctx),
});
