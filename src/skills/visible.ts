// What the model is offered at the top of a conversation: names and one short line each. Rendering is the prompt's business.

import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { truncateCodePoints } from "../kit/code-points.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { unquote } from "../kit/front-matter-plain.ts";
import { SCANNER, scanForThreats } from "../safety/threats/scan.ts";
import { type Catalogue, categoryTexts, loadCatalogue, type Skill, unshadowed } from "./catalogue.ts";
import { compare } from "./files.ts";
import {
  activeEnvironments,
  disabledSkills,
  fitsEnvironment,
  fitsOs,
  fitsTools,
  isDisabled,
  type LoadedTools,
} from "./requirements.ts";
import type { SkillsContext } from "./roots.ts";
import { categoryLabel, removeSnapshot } from "./snapshot.ts";

export interface VisibleRequest {
  readonly platform: string;
  /** Null: unknown, conditions on tools do not apply. */
  readonly loaded: LoadedTools | null;
  /** Categories the caller renders by name only; part of the cache key. */
  readonly compact?: readonly string[];
  readonly os?: NodeJS.Platform;
  readonly environments?: ReadonlySet<string>;
  /** What a scan without findings is kept under for the next start; null: it is not kept. */
  readonly scanner?: string | null;
}

export interface VisibleSkills {
  /** Sorted by code point, as are the skills in each; a name stands once per category. */
  readonly categories: readonly SkillCategory[];
  readonly digest: string;
  readonly warnings: readonly string[];
}

export interface SkillCategory {
  readonly name: string;
  /** Empty when there is none. */
  readonly description: string;
  readonly skills: readonly { readonly name: string; readonly description: string }[];
  /** How many more it has than are listed. */
  readonly more?: number;
}

const INDEX_CHARS = 60;
const CATEGORY_CHARS = 200;
const KEPT = 8;
const cache = new Map<string, VisibleSkills>();

export async function visibleSkills(context: SkillsContext, request: VisibleRequest): Promise<VisibleSkills> {
  const catalogue = await loadCatalogue(context);
  const disabled = disabledSkills(context.config(), request.platform);
  const environments = request.environments ?? (await activeEnvironments(context.env));
  const key = JSON.stringify([
    catalogue.roots.map(({ root }) => root.dir),
    request.loaded && [[...request.loaded.tools].sort(), [...request.loaded.toolsets].sort()],
    [request.platform, request.os, [...environments].sort()],
    [...disabled].sort(),
    [...(request.compact ?? [])].sort(),
    catalogue.digest,
  ]);
  const known = cache.get(key);
  cache.delete(key);
  const visible = known ?? (await select(context, catalogue, { ...request, environments, disabled }));
  cache.set(key, visible);
  for (const oldest of cache.keys()) {
    if (cache.size <= KEPT) break;
    cache.delete(oldest);
  }
  return visible;
}

/** After skills changed. Conversations that run keep the prompt they have. */
export async function clearSkillsPromptCache(
  context: Pick<SkillsContext, "paths">,
  options: { readonly snapshot?: boolean } = {},
): Promise<void> {
  cache.clear();
  if (options.snapshot) await removeSnapshot(context.paths);
}

/** On one line, nothing in it that could close a tag, at most 60 code points. */
export function indexDescription(text: string): string {
  return truncateCodePoints(oneLine(text), INDEX_CHARS, "...");
}

interface Filter extends VisibleRequest {
  readonly environments: ReadonlySet<string>;
  readonly disabled: ReadonlySet<string>;
}

async function select(context: SkillsContext, catalogue: Catalogue, filter: Filter): Promise<VisibleSkills> {
  const warnings: string[] = [];
  const byCategory = new Map<string, Map<string, string>>();
  const texts = categoryTexts(catalogue);
  const offered = unshadowed(catalogue).filter((skill) => isVisible(skill, filter));
  const scan = await openScan(context, filter.scanner ?? SCANNER, [
    ...offered.map(({ description }) => description),
    ...Object.values(texts),
  ]);
  const trusted = (description: string, whose: string) => {
    const threats = scan.threatsIn(description);
    if (threats.length === 0) return description;
    warnings.push(`${whose}: its description is left out of the prompt (${threats.join(", ")})`);
    return "";
  };
  for (const skill of offered) {
    const label = categoryLabel(skill.category);
    const skills = byCategory.get(label) ?? new Map<string, string>();
    byCategory.set(label, skills);
    if (skills.has(skill.name)) continue;
    warnings.push(...skill.problems.map((problem) => `skill ${skill.path}: ${problem}`));
    skills.set(skill.name, indexDescription(trusted(skill.description, `skill ${skill.path}`)));
  }
  const categories = [...byCategory]
    .sort(([a], [b]) => compare(a, b))
    .map(([name, skills]) => ({
      name,
      description: truncateCodePoints(oneLine(trusted(texts[name] ?? "", `category ${name}`)), CATEGORY_CHARS, "..."),
      skills: [...skills]
        .sort(([a], [b]) => compare(a, b))
        .map(([skill, description]) => ({ name: skill, description })),
    }));
  await scan.keep();
  return { categories: await withinBudget(categories, context), digest: catalogue.digest, warnings };
}

/** Of the whole list. A hundred skills take about two thirds of it. */
const LIST_TOKENS = 3000;
/** So few are listed whole, whatever they are called. */
const NEVER_TOO_MANY = 50;

async function withinBudget(
  categories: readonly SkillCategory[],
  context: SkillsContext,
): Promise<readonly SkillCategory[]> {
  const count = categories.reduce((sum, { skills }) => sum + skills.length, 0);
  if (count <= NEVER_TOO_MANY) return categories;
  const { boundedList } = await import("./bounded.ts");
  return boundedList(categories, context, LIST_TOKENS);
}

function isVisible(skill: Skill, { os, environments, disabled, loaded }: Filter): boolean {
  return (
    !skill.userOnly &&
    !isDisabled(skill, disabled) &&
    fitsOs(skill.platforms, os) &&
    fitsEnvironment(skill.environments, environments) &&
    (loaded === null || fitsTools(skill.conditions, loaded))
  );
}

/**
 * The scan of these texts. Texts that the same scanner found clean in an earlier run are not scanned again: that took a tenth of each start.
 * The whole text is looked at before it is cut: what is cut away must not hide what stays.
 */
async function openScan({ paths, log }: SkillsContext, scanner: string | null, texts: readonly string[]) {
  const file = paths.at("cache", "code", "clean-skill-descriptions");
  const digest =
    scanner &&
    createHash("sha256")
      .update(JSON.stringify([scanner, texts]))
      .digest("hex");
  const kept = digest !== null && (await readFile(file, "latin1").catch(() => "")) === digest;
  let found = 0;
  return {
    threatsIn(text: string): readonly string[] {
      if (kept) return [];
      const strong = scanForThreats(text, "context").filter(({ weight }) => weight === "strong");
      found += strong.length;
      return strong.map(({ id }) => id);
    },
    /** Nobody depends on it. */
    async keep(): Promise<void> {
      if (digest === null || kept || found > 0) return;
      try {
        await mkdir(dirname(file), { recursive: true, mode: 0o700 });
        await writeFileAtomic(file, digest);
      } catch (error) {
        log.debug("the scan of skills was not kept", error);
      }
    },
  };
}

function oneLine(text: string): string {
  return unquote(text.trim())
    .replace(/[<>]/g, "")
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
}
