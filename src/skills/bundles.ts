// Bundles: several skills under one command. `skill-bundles/*.yaml` in the home.
import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { parse, stringify } from "yaml";
import { writeFileAtomic } from "../kit/files.ts";
import { compare } from "./files.ts";
import { reason } from "./open-skill.ts";
import type { SkillsContext } from "./roots.ts";

export interface Bundle {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly skills: readonly string[];
  readonly instruction: string;
  readonly file: string;
}

interface Bundles {
  /** By slug; of two with one slug the first file, in sorted order, has it. */
  readonly bundles: ReadonlyMap<string, Bundle>;
  readonly warnings: readonly string[];
}

export const bundlesDir = (context: Pick<SkillsContext, "paths">) => context.paths.at("skill-bundles");

const known = new Map<string, { readonly key: string; readonly found: Bundles }>();

/** Read again only when the folder or one of its files changed. */
export async function loadBundles(context: Pick<SkillsContext, "paths">): Promise<Bundles> {
  const dir = bundlesDir(context);
  const names = (await readdir(dir).catch(() => [])).filter((name) => /\.ya?ml$/i.test(name)).sort(compare);
  const times = await Promise.all(
    names.map((name) =>
      stat(join(dir, name), { bigint: true }).then(
        (facts) => `${facts.mtimeNs}:${facts.size}`,
        () => "",
      ),
    ),
  );
  const key = JSON.stringify([names, times]);
  const kept = known.get(dir);
  if (kept?.key === key) return kept.found;
  const found = await readBundles(dir, names);
  known.set(dir, { key, found });
  return found;
}

async function readBundles(dir: string, names: readonly string[]): Promise<Bundles> {
  const bundles = new Map<string, Bundle>();
  const warnings: string[] = [];
  for (const name of names) {
    const file = join(dir, name);
    const bundle = await readBundle(file);
    if (typeof bundle === "string") warnings.push(`${file} is skipped: ${bundle}`);
    else if (bundles.has(bundle.slug)) warnings.push(`${file} is skipped: /${bundle.slug} is another bundle already`);
    else bundles.set(bundle.slug, bundle);
  }
  return { bundles, warnings };
}

/** The bundle, or what is wrong with the file. */
async function readBundle(file: string): Promise<Bundle | string> {
  let tree: unknown;
  try {
    tree = parse(await readFile(file, "utf8"));
  } catch (error) {
    return reason(error).split("\n", 1)[0] ?? "it cannot be read";
  }
  if (typeof tree !== "object" || tree === null) return "it is not a mapping";
  const fields = tree as Readonly<Record<string, unknown>>; // an object
  const text = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value).trim() : "");
  const name = text(fields.name) || basename(file, extname(file));
  const skills = (Array.isArray(fields.skills) ? fields.skills : []).map(text).filter((skill) => skill !== "");
  const slug = slugOf(name);
  if (slug === "") return "its name has no letters";
  if (skills.length === 0) return "it lists no skills";
  return { slug, name, description: text(fields.description), skills, instruction: text(fields.instruction), file };
}

/** Writes a bundle; the caller has made sure that the file may be replaced. */
export async function writeBundle(
  context: Pick<SkillsContext, "paths">,
  bundle: Pick<Bundle, "name" | "description" | "skills" | "instruction">,
): Promise<string> {
  const file = join(bundlesDir(context), `${slugOf(bundle.name)}.yaml`);
  const { name, description, skills, instruction } = bundle;
  await mkdir(bundlesDir(context), { recursive: true, mode: 0o700 });
  await writeFileAtomic(
    file,
    stringify({ name, ...(description && { description }), skills, ...(instruction && { instruction }) }),
  );
  return file;
}

/** A name as a command: `My Café_skill!` -> `my-cafe-skill`. Blanks, `_` and `-` are one thing. */
export function slugOf(name: string): string {
  return name
    .normalize("NFKD")
    .toLowerCase()
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[\s_]+/g, "-")
    .replace(/[^\p{L}\p{N}-]/gu, "")
    .replace(/-+/g, "-")
    .replace(/^-|-$/g, "")
    .normalize("NFC");
}
