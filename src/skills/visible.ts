// What the model is offered at the top of a conversation: names and one short line each. Rendering is the prompt's business.
import { truncateCodePoints } from "../kit/code-points.ts";
import { unquote } from "../kit/front-matter-plain.ts";
import { scanForThreats } from "../safety/threats/scan.ts";
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
  const visible = known ?? select(catalogue, { ...request, environments, disabled });
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

function select(catalogue: Catalogue, filter: Filter): VisibleSkills {
  const warnings: string[] = [];
  const byCategory = new Map<string, Map<string, string>>();
  for (const skill of unshadowed(catalogue).filter((skill) => isVisible(skill, filter))) {
    const label = categoryLabel(skill.category);
    const skills = byCategory.get(label) ?? new Map<string, string>();
    byCategory.set(label, skills);
    if (skills.has(skill.name)) continue;
    warnings.push(...skill.problems.map((problem) => `skill ${skill.path}: ${problem}`));
    skills.set(skill.name, indexDescription(trusted(skill.description, `skill ${skill.path}`, warnings)));
  }
  const texts = categoryTexts(catalogue);
  const categories = [...byCategory]
    .sort(([a], [b]) => compare(a, b))
    .map(([name, skills]) => ({
      name,
      description: truncateCodePoints(
        oneLine(trusted(texts[name] ?? "", `category ${name}`, warnings)),
        CATEGORY_CHARS,
        "...",
      ),
      skills: [...skills]
        .sort(([a], [b]) => compare(a, b))
        .map(([skill, description]) => ({ name: skill, description })),
    }));
  return { categories, digest: catalogue.digest, warnings };
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

/** The whole text is looked at before it is cut: what is cut away must not hide what stays. */
function trusted(description: string, whose: string, warnings: string[]): string {
  const strong = scanForThreats(description, "context").filter(({ weight }) => weight === "strong");
  if (strong.length === 0) return description;
  warnings.push(`${whose}: its description is left out of the prompt (${strong.map(({ id }) => id).join(", ")})`);
  return "";
}

function oneLine(text: string): string {
  return unquote(text.trim())
    .replace(/[<>]/g, "")
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
}
