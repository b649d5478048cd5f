import { CHAT_COMMANDS } from "./chats.ts";
import { COMPRESSION_COMMANDS } from "./compression.ts";
import { CONFIG_COMMANDS } from "./config.ts";
import { CONVERSATION_COMMANDS } from "./conversations.ts";
import { CRON_COMMANDS } from "./cron.ts";
import { DETAIL_COMMANDS } from "./details.ts";
import { FORK_COMMANDS } from "./fork.ts";
import { GOAL_COMMANDS } from "./goals.ts";
import { INFO_COMMANDS, TRANSCRIPT_COMMANDS } from "./info.ts";
import { INSIGHT_COMMANDS } from "./insights.ts";
import { KANBAN_COMMANDS } from "./kanban-slash.ts";
import { LOOK_COMMANDS } from "./look.ts";
import { MEMORY_COMMANDS } from "./memory.ts";
import { MODEL_COMMANDS } from "./model.ts";
import { PROMPT_COMMANDS } from "./prompt.ts";
import { CommandRegistry } from "./registry.ts";
import { ROLLBACK_COMMANDS } from "./rollback.ts";
import { SESSION_COMMANDS } from "./session.ts";
import { SETTINGS_COMMANDS } from "./settings.ts";
import { SKILL_COMMANDS } from "./skills.ts";
import { LIBRARY_COMMANDS } from "./skills-library.ts";
import { TASK_COMMANDS } from "./tasks.ts";
import { MCP_COMMANDS, PLUGIN_COMMANDS, TOOL_COMMANDS } from "./tools.ts";
import { TURN_COMMANDS } from "./turns.ts";
/** A fresh registry with the built-in commands. Plugins and skills add to a door's own copy. */
export const builtinCommands = () =>
  new CommandRegistry([
    ...CONVERSATION_COMMANDS,
    ...FORK_COMMANDS,
    ...TURN_COMMANDS,
    ...GOAL_COMMANDS,
    ...TASK_COMMANDS,
    ...COMPRESSION_COMMANDS,
    ...SESSION_COMMANDS,
    ...ROLLBACK_COMMANDS,
    ...TRANSCRIPT_COMMANDS,
    ...CONFIG_COMMANDS,
    ...MODEL_COMMANDS,
    ...SETTINGS_COMMANDS,
    ...DETAIL_COMMANDS,
    ...LOOK_COMMANDS,
    ...TOOL_COMMANDS,
    ...MCP_COMMANDS,
    ...SKILL_COMMANDS,
    ...PLUGIN_COMMANDS,
    ...CRON_COMMANDS,
    ...KANBAN_COMMANDS,
    ...PROMPT_COMMANDS,
    ...LIBRARY_COMMANDS,
    ...MEMORY_COMMANDS,
    ...INFO_COMMANDS,
    ...INSIGHT_COMMANDS,
    ...CHAT_COMMANDS,
  ]);
