// One line about a call, for whoever watches.

const WIDTH = 80;

/** The argument that says most about a call of this tool. */
const TELLING: Readonly<Record<string, readonly string[]>> = {
  terminal: ["command"],
  process: ["action", "session_id"],
  read_file: ["path"],
  write_file: ["path"],
  patch: ["path", "patch"],
  search_files: ["pattern", "path"],
  web_search: ["query"],
  web_extract: ["urls", "url"],
  session_search: ["query"],
  execute_code: ["code"],
  clarify: ["question"],
  delegate_task: ["goal"],
  memory: ["action", "target"],
  skill_view: ["name"],
  skill_manage: ["action", "name"],
};

export function previewCall(name: string, args: Readonly<Record<string, unknown>>): string {
  const telling = (TELLING[name] ?? []).flatMap((key) => describe(args[key]));
  const words = telling.length > 0 ? telling : Object.values(args).flatMap(describe).slice(0, 1);
  const points = [...words.join(" ").replace(/\s+/g, " ").trim()];
  return points.length <= WIDTH ? points.join("") : `${points.slice(0, WIDTH - 1).join("")}…`;
}

function describe(value: unknown): readonly string[] {
  if (typeof value === "string") return value.trim() === "" ? [] : [value];
  if (typeof value === "number" || typeof value === "boolean") return [String(value)];
  return Array.isArray(value) ? value.flatMap(describe).slice(0, 3) : [];
}
