// Ctrl+R: what was typed before, narrowed by typing.
import type { InputLine } from "./input-line.ts";
import type { Questions } from "./questions.ts";

const MOST = 200;

export async function searchHistory(input: InputLine, questions: Questions): Promise<void> {
  const entries = input.history.matching(input.draft).slice(0, MOST);
  if (entries.length === 0) return;
  const choices = entries.map((entry) => ({ label: entry.replace(/\s+/g, " "), value: entry }));
  const chosen = await questions.pick("History", choices, { filter: true });
  if (chosen !== null) input.draft = chosen;
}
