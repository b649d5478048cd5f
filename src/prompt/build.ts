// The assembled prompt: what the agent is, knows and may trust. Pure: the same inputs give the same bytes.
import { environmentHints } from "./blocks/environment.ts";
import { identity, productHelp } from "./blocks/identity.ts";
import { platformHint } from "./blocks/platform.ts";
import { profileStatement } from "./blocks/profile.ts";
import { sessionLine } from "./blocks/session-line.ts";
import { enforcesTools, modelFamilyBlocks, TOOL_ENFORCEMENT } from "./blocks/tool-enforcement.ts";
import { PARALLEL_TOOLS, STEER_CHANNEL, TASK_COMPLETION, toolGuidance } from "./blocks/tool-guidance.ts";
import type { Layer, PromptBlock, PromptBuild, PromptInputs } from "./contract.ts";

const LAYERS: readonly Layer[] = ["stable", "context", "volatile"];

export function buildSystemPromptParts(input: PromptInputs): PromptBuild {
  const blocks = blocksOf(input).flatMap(([id, layer, text]): PromptBlock[] => {
    const stripped = text?.trim() ?? "";
    return stripped === "" ? [] : [{ id, layer, text: stripped }];
  });
  const joined = (layer: Layer) =>
    blocks
      .filter((block) => block.layer === layer)
      .map((block) => block.text)
      .join("\n\n");
  const [stable = "", context = "", volatile = ""] = LAYERS.map(joined);
  const full = [stable, context, volatile].filter((text) => text !== "").join("\n\n");
  return { blocks, stable, context, volatile, full, warnings: [] };
}

function blocksOf(input: PromptInputs): readonly (readonly [string, Layer, string | null])[] {
  const anyTool = input.toolNames.length > 0;
  const enforced = anyTool && enforcesTools(input.toolUseEnforcement, input.model);
  return [
    ["identity", "stable", identity(input)],
    ["product_help", "stable", productHelp(input)],
    ["task_completion", "stable", anyTool && input.taskCompletionGuidance ? TASK_COMPLETION : null],
    ["parallel_tools", "stable", anyTool && input.parallelToolGuidance ? PARALLEL_TOOLS : null],
    ["tool_guidance", "stable", toolGuidance(input.toolNames)],
    ["steer_channel", "stable", anyTool ? STEER_CHANNEL : null],
    ["tool_enforcement", "stable", enforced ? TOOL_ENFORCEMENT : null],
    ...(enforced ? modelFamilyBlocks(input.model) : []),
    ["env_hints", "stable", environmentHints(input)],
    ["profile", "stable", profileStatement(input)],
    ["platform_hint", "stable", platformHint(input.platform)],
    ["cwd", "context", input.cwd === null ? null : `Current working directory: ${input.cwd}`],
    ["system_message", "context", input.systemMessage],
    ["memory", "volatile", input.memoryText],
    ["user_profile", "volatile", input.userText],
    ["session_line", "volatile", sessionLine(input)],
  ];
}
