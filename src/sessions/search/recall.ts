// A question about the past, in plain words: the conversations that answer it, best first. One ranking for every door.
import type { StoreCore } from "../core.ts";
import { lineageOf } from "../lineage.ts";
import { decodeText, plainText } from "../sessions.ts";
import type { RecalledConversation, RecallOptions, RecallResult, SearchHit } from "../store.ts";
import { escapeLike } from "../titles.ts";
import { type AskedIndex, askIndex } from "./ask.ts";
import { intersect } from "./blankless.ts";
import { followMessages, KINDS, kindOf } from "./follow.ts";
import { byNearness } from "./near.ts";
import { hasOperators } from "./query.ts";
import { type RankedGroup, rankGroups } from "./rank.ts";
import { type Found, type FoundRows, findRows, readHits } from "./search.ts";
import { makePassage } from "./snippet.ts";
import type { TermIndex } from "./term-index.ts";
import { favourOf, isWithin, type ReadTimes, saidWithin, type TimeReading } from "./times.ts";
import { type AskedWord, isSubject, readText } from "./words.ts";

/** Rows with all the words that are looked at. */
const STRICT_ROWS = 300;
/** Conversations of the ranking that are looked at. */
const RANKED = 60;
/** Jobs that run by the clock say the same every day; they come after what people said. */
const SCHEDULED = "cron";

export async function recallConversations(
  core: StoreCore,
  question: string,
  options: RecallOptions,
): Promise<RecallResult> {
  const { limit = 10, sort = null } = options;
  const index = await followMessages(core, options.onIndexing);
  const asked = hasOperators(question)
    ? null
    : withTitles(core, index, askIndex(index, question, core.clock.now(), scopeOf(index, options)));
  const strict =
    asked && nobodySaidAll(index, question, options)
      ? NOTHING_STRICT
      : await findRows(core, question, { ...options, limit: STRICT_ROWS, sort });
  if (strict.unavailable !== undefined) return { conversations: [], unavailable: strict.unavailable };
  const exact = await core.read(() => groupByConversation(core, strict.found));
  const ranked = asked === null ? [] : await core.read(() => settle(core, index, asked, options));
  const place = new Map(ranked.map(({ root }, at) => [root, at]));
  const order = (root: string) => place.get(root) ?? ranked.length;
  if (asked !== null && sort === null) exact.sort((a, b) => order(a.root) - order(b.root));
  const known = new Set(exact.map(({ root }) => root));
  const literal: Draft[] = exact.map(({ root, found }) => ({
    ...{ root, found, relaxed: false },
    ranked: ranked[order(root)]?.group ?? null,
  }));
  const others: Draft[] = inOrder(ranked.filter(({ root }) => !known.has(root)).slice(0, limit), sort ?? null).map(
    ({ root, found, group }) => ({ root, found: [found], relaxed: true, ranked: group }),
  );
  const time = asked?.time ?? null;
  const asking = new Set(ranked.flatMap(({ root, asks }) => (asks ? [root] : [])));
  const isAnswer = ({ root, found }: Draft) =>
    !asking.has(root) && (!time || found.some(({ timestamp }) => isWithin(time, timestamp)));
  const drafts = asked && sort === null ? answersFirst(literal, others, isAnswer, order) : [...literal, ...others];
  const chosen = scheduledLast(core, drafts).slice(0, limit);
  const conversations = await describe(core, chosen, { terms: strict.terms, asked, options });
  return {
    conversations,
    ...(strict.indexRebuild ? { indexRebuild: strict.indexRebuild } : {}),
    ...(time
      ? {
          time: {
            phrase: time.phrase,
            from: time.from,
            to: time.to,
            empty: !chosen.some(({ found, ranked }) => reachesInto(time, found, ranked)),
          },
        }
      : {}),
    ...(asked && asked.typed.length > 0 ? { readAs: asked.typed } : {}),
  };
}

const reachesInto = (time: TimeReading, found: readonly Found[], ranked: RankedGroup | null) =>
  saidWithin(ranked?.favour ?? 1) || found.some(({ timestamp }) => isWithin(time, timestamp));

/**
 * All the words of a question are no answer where they only ask the same; and "we met last week", said at another time, is not meant by a
 * question about last week.
 */
function answersFirst(
  literal: readonly Draft[],
  others: readonly Draft[],
  isAnswer: (draft: Draft) => boolean,
  order: (root: string) => number,
): readonly Draft[] {
  const meant = literal.filter(isAnswer);
  const rest = [...literal.filter((draft) => !meant.includes(draft)), ...others];
  return [...meant, ...rest.sort((a, b) => order(a.root) - order(b.root))];
}

const NOTHING_STRICT: FoundRows = { found: [], terms: [], route: "none" };

/** Among what was spoken, no single message has all the words: then the exact search, which is slower for common words, can be left out. */
function nobodySaidAll(index: TermIndex, question: string, { roleFilter }: RecallOptions): boolean {
  if (!roleFilter?.every((role) => kindOf(role) <= KINDS.assistant)) return false;
  const terms = [...readText(question).terms.keys()].filter((term) => !term.startsWith("="));
  const lists = terms.map((term) => index.postings(term).places).sort((a, b) => a.length - b.length);
  return lists.length > 0 && lists.reduce(intersect).length === 0;
}

function withTitles(core: StoreCore, index: TermIndex, asked: AskedIndex): AskedIndex {
  const titles = titledGroups(core, index, asked.words);
  const evidence = asked.evidence.map((word, at) => ({ ...word, titled: titles[at] ?? new Set<number>() }));
  return { ...asked, evidence };
}

interface Settled {
  readonly root: string;
  readonly group: RankedGroup;
  readonly found: Found;
  readonly at: number;
  /** What was found in it asks, too. */
  readonly asks: boolean;
}

/** The ranking, each conversation once, without what was taken back. */
function settle(core: StoreCore, index: TermIndex, asked: AskedIndex, options: RecallOptions): Settled[] {
  const texts = index.texts();
  const favour = asked.time ? favourOf(asked.time) : null;
  const request = {
    ...{ texts, words: asked.evidence, limit: RANKED },
    ...scopeOf(index, options),
    ...(favour ? { favour } : {}),
  };
  const subjects = asked.words.flatMap((word, at) => (isSubject(word) ? [at] : []));
  let ranked = subjects.length === 0 && asked.time ? withinTime(index, asked.time, request) : rankGroups(request);
  const hidden = hiddenPlaces(core, index, ranked);
  if (hidden.size > 0) ranked = rankGroups({ ...request, hidden });
  ranked = byNearness(ranked, { texts, asked, read: (ids) => readTexts(core, ids) });
  if (asked.time && !asked.time.guessed) ranked = withTimelyLifted(ranked, new Set(subjects));
  const settled = new Map<string, Settled>();
  for (const group of ranked) {
    if (subjects.length > 0 && !group.matched.some((word) => subjects.includes(word))) continue;
    const session = index.groupId(group.group);
    const root = lineageOf(core, session)[0] ?? session;
    if (settled.has(root) || group.place < 0) continue;
    const at = texts.at[group.place] ?? 0;
    settled.set(root, {
      root,
      group,
      at,
      asks: texts.asks[group.place] === 1,
      found: { id: texts.id[group.place] ?? 0, timestamp: at },
    });
  }
  return lastOrFirst([...settled.values()], asked.times.wanted);
}

/** What was said in the named time stands before all that has no other word of the question, however often it has them. */
function withTimelyLifted(ranked: readonly RankedGroup[], subjects: ReadonlySet<number>): readonly RankedGroup[] {
  const others = ranked.filter(({ favour }) => !saidWithin(favour));
  const lifted = ranked.map((group) => {
    if (!saidWithin(group.favour)) return group;
    const beaten = others.filter(({ matched }) =>
      matched.every((word) => group.matched.includes(word) || !subjects.has(word)),
    );
    return { ...group, score: Math.max(group.score, ...beaten.map(({ score }) => score)) };
  });
  const within = ({ favour }: RankedGroup) => (saidWithin(favour) ? 1 : 0);
  return lifted.sort((a, b) => b.score - a.score || within(b) - within(a));
}

function scopeOf(index: TermIndex, options: RecallOptions) {
  const { roleFilter, sourceFilter, excludeSources } = options;
  const without = new Set<number>();
  if (excludeSources?.length) for (const group of index.groupsOf(excludeSources, "only")) without.add(group);
  if (sourceFilter) for (const group of index.groupsOf(sourceFilter, "without")) without.add(group);
  return { ...(roleFilter ? { kinds: new Set(roleFilter.map(kindOf)) } : {}), without };
}

/** A question about nothing but a time is answered with what was said then, the newest first. */
function withinTime(index: TermIndex, { from, to }: TimeReading, { kinds, without }: ReturnType<typeof scopeOf>) {
  const texts = index.texts();
  const first = new Map<number, number>();
  for (let place = 0; place < texts.count; place++) {
    const at = texts.at[place] ?? 0;
    const group = texts.group[place] ?? 0;
    if ((from !== null && at < from) || (to !== null && at >= to) || first.has(group) || without.has(group)) continue;
    if (!kinds || kinds.has(texts.kind[place] ?? 0)) first.set(group, place);
  }
  return [...first]
    .map(
      ([group, place]): RankedGroup => ({
        group,
        place,
        score: texts.at[place] ?? 0,
        matched: [],
        favour: Number.POSITIVE_INFINITY,
        best: [],
      }),
    )
    .sort((a, b) => b.score - a.score)
    .slice(0, RANKED);
}

/** Texts that were taken back since they were indexed, of conversations where that ever happened. */
function hiddenPlaces(core: StoreCore, index: TermIndex, ranked: readonly RankedGroup[]): ReadonlySet<number> {
  const { messageColumns, sessionColumns } = core.shape;
  if (!messageColumns.has("active") || !sessionColumns.has("rewind_count")) return new Set();
  const sessions = JSON.stringify(ranked.map(({ group }) => index.groupId(group)));
  const rows = core.db.all<{ id: number }>(
    `SELECT m.id FROM json_each(?) CROSS JOIN sessions s ON s.id = json_each.value CROSS JOIN messages m ON m.session_id = s.id
     WHERE s.rewind_count > 0 AND m.active = 0 ${messageColumns.has("compacted") ? "AND m.compacted = 0" : ""}`,
    sessions,
  );
  const ids = new Set(rows.map(({ id }) => id));
  const places = new Set<number>();
  const texts = index.texts();
  for (let place = 0; ids.size > 0 && place < texts.count; place++)
    if (ids.has(texts.id[place] ?? 0)) places.add(place);
  return places;
}

/** "When did I last …": of those that hold as much of the question as the best one, the last is meant; not one where that was only asked. */
function lastOrFirst(settled: Settled[], wanted: ReadTimes["wanted"]): Settled[] {
  const best = settled.find(({ asks }) => !asks) ?? settled[0];
  if (wanted === null || !best) return settled;
  const asMuch = settled.filter(
    ({ group, asks }) =>
      asks === best.asks &&
      group.score >= 0.6 * best.group.score &&
      best.group.matched.every((word) => group.matched.includes(word)),
  );
  return [...inOrder(asMuch, wanted), ...settled.filter((one) => !asMuch.includes(one))];
}

function inOrder(settled: readonly Settled[], sort: "newest" | "oldest" | null): readonly Settled[] {
  if (sort === null) return settled;
  return settled.toSorted((a, b) => (sort === "newest" ? b.at - a.at : a.at - b.at));
}

/** Of each word the groups whose title has it. Titles are few and change, so they are read as they are. */
function titledGroups(core: StoreCore, index: TermIndex, words: readonly AskedWord[]): readonly ReadonlySet<number>[] {
  const found = words.map(() => new Set<number>());
  const subjects = words.flatMap((word, at) => (isSubject(word) ? [{ at, terms: word.terms }] : []));
  const parts = subjects.flatMap(({ terms }) => terms.filter(({ share }) => share > 0.3).map(({ term }) => term));
  if (parts.length === 0) return found;
  // A stem may end otherwise than its word.
  const patterns = parts.map((term) => `%${escapeLike(/^[a-z]{4,}i$/.test(term) ? term.slice(0, -1) : term)}%`);
  const rows = core.db.all<{ id: string; title: string }>(
    `SELECT id, title FROM sessions WHERE title IS NOT NULL AND (${patterns.map(() => "title LIKE ? ESCAPE '\\'").join(" OR ")}) LIMIT 500`,
    ...patterns,
  );
  for (const { id, title } of rows) {
    const group = index.groupOrd(id);
    const { terms } = readText(title);
    if (group === null) continue;
    for (const subject of subjects)
      if (subject.terms.some(({ term, share }) => share > 0.3 && terms.has(term))) found[subject.at]?.add(group);
  }
  return found;
}

// From rows to conversations.

interface Draft {
  readonly root: string;
  readonly found: readonly Found[];
  readonly relaxed: boolean;
  readonly ranked: RankedGroup | null;
}

function groupByConversation(core: StoreCore, found: readonly Found[]): { root: string; found: Found[] }[] {
  const rows = core.db.all<{ id: number; session: string }>(
    "SELECT m.id, m.session_id AS session FROM json_each(?) CROSS JOIN messages m ON m.id = json_each.value",
    JSON.stringify(found.map(({ id }) => id)),
  );
  const sessionOf = new Map(rows.map(({ id, session }) => [id, session]));
  const roots = new Map<string, string>();
  const grouped = new Map<string, Found[]>();
  for (const one of found) {
    const session = sessionOf.get(one.id);
    if (session === undefined) continue;
    const root = roots.get(session) ?? lineageOf(core, session)[0] ?? session;
    roots.set(session, root);
    const list = grouped.get(root);
    if (list) list.push(one);
    else grouped.set(root, [one]);
  }
  return [...grouped].map(([root, list]) => ({ root, found: list }));
}

function scheduledLast(core: StoreCore, drafts: readonly Draft[]): readonly Draft[] {
  const sources = core.db.all<{ id: string }>(
    "SELECT s.id FROM json_each(?) CROSS JOIN sessions s ON s.id = json_each.value WHERE s.source = ?",
    JSON.stringify(drafts.map(({ root }) => root)),
    SCHEDULED,
  );
  if (sources.length === 0) return drafts;
  const scheduled = new Set(sources.map(({ id }) => id));
  return [...drafts.filter(({ root }) => !scheduled.has(root)), ...drafts.filter(({ root }) => scheduled.has(root))];
}

const SHOWN_ROWS = 10;

async function describe(
  core: StoreCore,
  drafts: readonly Draft[],
  { terms, asked, options }: { terms: readonly string[]; asked: AskedIndex | null; options: RecallOptions },
): Promise<readonly RecalledConversation[]> {
  const withContext = options.withContext ?? false;
  const hits = new Map<number, SearchHit>();
  for (const relaxed of [false, true]) {
    const page = drafts.filter((draft) => draft.relaxed === relaxed).flatMap(({ found }) => found.slice(0, SHOWN_ROWS));
    for (const hit of await readHits(core, page, { terms: relaxed ? [] : terms, withContext })) hits.set(hit.id, hit);
  }
  const subjects = asked?.words ?? [];
  return await core.read(() =>
    drafts.flatMap(({ root, found, relaxed, ranked }) => {
      const shown = found.slice(0, SHOWN_ROWS).flatMap(({ id }) => hits.get(id) ?? []);
      if (shown.length === 0) return [];
      const has = new Set(relaxed ? (ranked?.matched ?? []) : subjects.keys());
      const told = subjects
        .map(({ word }, at) => ({ word, at }))
        .filter(({ at }) => isSubject(subjects[at] as AskedWord) || has.has(at));
      return [
        {
          root,
          relaxed,
          hits: relaxed && asked ? shown.map((hit) => ({ ...hit, snippet: passageOf(core, hit.id, asked) })) : shown,
          rows: found.length,
          matched: told.filter(({ at }) => has.has(at)).map(({ word }) => word),
          missing: told.filter(({ at }) => !has.has(at)).map(({ word }) => word),
        },
      ];
    }),
  );
}

function readTexts(core: StoreCore, ids: readonly number[]): ReadonlyMap<number, string> {
  const rows = core.db.all<{ id: number; content: Uint8Array | null; tool_calls: Uint8Array | null }>(
    `SELECT m.id, CAST(m.content AS BLOB) AS content, CAST(m.tool_calls AS BLOB) AS tool_calls
     FROM json_each(?) CROSS JOIN messages m ON m.id = json_each.value`,
    JSON.stringify(ids),
  );
  return new Map(rows.map((row) => [row.id, plainText(row.content, core.log) || (decodeText(row.tool_calls) ?? "")]));
}

function passageOf(core: StoreCore, id: number, asked: AskedIndex): string {
  const text = readTexts(core, [id]).get(id) ?? "";
  const weights = asked.evidence.map(
    ({ weight, terms }) => weight / Math.log(2 + (terms[0]?.postings.places.length ?? 0)),
  );
  return makePassage(text, asked.words, weights);
}
