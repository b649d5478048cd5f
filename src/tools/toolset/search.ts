// What the bridges answer: tools that are not in the list, found by words, described, and why a call of one cannot go through.
import type { Config } from "../../home/config/schema.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { type DefinitionSource, toolDefinitions } from "./availability.ts";
import { toolError, toolResult } from "./dispatch.ts";
import type { ToolEntry } from "./registry.ts";
import { BRIDGES, missingArguments, objectOf, sourceOf } from "./search-split.ts";

const DESCRIPTION_CHARS = 400;
const MAX_HITS = 50;

type Arguments = Readonly<Record<string, unknown>>;

/** One session's view: looked up anew with every question, because servers come and go. */
interface SearchScope {
  readonly source: DefinitionSource;
  readonly settings: Config["tools"]["tool_search"];
  /** Tools of the session that are not in its list. */
  hidden(): readonly ToolEntry[];
  /** Any tool of the session, listed or not. */
  find(name: string): ToolEntry | undefined;
  /** Why a tool is not there now; null = nobody knows it. */
  explainMissing(name: string): Promise<string | null>;
}

/** The answer of a bridge. For `tool_call` it is always a refusal: a call that can go through was unwrapped before. */
export async function answerBridge(bridge: string, args: Arguments, scope: SearchScope): Promise<string> {
  if (bridge === "tool_search") return search(args, scope);
  const name = typeof args.name === "string" ? args.name.trim() : "";
  if (name === "") return toolError("name: say which tool; tool_search finds them.");
  const entry = scope.find(name);
  if (!entry || BRIDGES.has(name)) return unknown(name, scope);
  const description = await describe(entry, scope);
  if (!description) return unavailable(entry);
  if (bridge === "tool_describe") return toolResult(description);
  const inner = objectOf(args.arguments);
  const missing = inner ? missingArguments(entry, inner) : [];
  return toolError(
    missing.length > 0
      ? `${name} was not called: ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} missing in arguments.`
      : `${name} was not called: arguments must be one JSON object.`,
    { parameters: description.parameters },
  );
}

export function unavailable(entry: ToolEntry): string {
  const wanted = entry.traits.requiresEnv ?? [];
  const how = wanted.length > 0 ? ` It needs ${wanted.join(" or ")} in the .env file.` : "";
  return toolError(`${entry.name} is not available here now.${how}`);
}

async function search(args: Arguments, scope: SearchScope): Promise<string> {
  const query = typeof args.query === "string" ? args.query : "";
  const { search_default_limit, max_search_limit } = scope.settings;
  const most = Math.min(Math.max(1, max_search_limit), MAX_HITS);
  const wanted = typeof args.limit === "number" ? Math.trunc(args.limit) : search_default_limit;
  const limit = Math.min(Math.max(1, wanted), most);
  const hidden = scope.hidden();
  const ranked = rankTools(query, hidden.map(searched));
  const matches: object[] = [];
  // Asked in the order of the ranking and no further: each question may load a tool's file or look for a program.
  for (const { entry, name, description } of ranked) {
    if (matches.length === limit) break;
    if (!(await scope.source.availability.isAvailable(entry, scope.source.facts))) continue;
    matches.push({ name, ...sourceOf(entry.toolset), description: cut(description) });
  }
  if (matches.length > 0) return toolResult({ query, matches });
  const sources = Map.groupBy(hidden, ({ toolset }) => toolset);
  return toolResult({
    query,
    matches,
    available_sources: [...sources].map(([toolset, tools]) => ({ ...sourceOf(toolset), tools: tools.length })),
    hint: "Nothing fits these words. Try other words, or the name of a source.",
  });
}

function searched(entry: ToolEntry) {
  const properties = entry.parameters.properties;
  const parameterNames = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  const { source_name } = sourceOf(entry.toolset);
  // A server's own name is a word people search by.
  return {
    entry,
    name: entry.name,
    description: entry.traits.description,
    parameterNames: [...parameterNames, source_name],
  };
}

/** Null when the tool cannot be offered just now. */
async function describe(entry: ToolEntry, { source }: SearchScope) {
  const [definition] = await toolDefinitions([entry.name], source);
  if (!definition) return null;
  const { name, description, parameters } = definition.function;
  return { name, ...sourceOf(entry.toolset), description, parameters };
}

async function unknown(name: string, scope: SearchScope): Promise<string> {
  if (BRIDGES.has(name)) return toolError(`${name} is called directly, not through another tool.`);
  const missing = await scope.explainMissing(name);
  if (missing) return toolError(missing);
  const close = didYouMean(
    name,
    scope.hidden().map((entry) => entry.name),
  );
  return toolError(`There is no tool named "${name}" in this conversation.`, {
    hint: close.length > 0 ? `Did you mean ${close.join(", ")}?` : "tool_search finds tools by what they do.",
  });
}

function cut(text: string): string {
  const characters = [...text];
  return characters.length <= DESCRIPTION_CHARS ? text : `${characters.slice(0, DESCRIPTION_CHARS - 1).join("")}…`;
}

// Which tools fit a few words: BM25 over name, description and parameter names.

const K1 = 1.5;
const B = 0.75;

interface SearchedTool {
  readonly name: string;
  readonly description: string;
  readonly parameterNames: readonly string[];
}

/** The tools that have something to do with the query, best first; ties by name. Nothing by words: by a piece of text. */
export function rankTools<Tool extends SearchedTool>(query: string, tools: readonly Tool[]): Tool[] {
  const sorted = [...tools].sort((a, b) => (a.name < b.name ? -1 : 1));
  const wanted = [...new Set(words(query))];
  const scored = score(wanted, sorted).filter(({ points }) => points > 0);
  if (scored.length > 0) return scored.sort((a, b) => b.points - a.points).map(({ tool }) => tool);
  const text = query.trim().toLowerCase();
  if (text === "") return [];
  return sorted.filter((tool) => {
    const hay = `${tool.name}\n${tool.description}`.toLowerCase();
    return hay.includes(text) || wanted.some((word) => word.length > 2 && tool.name.toLowerCase().includes(word));
  });
}

function score<Tool extends SearchedTool>(wanted: readonly string[], tools: readonly Tool[]) {
  const documents = tools.map((tool) => countWords([tool.name, tool.description, ...tool.parameterNames].join(" ")));
  const average = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length);
  const weights = wanted.map((word) => {
    const holders = documents.filter(({ counts }) => counts.has(word)).length;
    return Math.log(1 + (documents.length - holders + 0.5) / (holders + 0.5));
  });
  return tools.map((tool, index) => {
    const { counts, length } = documents[index] as Document; // one per tool
    const points = wanted.reduce((sum, word, at) => {
      const times = counts.get(word) ?? 0;
      const weight = weights[at] ?? 0;
      return sum + (weight * times * (K1 + 1)) / (times + K1 * (1 - B + (B * length) / average));
    }, 0);
    return { tool, points };
  });
}

interface Document {
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

function countWords(text: string): Document {
  const all = words(text);
  const counts = new Map<string, number>();
  for (const word of all) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { counts, length: all.length };
}

/** Lower case; `create_issue`, `createIssue` and "create issue" are the same two words. */
function words(text: string): string[] {
  return (
    text
      .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}
