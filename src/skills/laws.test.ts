// What holds for every tree, path and line.

import assert from "node:assert/strict";
import { mkdir, realpath, symlink } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { skillsHome, skillText } from "../../test/support/skills-home.ts";
import { isWithin } from "../kit/files.ts";
import { parseFrontMatter } from "../kit/front-matter.ts";
import { resolveLinks } from "../safety/paths.ts";
import { slugOf } from "./bundles.ts";
import { type Catalogue, loadCatalogue, type Skill } from "./catalogue.ts";
import { parseTypedSkills, skillCommands } from "./expand.ts";
import { safePath } from "./files.ts";
import { readEntry } from "./read-entry.ts";
import { pathName, resolveSkill } from "./resolve.ts";
import { indexDescription } from "./visible.ts";

test("a path that is let through leads to a place inside the skill", async () => {
  const home = await skillsHome({ "skills/x/SKILL.md": "D", "secret/s": "s\n" });
  const dir = home.at("skills/x");
  await mkdir(join(dir, "references"));
  await symlink(home.at("secret"), join(dir, "references", "out"));
  await symlink("..", join(dir, "references", "up"));
  await symlink(".", join(dir, "references", "here"));
  const root = await realpath(dir);
  const part = fc.constantFrom(
    "..",
    ".",
    "",
    "a",
    "references",
    "out",
    "up",
    "here",
    "s",
    "~",
    "C:",
    "\\",
    "..\\",
    "SKILL.md",
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 6 }), fc.constantFrom("/", "\\", "//"), async (parts, joint) => {
      const safe = await safePath(dir, parts.join(joint));
      if (safe.type === "refused") return;
      assert.ok(isWithin(await resolveLinks(join(dir, safe.path)), root), safe.path);
      assert.equal(safe.absolute, join(dir, safe.path));
    }),
  );
});

const segment = fc.constantFrom("a", "b", "c", "general");
const paths = fc.uniqueArray(
  fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/")),
  { maxLength: 8 },
);
const trees = fc.array(paths, { minLength: 1, maxLength: 3 });

function catalogueOf(roots: readonly (readonly string[])[]): Catalogue {
  return {
    digest: "",
    roots: roots.map((found, index) => {
      const root = { dir: `/${index}`, kind: index === 0 ? "local" : "external" } as const;
      const skills: Skill[] = found.map((path) => {
        const entry = readEntry(path, parseFrontMatter(skillText(path.split("/").at(-1) ?? "", "D")));
        return { ...entry, root, dir: join(root.dir, path) };
      });
      return { root, skills, categories: {} };
    }),
  };
}

test("a skill asked for by its path name is that skill, one that shares it, or hidden by an earlier root", async () => {
  const home = await skillsHome();
  await fc.assert(
    fc.asyncProperty(trees, async (roots) => {
      const catalogue = catalogueOf(roots);
      const all = catalogue.roots.flatMap(({ skills }) => skills);
      for (const skill of all) {
        const found = await resolveSkill(pathName(skill), catalogue, home);
        if (found.type === "found") {
          assert.ok(
            found.skill.dir === skill.dir ||
              found.shadows.includes(skill.dir) ||
              pathName(found.skill) === pathName(skill),
          );
        } else {
          assert.equal(found.type, "ambiguous");
          assert.ok(found.type === "ambiguous" && found.matches.every((match) => pathName(match) === pathName(skill)));
        }
      }
    }),
  );
});

test("no name makes the resolver throw or find what is not called that", async () => {
  const home = await skillsHome({ "skills/a/b/SKILL.md": "D", "skills/c/SKILL.md": "D" });
  const catalogue = await loadCatalogue(home);
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: fc.constantFrom("a", "b", "c", "/", ":", ".", "\\", " ", "~") }),
      async (name) => {
        const found = await resolveSkill(name, catalogue, home);
        if (found.type === "found")
          assert.ok(["b", "a/b", "a:b", "c", "general/c", "general:c"].includes(name.trim().replace(/\/+$/, "")), name);
      },
    ),
  );
});

test("a slug is stable, and safe to type", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (name) => {
      const slug = slugOf(name);
      assert.equal(slugOf(slug), slug);
      assert.match(slug, /^[\p{L}\p{N}-]*$/u);
    }),
    { numRuns: 2000 },
  );
});

test("what a line asks for beyond its skills is the end of the line, untouched", async () => {
  const commands = await skillCommands(await skillsHome({ "skills/a/SKILL.md": "A", "skills/b/SKILL.md": "B" }), {
    platform: "cli",
    taken: new Set(),
  });
  fc.assert(
    fc.property(fc.array(fc.constantFrom("/a", "/b", "/c", "a", "/etc/x", "\n"), { maxLength: 7 }), (words) => {
      const text = words.join(" ");
      const typed = parseTypedSkills(text, commands);
      if (!typed) return;
      assert.ok(text.trim().endsWith(typed.instruction));
      assert.ok(typed.type === "skills" && new Set(typed.skills).size === typed.skills.length);
    }),
  );
});

test("a description in the list is one short line without tags", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
      const line = indexDescription(text);
      assert.ok([...line].length <= 60);
      assert.doesNotMatch(line, /[<>\n\r]/);
    }),
  );
});
