// Commands about MCP servers.
import type { CommandDefinition } from "./definition.ts";

const reloadMcp: CommandDefinition = {
  name: "reload-mcp",
  aliases: ["reload_mcp"],
  description: "connect to the MCP servers anew",
  category: "Tools & Skills",
  async run(args, ctx) {
    const { home, conversation } = ctx;
    const now = /^(?:now|--yes|-y)$/.test(args.trim());
    if (!now && home.config().approvals.mcp_reload_confirm) {
      const choice = await ctx.confirm(
        "Reload the MCP servers?",
        "If their tools changed, the provider's prompt cache of this conversation is lost: the next request is paid for in full.",
      );
      if (choice === "cancel") return ctx.say("Nothing changed.");
      if (choice === "always") await home.setConfigKey("approvals.mcp_reload_confirm", false);
    }
    ctx.say("Connecting to the MCP servers ...");
    ctx.say((await conversation.reloadMcp()).join("\n"));
  },
};

export const MCP_COMMANDS: readonly CommandDefinition[] = [reloadMcp];
