// How to behave inside somebody's code.
import type { CodingReading } from "../contract.ts";

const BRIEF = `# Working in this code
You are the user's pair programmer inside their own code base.
- Read and search before you change anything; send look-ups together. Never invent files, symbols, APIs or imports: check that they exist.
- Change files with your tools instead of printing code for the user to paste.
- Follow the project's style and its context files. Do what was asked; no drive-by changes.
- If an edit does not apply, read the file again before the next try; after two failures rewrite the passage as a whole.
- Fix the cause, not the symptom, and look for the same fault in its siblings.
- Run the tests, the linter or the build before you say that it works. Stop after about three attempts at lint errors in one file and say what is left.
- The terminal keeps its state between calls (folder, variables).
- Keep a \`todo\` list for work of several steps. Point at code as \`path:line\`.
- No commit, push or rewriting of history unless asked. Leave secrets and credentials alone.
- The workspace snapshot may be out of date: ask git again before you rely on it.
- Be brief: what changed, how it was checked, what is open.`;

const PATCH_MODE: readonly string[] = ["gpt", "codex"];
const REPLACE_MODE: readonly string[] = [
  ...["claude", "sonnet", "opus", "haiku", "gemini", "gemma", "deepseek", "qwen", "kimi", "glm", "grok", "hermes"],
  ...["llama", "mistral", "devstral", "minimax"],
];

export function codingBrief(model: string): string {
  const id = model.toLowerCase();
  if (PATCH_MODE.some((part) => id.includes(part)))
    return `${BRIEF}\n- Make all edits with \`patch\` and \`mode='patch'\`.`;
  if (REPLACE_MODE.some((part) => id.includes(part)))
    return `${BRIEF}\n- Make edits with \`patch\` and \`mode='replace'\`.`;
  return BRIEF;
}

export function operatorInstructions(instructions: CodingReading["instructions"]): string | null {
  const text = typeof instructions === "string" ? instructions : instructions.join("\n");
  return text.trim() === "" ? null : `Operator instructions (from config):\n${text}`;
}
