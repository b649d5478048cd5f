// Which tools fit a few words: BM25 over name, description and parameter names.

const K1 = 1.5;
const B = 0.75;

export interface SearchedTool {
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
