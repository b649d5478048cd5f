// A default session on the command line, as the prompt builder sees it.
import type { PromptInputs } from "../../src/prompt/contract.ts";
import type { SkillCategory } from "../../src/skills/visible.ts";

export const promptInputs: PromptInputs = {
  soul: null,
  model: "claude-x",
  provider: "anthropic",
  platform: "cli",
  toolNames: ["terminal", "session_search"],
  toolUseEnforcement: "auto",
  taskCompletionGuidance: true,
  parallelToolGuidance: true,
  hostName: "Linux (6.1)",
  userHome: "/home/ada",
  environmentHint: "",
  profile: "default",
  rootHome: "~/.hermes",
  profileHome: "~/.hermes",
  cwd: "/home/ada/project",
  systemMessage: null,
  memoryText: null,
  userText: null,
  startedOn: { year: 2026, month: 1, day: 5 },
  rebuiltOn: null,
  sessionId: null,
};

export const DEFAULT_TOOLS: readonly string[] = [
  ...["clarify", "cronjob", "delegate_task", "execute_code", "memory", "patch", "process", "read_file", "search_files"],
  ...["session_search", "skill_manage", "skill_view", "skills_list", "terminal", "todo", "web_extract", "web_search"],
  "write_file",
];

const TOPICS: readonly (readonly [category: string, skill: string, description: string])[] = [
  ["github", "pr-workflow", "Open, review and merge pull requests with the gh CLI"],
  ["github", "code-review", "Review a diff for bugs, style and missing tests before merge"],
  ["hermes", "hermes-agent", "Set up, configure and troubleshoot Hermes Agent itself"],
  ["media", "youtube-notes", "Turn a video into a summary with chapters and time stamps"],
  ["note-taking", "obsidian", "Read, search and write notes in an Obsidian vault"],
  ["productivity", "google-calendar", "List, create and move events in Google Calendar"],
  ["research", "arxiv", "Search arXiv and summarise papers with citations"],
  ["software-development", "systematic-debugging", "Find root causes step by step before changing any code"],
  ["software-development", "test-driven-development", "Write the failing test first, then the smallest fix"],
  ["writing", "plain-language", "Rewrite text in short, clear sentences without jargon"],
];

/** `count` skills, about as long as real ones. */
export function someSkills(count: number): readonly SkillCategory[] {
  const categories = new Map<string, { name: string; description: string }[]>();
  for (let index = 0; index < count; index++) {
    const [category, skill, description] = TOPICS[index % TOPICS.length] ?? ["general", "skill", ""];
    const round = Math.floor(index / TOPICS.length);
    const list = categories.get(category) ?? [];
    categories.set(category, list);
    list.push({ name: round === 0 ? skill : `${skill}-${round}`, description });
  }
  return [...categories].map(([name, skills]) => ({ name, description: "", skills }));
}
