// Where the offers of Tab come from: the commands of this moment, models, personalities, titles, skills, files of the project.
import type { OpenAgent } from "../../agent/opened.ts";
import type { CommandRegistry } from "../../commands/registry.ts";
import type { MenuSkill } from "../../commands/skill-menu.ts";
import type { ChatRequest } from "../chat-request.ts";
import type { CompletionSources } from "./completion.ts";
import { ProjectFiles } from "./project-files.ts";

export interface Completing {
  readonly request: ChatRequest;
  /** Null until it is open. */
  conversation(): OpenAgent | null;
  commands(): CommandRegistry;
}

const MOST_TITLES = 50;

export function completionSources(screen: Completing): CompletionSources {
  const { cwd, clock } = screen.request;
  const files = new ProjectFiles(cwd, () => clock.now());
  return {
    commands: () => screen.commands().all(),
    values: (command) => valuesOf(command, screen),
    skills: () => skillCommands(screen),
    files: () => files.list(),
    cwd,
  };
}

export async function skillCommands({ request, conversation, commands }: Completing): Promise<readonly MenuSkill[]> {
  const open = conversation();
  if (!open) return [];
  const { menuSkills } = await import("../../commands/skill-menu.ts");
  return menuSkills({ conversation: open, platform: request.platform }, commands());
}

function valuesOf(command: string, { request, conversation }: Completing): Promise<readonly string[]> | null {
  const open = conversation();
  if (!open) return null;
  if (command === "model") return open.knownModels().then((rows) => rows.map((row) => row.model));
  if (command === "personality")
    return Promise.resolve([...Object.keys(request.home.config().agent.personalities).sort(), "none"]);
  if (command !== "resume") return null;
  const listed = open.store.list({ limit: MOST_TITLES, orderByLastActive: true, minMessageCount: 1 });
  return listed.then((sessions) => sessions.flatMap(({ title }) => (title ? [title] : [])));
}
