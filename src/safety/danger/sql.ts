import type { Invocation, Stage } from "../analysis/invocation.ts";
import { oncePerScene, type Rule, type RuleGroup } from "../scene.ts";

/** They show or store text; SQL in their arguments does nothing. */
const READERS = new Set("grep egrep fgrep rg ag ack git gh man less head tail wc test [ [[ hermes".split(" "));
const PRINTERS = new Set(["echo", "printf", "cat"]);

const DROP = /\bDROP\s+(?:TABLE|DATABASE|SCHEMA)\b/i;
const DELETE = /\bDELETE\s+FROM\s+[\w"'`[.]/i;
const TRUNCATE = /\bTRUNCATE\s+(?:TABLE\s+)?["'`[]?\w/i;
const TRUNCATE_OF_PROSE = /\bTRUNCATE\s+TABLE\s+["'`[]?\w/i;

/** Texts that may reach a database: arguments and heredocs of whatever is not known to only show them. */
const texts = oncePerScene((scene) =>
  scene.pipelines.flatMap((stages) =>
    stages.flatMap((stage, index) =>
      stage.filter((invocation) => reaches(invocation, stages[index + 1])).flatMap(textsOf),
    ),
  ),
);

function reaches({ program }: Invocation, next: Stage | undefined): boolean {
  if (READERS.has(program)) return false;
  if (!PRINTERS.has(program)) return true;
  return next?.some((consumer) => !READERS.has(consumer.program)) ?? false;
}

function textsOf(invocation: Invocation): readonly string[] {
  if (
    invocation.program === "truncate" &&
    invocation.args.some(({ text }) => /^(?:-[a-z]*[sr]|--(?:size|reference))/.test(text))
  ) {
    return [];
  }
  const line = [invocation.path, ...invocation.args.map(({ text }) => text)].join(" ");
  const inputs = invocation.redirects.flatMap(({ operator, heredoc, target }) => {
    if (heredoc) return [heredoc.body];
    return operator === "<<<" ? [target] : [];
  });
  return [line, ...inputs];
}

const sqlRule = (key: string, test: (text: string) => boolean): Rule => ({
  key,
  matches: (scene) => texts(scene).some(test),
});

const deletesEverything = (text: string) =>
  text.split("\n").some((line) => DELETE.test(line) && !/\bWHERE\b/i.test(line));

/** Lower-case "truncate x" is everyday prose unless a table is named or it is the whole command. */
const truncates = (text: string) =>
  TRUNCATE_OF_PROSE.test(text) ||
  /\bTRUNCATE\s+["'`[]?\w/.test(text) ||
  (/^truncate\s/i.test(text) && TRUNCATE.test(text));

export const sql: RuleGroup = {
  reason: "removes data from a database",
  rules: [
    sqlRule("SQL DROP", (text) => DROP.test(text)),
    sqlRule("SQL DELETE without WHERE", deletesEverything),
    sqlRule("SQL TRUNCATE", truncates),
  ],
};
