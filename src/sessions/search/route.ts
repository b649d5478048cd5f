// Which index answers a query. Words go to the main index; scripts without blanks and parts of words to the trigram index, which knows
// no term under three characters; the rest is looked for row by row.
import { countCodePoints } from "../../kit/code-points.ts";
import { countCjk } from "./cjk.ts";
import { type QueryPart, termsOf } from "./query.ts";

/** What the main index has words of. */
const INDEXED = /[\p{L}\p{N}]/u;

export type Route = "words" | "trigram" | "scan";

export interface RouteFacts {
  readonly trigram: boolean;
  readonly roleFilter?: readonly string[];
}

export function chooseRoute(parts: readonly QueryPart[], facts: RouteFacts): Route {
  const terms = termsOf(parts);
  if (terms.some((term) => !INDEXED.test(term))) return "scan";
  if (!terms.some((term) => countCjk(term) > 0)) return "words";
  const fits = terms.every((term) => countCodePoints(term) >= 3 && (countCjk(term) === 0 || countCjk(term) >= 3));
  return facts.trigram && fits && !facts.roleFilter?.includes("tool") ? "trigram" : "scan";
}

/** Words that found nothing may stand inside other text (`youer` in `修改youer服务端`). */
export function mayRetryOnTrigram(parts: readonly QueryPart[], facts: RouteFacts): boolean {
  return facts.trigram && termsOf(parts).every((term) => countCodePoints(term) >= 3);
}
