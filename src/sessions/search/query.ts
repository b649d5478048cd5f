// A sanitised query as terms and operators, and as a tree with FTS5's precedence: words side by side bind first, then NOT, AND, OR.

export type QueryPart =
  | { readonly type: "term"; readonly text: string; readonly prefix: boolean }
  | { readonly type: "operator"; readonly name: "AND" | "OR" | "NOT" };

export type Expression =
  | { readonly type: "term"; readonly text: string }
  | { readonly type: "and" | "or" | "not"; readonly left: Expression; readonly right: Expression };

export function splitQuery(sanitised: string): readonly QueryPart[] {
  return [...sanitised.matchAll(/"([^"]*)"\s*(\*?)|([^\s"]+)/g)].flatMap((match): QueryPart[] => {
    const [, phrase, star, word] = match;
    if (word === "AND" || word === "OR" || word === "NOT") return [{ type: "operator", name: word }];
    const prefix = star === "*" || (word?.endsWith("*") ?? false);
    const text = (phrase ?? word ?? "").replace(/\*+$/, "");
    return text.trim() === "" ? [] : [{ type: "term", text, prefix }];
  });
}

export const termsOf = (parts: readonly QueryPart[]) =>
  parts.flatMap((part) => (part.type === "term" ? [part.text] : []));

/** The terms whose presence makes a hit (not those behind a NOT): what a snippet marks. */
export function wantedTerms(parts: readonly QueryPart[]): readonly string[] {
  let negated = false;
  return parts.flatMap((part) => {
    if (part.type === "operator") negated = part.name === "NOT";
    return part.type === "term" && !negated ? [part.text] : [];
  });
}

/** Null when there is no term. Operators without two sides are passed over. */
export function parseQuery(parts: readonly QueryPart[]): Expression | null {
  let at = 0;
  const peekOperator = (name: string) => {
    const part = parts[at];
    return part?.type === "operator" && part.name === name;
  };

  function parseRun(): Expression | null {
    let run: Expression | null = null;
    for (let part = parts[at]; part?.type === "term"; part = parts[++at]) {
      run = join("and", run, { type: "term", text: part.text });
    }
    return run;
  }

  function parseLevel(name: "NOT" | "AND" | "OR", below: () => Expression | null): Expression | null {
    let left = below();
    while (peekOperator(name)) {
      at++;
      const right = below();
      if (left === null && name === "NOT") continue;
      left = join(name === "NOT" ? "not" : name === "AND" ? "and" : "or", left, right);
    }
    return left;
  }

  const parseNot = () => parseLevel("NOT", parseRun);
  const parseAnd = () => parseLevel("AND", parseNot);
  return parseLevel("OR", parseAnd);
}

function join(type: "and" | "or" | "not", left: Expression | null, right: Expression | null): Expression | null {
  if (left === null) return right;
  return right === null ? left : { type, left, right };
}

/** The same query for the trigram index: every term quoted, so that it matches anywhere inside a text. */
export function quoteAll(parts: readonly QueryPart[]): string {
  return parts.map((part) => (part.type === "operator" ? part.name : `"${part.text}"`)).join(" ");
}
