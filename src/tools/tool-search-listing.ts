// The catalogue inside tool_search's description: as much about the hidden tools as fits. Made once per session.

const CHARS_PER_TOKEN = 4;
const SHORT_CHARS = 60;

export interface ListedTool {
  readonly name: string;
  readonly description: string;
  /** What it is shown under: a toolset, a server. */
  readonly group: string;
  /** The name says enough. */
  readonly plain: boolean;
}

/** Form after form until one fits: with descriptions, names, the largest groups as a number, all groups so; empty when nothing fits. */
export function listTools(tools: readonly ListedTool[], maxTokens: number): string {
  const groups = [...Map.groupBy(tools, ({ group }) => group)].sort(([a], [b]) => (a < b ? -1 : 1));
  const bySize = [...groups].sort(([, a], [, b]) => b.length - a.length).map(([group]) => group);
  const forms = [
    () => render(groups, described),
    () => render(groups, named),
    ...bySize.map((_, count) => () => {
      const collapsed = new Set(bySize.slice(0, count + 1));
      return render(groups, (members, group) => (collapsed.has(group) ? counted(members) : named(members)));
    }),
  ];
  for (const form of forms) {
    const text = form();
    if (text.length <= maxTokens * CHARS_PER_TOKEN) return text;
  }
  return "";
}

type Groups = readonly (readonly [string, readonly ListedTool[]])[];

function render(groups: Groups, members: (tools: readonly ListedTool[], group: string) => string): string {
  // The only tool of a set of ours says what the set is.
  const label = (group: string, [first, second]: readonly ListedTool[]) =>
    first?.plain && !second ? "" : `${group}: `;
  return groups.map(([group, tools]) => `${label(group, tools)}${members(tools, group)}`).join("\n");
}

const counted = (tools: readonly ListedTool[]) => `${tools.length} ${tools.length === 1 ? "tool" : "tools"}`;
const named = (tools: readonly ListedTool[]) =>
  sorted(tools)
    .map(({ name }) => name)
    .join(", ");

function described(tools: readonly ListedTool[]): string {
  if (tools.every(({ plain }) => plain)) return named(tools);
  return sorted(tools)
    .map(({ name, description }) => `\n- ${name}: ${shorten(description)}`)
    .join("");
}

const sorted = (tools: readonly ListedTool[]) => [...tools].sort((a, b) => (a.name < b.name ? -1 : 1));

/** The first sentence, at most sixty characters of it. */
function shorten(description: string): string {
  const flat = description.replace(/\s+/g, " ").trim();
  const sentence = /^(.*?)[.!?](?:\s|$)/u.exec(flat)?.[1] ?? flat;
  const characters = [...sentence];
  return characters.length <= SHORT_CHARS
    ? sentence
    : `${characters
        .slice(0, SHORT_CHARS - 1)
        .join("")
        .trimEnd()}…`;
}
