// How much of one context file the prompt carries.
import { countCodePoints, sliceCodePoints } from "../../kit/code-points.ts";

const DEFAULT_LIMIT = 20_000;
const HIGHEST_LIMIT = 500_000;

export interface Limit {
  /** In code points. */
  readonly chars: number;
  readonly warning: string | null;
}

/** The user's own number, else 15 % of the model's window within bounds. Whole numbers throughout: `90 * 0.7` is 62.99... */
export function contextFileLimit(contextWindow: unknown, setting: unknown): Limit {
  if (typeof setting === "number" && Number.isFinite(setting) && Math.floor(setting) > 0)
    return { chars: Math.floor(setting), warning: null };
  const warning =
    setting === null || setting === undefined
      ? null
      : `context_file_max_chars in config.yaml is ignored: ${JSON.stringify(setting)} is not a positive number.`;
  const window = typeof contextWindow === "number" && Number.isSafeInteger(contextWindow) ? contextWindow : 0;
  const share = Math.floor((window * 15) / 100);
  return { chars: Math.max(DEFAULT_LIMIT, Math.min(share, HIGHEST_LIMIT)), warning };
}

export interface Cut {
  readonly text: string;
  /** Characters of the file that are in it. */
  readonly kept: number;
  readonly total: number;
}

/** First 70 % and last 20 % of the limit, with a marker between; a text within the limit as it is. */
export function truncateFile(text: string, limit: number, label: string): Cut {
  const total = countCodePoints(text);
  if (total <= limit) return { text, kept: total, total };
  const head = Math.floor((limit * 7) / 10);
  const tail = Math.floor((limit * 2) / 10);
  const marker = `\n\n[...truncated ${label}: kept ${head}+${tail} of ${total} chars. Use file tools to read the full file.]\n\n`;
  const end = tail === 0 ? "" : sliceCodePoints(text, -tail);
  return { text: sliceCodePoints(text, 0, head) + marker + end, kept: head + tail, total };
}
