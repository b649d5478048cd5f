// A card is completed: keys masked in all that is kept, files saved before their folder goes, and then one transaction.
import { lstat, realpath, rm } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { isWithin } from "../kit/files.ts";
import { isRecord } from "../kit/json.ts";
import { addAttachment, type KeptFile, keepCopy, typeOf } from "./attachments.ts";
import { BoardError, cardOf, childrenOf } from "./cards.ts";
import { complete } from "./moves.ts";
import type { BoardFile, Card } from "./schema.ts";
import { removeScratch } from "./workspaces.ts";

interface Place {
  /** Where scratch folders of this board are made; nothing outside of it is ever removed. */
  readonly workspaces: string;
  readonly attachments: string;
}

export interface Report {
  readonly summary?: string | undefined;
  readonly result?: string | undefined;
  readonly metadata?: unknown;
  readonly createdCards?: readonly string[] | undefined;
  /** Files that are the work: kept with the card. */
  readonly artifacts?: readonly string[] | undefined;
  /** The attempt that completes it; absent: a person does. */
  readonly run?: number | undefined;
  readonly sessionId?: string | undefined;
  /** What the worker had read from outside; what it reports may repeat it. */
  readonly foreignText?: string | undefined;
}

interface Completing {
  readonly place: Place;
  /** Who attaches the files. */
  readonly by: string;
  redact(text: string): string;
}

/** Nothing of it is kept when a file cannot be saved or the card may not be completed. */
export async function completeCard(
  board: BoardFile,
  id: string,
  report: Report,
  { place, by, redact }: Completing,
): Promise<{ readonly card: Card; readonly run: number | null }> {
  const card = cardOf(board.db, id);
  const masked = maskedReport(report, redact);
  const { summary, result, run, createdCards } = masked;
  const files = await filesOf(card, masked, place);
  const kept: KeptFile[] = [];
  try {
    for (const file of files.copied) kept.push(await keepCopy(place, id, file, files.root ?? undefined));
    const artifacts = [...files.named, ...kept.map((file) => file.stored_path)];
    const metadata = metadataOf(masked, artifacts);
    return await board.change((change) => {
      for (const file of kept) addAttachment(change, id, { file, type: typeOf(file.filename), by });
      const done = complete(change, id, { summary, result, metadata, run, createdCards });
      return { card: done.card, run: done.run?.id ?? null };
    });
  } catch (error) {
    for (const { stored_path } of kept) await rm(stored_path, { force: true });
    throw error;
  }
}

/** All that will be read later, by people, models and other programs. */
export function maskedReport(report: Report, redact: (text: string) => string): Report {
  const { summary, result, metadata, ...rest } = report;
  return {
    ...rest,
    ...(summary === undefined ? {} : { summary: redact(summary) }),
    ...(result === undefined ? {} : { result: redact(result) }),
    ...(metadata === undefined || metadata === null ? {} : { metadata: maskedValue(metadata, redact) }),
  };
}

function maskedValue(value: unknown, redact: (text: string) => string, name = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => maskedValue(one, redact));
  if (isRecord(value))
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [redact(key), maskedValue(inner, redact, key)]),
    );
  if (typeof value !== "string") return value;
  // A short value is a key by its name alone: {"api_key": "..."}.
  const named = `${JSON.stringify(name)}: ${JSON.stringify(value)}`;
  const masked = redact(value);
  return masked === value && name !== "" && redact(named) !== named ? "***" : masked;
}

function metadataOf({ metadata, sessionId, foreignText }: Report, artifacts: readonly string[]): unknown {
  if (metadata !== undefined && !isRecord(metadata)) return metadata; // refused where the card is changed
  const listed = isRecord(metadata) && Array.isArray(metadata.artifacts) ? metadata.artifacts : [];
  const all = {
    ...metadata,
    ...(artifacts.length > 0 ? { artifacts: [...new Set([...listed, ...artifacts])] } : {}),
    ...(sessionId === undefined ? {} : { worker_session_id: sessionId }),
    ...(foreignText === undefined ? {} : { foreign_text: foreignText }),
  };
  return Object.keys(all).length > 0 ? all : undefined;
}

const MOST_ARTIFACTS = 50;
/** Paths in a text: what ends a sentence is no part of them. */
const PATHS = /(?:^|[\s"'`(=:])(\/[^\s"'`()<>|*?]{1,500})/g;

/** What is copied, and what only has to be named because its folder stays. */
async function filesOf(card: Card, { artifacts = [], summary, result }: Report, place: Place) {
  const workspace = card.workspace_path ?? (card.workspace_kind === "scratch" ? join(place.workspaces, card.id) : null);
  const root = workspace === null ? null : await realpath(workspace).catch(() => null); // not made, or gone
  const declared: string[] = [];
  for (const given of artifacts) {
    const path = isAbsolute(given) || workspace === null ? given : resolve(workspace, given);
    const real = await realpath(path).catch(() => null);
    // Whoever completes a card must not get at files that its worker could not have made.
    if (real === null || root === null || !isWithin(real, root) || real === root)
      throw new BoardError(
        `${card.id}: the artifact ${given} is not in the workspace${workspace === null ? "" : ` ${workspace}`}. Nothing was changed.`,
      );
    declared.push(real);
  }
  if (card.workspace_kind !== "scratch") return { root, named: [...new Set(declared)], copied: [] };
  const named: string[] = [];
  for (const [, path = ""] of root === null ? [] : `${summary ?? ""}\n${result ?? ""}`.matchAll(PATHS)) {
    const real = await realpath(path.replace(/[.,;:!]$/, "")).catch(() => null);
    if (root === null || real === null || real === root || !isWithin(real, root)) continue;
    if ((await lstat(real)).isFile()) named.push(real);
  }
  const copied = [...new Set([...declared, ...named])];
  if (copied.length > MOST_ARTIFACTS)
    throw new BoardError(
      `${card.id}: ${copied.length} files are too many to be kept; name at most ${MOST_ARTIFACTS}, or pack them into one.`,
    );
  return { root, named: [], copied };
}

/** The folder of a card that is finished, unless somebody works on what follows from it. Where a worker ended it, the dispatcher does this. */
export async function cleanUp(board: BoardFile, place: Pick<Place, "workspaces">, id: string): Promise<void> {
  const card = cardOf(board.db, id);
  if (card.workspace_kind !== "scratch" || card.status !== "done") return;
  const isOpen = (child: string) => !["done", "archived"].includes(cardOf(board.db, child).status);
  if (!childrenOf(board.db, id).some(isOpen)) await removeScratch(place.workspaces, id);
}
