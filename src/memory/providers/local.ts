// The memory provider that comes with the program: every turn is kept in a file of the home, and what fits a new question comes back.
import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { countCodePoints, sliceCodePoints, truncateCodePoints } from "../../kit/code-points.ts";
import type { MemoryProvider, ProviderPlace, ProviderSession } from "./contract.ts";
import { type Passage, Passages } from "./local/passages.ts";
import { queryTerms } from "./local/terms.ts";

const RECALLED = 5;
const PASSAGE_CHARS = 400;
const RECALL_CHARS = 2000;
/** Of one side of a turn; more is read in the session itself. */
const KEPT_CHARS = 8000;

export function localProvider(place: ProviderPlace): MemoryProvider {
  const path = place.paths.at("memory-local.db");
  let passages: Passages | null = null;
  let about: ProviderSession | null = null;
  /** The conversation under all the names it had. */
  const own = new Set<string>();

  const database = () => {
    passages ??= new Passages(path);
    return passages;
  };
  const mayWrite = () => about?.agentContext === "primary";

  return {
    name: "local",
    isAvailable: () => true,
    async initialize(sessionId, given) {
      about = given;
      own.add(sessionId);
      if (given.parentSessionId) own.add(given.parentSessionId);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      database();
    },
    systemPromptBlock: () =>
      "External memory: local. Passages of earlier conversations that fit the user's message come with it as memory context. For more use " +
      "recall_search; recall_forget removes a passage that the user wants gone.",
    prefetch: (query) => renderRecall(database().related(query, { not: own, limit: RECALLED }), query),
    syncTurn(user, assistant, { sessionId }) {
      if (!mayWrite()) return;
      const text = `User: ${truncateCodePoints(user, KEPT_CHARS, "...")}\nYou: ${truncateCodePoints(assistant, KEPT_CHARS, "...")}`;
      database().add({ kind: "turn", sessionId, text, at: place.clock.now() / 1000, profile: identity(about) });
    },
    onMemoryWrite(action, target, content, meta) {
      if (!mayWrite()) return;
      const stale = action === "add" ? [] : database().entriesWith(target, meta.old_text ?? "");
      for (const id of stale) database().remove(id);
      if (content === "") return;
      const at = place.clock.now() / 1000;
      const sessionId = meta.session_id;
      database().add({ kind: "memory", sessionId, text: content, at, profile: identity(about), target });
    },
    onSessionSwitch(newSessionId, { reset }) {
      if (reset) own.clear();
      own.add(newSessionId);
    },
    getToolSchemas: () => TOOLS,
    handleToolCall(name, args) {
      if (name === "recall_search") return search(database(), args);
      if (name === "recall_forget") return forget(database(), args);
      throw new Error(`the local memory has no tool "${name}"`);
    },
    getConfigSchema: () => [],
    async status() {
      const size = await sizeOf(path);
      if (size === null) return [`${path}: nothing kept yet`];
      const { turns, entries } = database().count();
      return [
        `${path}: ${Math.ceil(size / 1024)} KB, ${count(turns, "turn")}, ${count(entries, "memory entry", "memory entries")}`,
      ];
    },
    backupPaths: () => [path],
    shutdown() {
      passages?.close();
      passages = null;
    },
  };
}

const identity = (about: ProviderSession | null) => about?.agentIdentity ?? "default";

const TOOLS = [
  {
    name: "recall_search",
    description:
      'Search passages of earlier conversations and mirrored memory entries. Words are combined with AND; OR, NOT, "phrases" and prefix* work.',
    parameters: {
      type: "object",
      properties: {
        query: { type: "string" },
        limit: { type: "integer", minimum: 1, maximum: 20, description: "Default 5" },
      },
      required: ["query"],
    },
  },
  {
    name: "recall_forget",
    description: "Remove one passage for good, by the id that recall_search shows. Only when the user wants it gone.",
    parameters: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
  },
];

function search(passages: Passages, args: Readonly<Record<string, unknown>>) {
  const query = typeof args.query === "string" ? args.query : "";
  if (query.trim() === "") return { success: false, error: "recall_search needs a query." };
  const limit = Math.min(20, Math.max(1, Math.trunc(Number(args.limit ?? 5)) || 5));
  const results = passages.search(query, limit).map((passage) => ({
    id: passage.id,
    kind: passage.kind,
    date: dayOf(passage.at),
    session_id: passage.session_id,
    text: excerpt(passage.text, query),
  }));
  return { success: true, query, count: results.length, results };
}

function forget(passages: Passages, args: Readonly<Record<string, unknown>>) {
  const id = Number(args.id);
  if (!Number.isInteger(id)) return { success: false, error: "recall_forget needs the id of a passage." };
  if (passages.remove(id)) return { success: true, id, message: "Forgotten." };
  return { success: false, error: `There is no passage ${id}.` };
}

function renderRecall(passages: readonly Passage[], query: string): string {
  let room = RECALL_CHARS;
  const lines: string[] = [];
  for (const passage of passages) {
    const line = truncateCodePoints(`[${dayOf(passage.at)}] ${excerpt(passage.text, query)}`, PASSAGE_CHARS, "...");
    room -= countCodePoints(line) + 2;
    if (room < 0) break;
    lines.push(line);
  }
  return lines.join("\n\n");
}

/** Of a long passage the part around the first hit. */
function excerpt(text: string, query: string): string {
  const flat = text.replace(/\s+/g, " ").trim();
  const room = PASSAGE_CHARS - 20;
  if (countCodePoints(flat) <= room) return flat;
  const lower = flat.toLowerCase();
  const hits = queryTerms(query).flatMap((term) => {
    const at = lower.indexOf(term);
    return at < 0 ? [] : [at];
  });
  const first = hits.length === 0 ? 0 : countCodePoints(flat.slice(0, Math.min(...hits)));
  const start = Math.max(0, Math.min(first - 80, countCodePoints(flat) - room));
  const cut = sliceCodePoints(flat, start, start + room - 6);
  return `${start > 0 ? "..." : ""}${cut}${start + room - 6 < countCodePoints(flat) ? "..." : ""}`;
}

const dayOf = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 10);

const count = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

async function sizeOf(path: string): Promise<number | null> {
  return stat(path).then(
    (facts) => facts.size,
    () => null,
  );
}
