// The assembled prompt: what the agent is, knows and may trust. Pure: the same inputs give the same bytes.

import { strip } from "../kit/code-points.ts";
import { messageOf } from "../kit/errors.ts";
import {
  alibabaModel,
  COMPUTER_USE,
  codingBrief,
  enforcesTools,
  environmentHints,
  GOOGLE,
  identity,
  isGoogle,
  isOpenAi,
  OPENAI,
  operatorInstructions,
  PARALLEL_TOOLS,
  platformHint,
  productHelp,
  profileStatement,
  STEER_CHANNEL,
  sessionLine,
  TASK_COMPLETION,
  TOOL_ENFORCEMENT,
  toolGuidance,
} from "./blocks.ts";
import type { Layer, PromptBlock, PromptBuild, PromptInputs } from "./contract.ts";
import { PROMPT_VERSION, sandboxStamp, sha256 } from "./fingerprint.ts";
import { skillsIndex } from "./skills-index.ts";

interface Piece {
  readonly id: string;
  readonly layer: Layer;
  text(): string | null;
  readonly source?: string | undefined;
}

/** Never throws: a piece that fails is left out, and the user is warned. */
export function buildSystemPromptParts(input: PromptInputs): PromptBuild {
  const warnings: string[] = [
    ...(input.soul?.warnings ?? []),
    ...(input.contextFiles?.warnings ?? []),
    ...(input.notes ?? []),
  ];
  const blocks = piecesOf(input, (warning) => warnings.push(warning)).flatMap((piece) => toBlock(piece, warnings));
  const layer = (wanted: Layer) => join(blocks.filter((block) => block.layer === wanted).map((block) => block.text));
  const [stable, context, volatile] = [layer("stable"), layer("context"), layer("volatile")];
  const full = join([stable, context, volatile]);
  return {
    blocks,
    stable,
    context,
    volatile,
    full,
    warnings: [...new Set(warnings)],
    contextFiles: [...(input.soul?.report ? [input.soul.report] : []), ...(input.contextFiles?.reports ?? [])],
    fingerprint: {
      v: PROMPT_VERSION,
      model: input.model,
      provider: input.provider,
      platform: input.platform,
      cwd: input.cwd,
      ...(isRemote(input)
        ? {}
        : { sandbox: sandboxStamp(input.backend?.type === "sandbox" ? input.backend : undefined) }),
      toolsHash: input.toolsHash,
      toolSelection: input.toolSelection,
      promptHash: sha256(full),
    },
  };
}

function join(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n\n");
}

function toBlock({ id, layer, text, source }: Piece, warnings: string[]): PromptBlock[] {
  try {
    const stripped = strip(text() ?? "");
    return stripped === "" ? [] : [{ id, layer, text: stripped, source }];
  } catch (error) {
    warnings.push(`The prompt goes without its part "${id}": ${messageOf(error)}`);
    return [];
  }
}

function piecesOf(input: PromptInputs, warn: (warning: string) => void): readonly Piece[] {
  const { toolNames, model, coding } = input;
  const anyTool = toolNames.length > 0;
  const enforced = anyTool && enforcesTools(input.toolUseEnforcement, model);
  const codes = anyTool && coding?.active === true;
  const stable = (id: string, when: boolean, text: () => string | null, source?: string): Piece => ({
    id,
    layer: "stable",
    text: () => (when ? text() : null),
    source,
  });
  const context = (id: string, text: string | null | undefined): Piece => ({
    id,
    layer: "context",
    text: () => text ?? null,
  });
  const volatile = (id: string, text: () => string | null | undefined): Piece => ({
    id,
    layer: "volatile",
    text: () => text() ?? null,
  });
  const soulSource = input.soul?.text === null ? undefined : input.soul?.report?.path;
  return [
    stable("identity", true, () => identity(input.soul), soulSource),
    stable("product_help", true, () => productHelp(toolNames)),
    stable("task_completion", anyTool && input.taskCompletionGuidance, () => TASK_COMPLETION),
    stable("parallel_tools", anyTool && input.parallelToolGuidance, () => PARALLEL_TOOLS),
    stable("tool_guidance", true, () => toolGuidance(toolNames, input.kanbanGuidance)),
    stable("steer_channel", anyTool, () => STEER_CHANNEL),
    stable("computer_use", toolNames.includes("computer_use"), () => COMPUTER_USE),
    stable("tool_enforcement", enforced, () => TOOL_ENFORCEMENT),
    stable("model_google", enforced && isGoogle(model), () => GOOGLE),
    stable("model_openai", enforced && isOpenAi(model), () => OPENAI),
    stable("skills_index", true, () => skillsIndex(input.skills ?? [], toolNames, { focus: codes && coding.focus })),
    stable("alibaba_model", input.provider === "alibaba", () => alibabaModel(model)),
    stable("env_hints", true, () => environmentHints(input)),
    stable("coding_brief", codes, () => codingBrief(model)),
    stable("operator_instructions", codes, () => operatorInstructions(coding?.instructions ?? "")),
    stable("python_probe", !isRemote(input), () => input.pythonLine ?? null),
    stable("profile", true, () => profileStatement(input)),
    stable("platform_hint", true, () =>
      platformHint(input.platform, { settings: input.platformHints, plugin: input.pluginHint, warn }),
    ),
    context("workspace_snapshot", coding?.active ? coding.workspace : null),
    context(
      "cwd",
      input.cwd === null || isRemote(input) ? null : `Current working directory: ${input.cwd.replace(/\p{Cc}/gu, " ")}`,
    ),
    context("system_message", input.systemMessage),
    context("context_files", input.contextFiles?.text),
    volatile("memory", () => input.memoryText),
    volatile("user_profile", () => input.userText),
    volatile("external_memory", () => input.externalMemory),
    volatile("session_line", () => sessionLine(input)),
  ];
}

const isRemote = (input: PromptInputs) => input.backend?.type === "remote";
