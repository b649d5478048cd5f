// Models that tend to describe what they would do, instead of doing it, are told so.

const AUTO_FAMILIES = ["gpt", "codex", "gemini", "gemma", "grok", "glm", "qwen", "deepseek"];

export const TOOL_ENFORCEMENT = `# Tool-use enforcement
Act through your tools; do not describe what you would do. When you say that you will do something, make the call in the same response. Never end a response on a promise of future action: do it now. Keep going until the task is really finished. Each response either moves the work forward with tool calls or delivers the final result; one that only announces intentions is not acceptable.`;

export const GOOGLE = `# Google model operational directives
- Use absolute paths in file operations.
- Look at a file before you change it; never guess what it contains.
- Check package manifests before you import a library; do not assume that it is there.
- Keep explanations to a few sentences; results count.
- Pass flags that keep commands from asking (-y, --yes, --non-interactive).
- Send independent calls together in one response.
- Carry on until the task is solved; do not stop at a plan.`;

export const OPENAI = `# Execution discipline
<tool_persistence>
Use tools whenever they make the answer more correct or complete. An empty or partial result is a reason to try another query or another way, not to give up. Stop only when the task is done and you have checked the result.
</tool_persistence>
<mandatory_tool_use>
Never answer these from your head: arithmetic, hashes and encodings, the current time or date, the state of this system (processes, memory, disk, ports), contents and sizes of files, git history and status, facts about the present. Your memory describes the user, not the machine you are running on.
</mandatory_tool_use>
<act_dont_ask>
When a request has an obvious reading, act on it instead of asking. Ask only when the answer would change which tool you call.
</act_dont_ask>
<prerequisite_checks>
Before you act, look whether something has to be found out or prepared first. Do not skip such steps because the last one seems obvious.
</prerequisite_checks>
<verification>
Before you finish, check: does the result meet every requirement (correctness)? is every claim backed by tool output or given context (grounding)? does it have the form that was asked for (format)? if the next step has effects outside, is its scope confirmed (side-effects)?
</verification>
<missing_context>
Do not guess what you can look up. If something is missing and cannot be found, ask, or go on with an assumption and label it as one.
</missing_context>`;

export function enforcesTools(setting: boolean | string | readonly unknown[], model: string): boolean {
  const id = model.toLowerCase();
  if (Array.isArray(setting)) {
    return setting.some((part) => typeof part === "string" && id.includes(part.toLowerCase()));
  }
  const word = String(setting).toLowerCase();
  if (["true", "always", "yes", "on"].includes(word)) return true;
  if (["false", "never", "no", "off"].includes(word)) return false;
  return AUTO_FAMILIES.some((family) => id.includes(family));
}

const contains = (model: string, parts: readonly string[]) => parts.some((part) => model.toLowerCase().includes(part));

export const isGoogle = (model: string) => contains(model, ["gemini", "gemma"]);
export const isOpenAi = (model: string) => contains(model, ["gpt", "codex", "grok"]);
