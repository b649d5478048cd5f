// `context_length_cache.yaml`: windows that servers named when they refused a request. The file itself comes in as a port.
import type { LearnedLimits } from "./context-length.ts";

export interface TextFile {
  /** Null when it does not exist. */
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
}

/** A file that cannot be understood counts as empty and is replaced by the next thing learned. */
export function learnedLimits(file: TextFile): Pick<LearnedLimits, "get" | "set"> {
  return {
    async get(baseUrl, model) {
      return (await readAll(file)).get(keyOf(baseUrl, model)) ?? null;
    },
    async set(baseUrl, model, tokens) {
      const { stringify } = await import("yaml");
      const limits = await readAll(file);
      limits.set(keyOf(baseUrl, model), tokens);
      await file.write(stringify({ context_lengths: Object.fromEntries(limits) }));
    },
  };
}

async function readAll(file: TextFile): Promise<Map<string, number>> {
  const source = await file.read();
  if (!source) return new Map();
  const { parseDocument } = await import("yaml");
  const document = parseDocument(source);
  const root: unknown = document.errors.length > 0 ? null : document.toJS();
  const table = typeof root === "object" && root !== null && "context_lengths" in root ? root.context_lengths : null;
  const entries = typeof table === "object" && table !== null ? Object.entries(table) : [];
  return new Map(entries.filter((entry): entry is [string, number] => Number.isInteger(entry[1]) && entry[1] >= 1024));
}

function keyOf(baseUrl: string, model: string): string {
  return `${model}@${baseUrl.replace(/\/+$/, "")}`;
}
