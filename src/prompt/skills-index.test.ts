import assert from "node:assert/strict";
import { test } from "node:test";
import { someSkills } from "../../test/support/prompt-inputs.ts";
import type { SkillCategory } from "../skills/visible.ts";
import { SKILLS_INSTRUCTION, skillsIndex } from "./skills-index.ts";

const TOOLS = ["skill_view"];
const listOf = (categories: readonly SkillCategory[], focus = false) => {
  const text = skillsIndex(categories, TOOLS, { focus }) ?? "";
  return text.slice(text.indexOf("<available_skills>"), text.indexOf("</available_skills>")).split("\n").slice(1, -1);
};
const one = (name: string, description = "") => ({ name, description });

test("the whole block", () => {
  const categories = [
    { name: "github", description: "Work with GitHub", skills: [one("pr", "Open pull requests"), one("gist")] },
  ];
  assert.equal(
    skillsIndex(categories, TOOLS, { focus: false }),
    `## Skills (mandatory)
${SKILLS_INSTRUCTION}

<available_skills>
  github: Work with GitHub
    - gist
    - pr: Open pull requests
</available_skills>
Go on without a skill only if none of them fits.`,
  );
});

const entries: readonly (readonly [name: string, categories: readonly SkillCategory[], lines: readonly string[]])[] = [
  ["a category without description", [{ name: "a", description: "", skills: [one("x")] }], ["  a:", "    - x"]],
  [
    "categories and entries are sorted by code point",
    [
      { name: "b", description: "", skills: [one("z"), one("Z"), one("\u{1f408}"), one("\uffee")] },
      { name: "a/b", description: "", skills: [one("x")] },
    ],
    ["  a/b:", "    - x", "  b:", "    - Z", "    - z", "    - \uffee", "    - \u{1f408}"],
  ],
  [
    "a name stands once per category, the first description wins",
    [
      { name: "a", description: "one", skills: [one("x", "first")] },
      { name: "a", description: "two", skills: [one("x", "second"), one("y")] },
    ],
    ["  a: one", "    - x: first", "    - y"],
  ],
  [
    "descriptions are one line of at most 60 characters without angle brackets",
    [
      {
        name: "a",
        description: "",
        skills: [one("x", ` <b>${"é".repeat(57)}\n\n  ${"y".repeat(9)}`), one("y", "d".repeat(60))],
      },
    ],
    ["  a:", `    - x: b${"é".repeat(56)}...`, `    - y: ${"d".repeat(60)}`],
  ],
  ["a category without skills is left out", [{ name: "a", description: "", skills: [] }], []],
];
for (const [name, categories, lines] of entries) test(name, () => assert.deepEqual(listOf(categories), lines));

test("focus turns everyday categories into lines of names and says what that means", () => {
  const categories = [
    { name: "media/video", description: "Films", skills: [one("b", "x"), one("a", "y")] },
    { name: "mediation", description: "", skills: [one("c", "kept")] },
  ];
  assert.deepEqual(listOf(categories, true), ["  media/video [names only]: a, b", "  mediation:", "    - c: kept"]);
  const text = skillsIndex(categories, TOOLS, { focus: true }) ?? "";
  assert.match(text, /\n\(\[names only\] = .*\)$/);
  assert.doesNotMatch(skillsIndex(categories, TOOLS, { focus: false }) ?? "", /names only/);
});

test("focus hides no name and saves most of a typical everyday index", () => {
  const everyday = ["apple", "cooking", "email", "finance", "gaming"].flatMap((name) =>
    someSkills(8).map((category) => ({ ...category, name })),
  );
  const whole = skillsIndex(everyday, TOOLS, { focus: false }) ?? "";
  const compact = skillsIndex(everyday, TOOLS, { focus: true }) ?? "";
  for (const { skills } of everyday) for (const { name } of skills) assert.ok(compact.includes(name));
  assert.ok(compact.length < whole.length * 0.4, `${compact.length} of ${whole.length}`);
});

test("upkeep of skills is mentioned only to those who can do it", () => {
  const categories = someSkills(1);
  assert.doesNotMatch(skillsIndex(categories, TOOLS, { focus: false }) ?? "", /skill_manage/);
  assert.match(skillsIndex(categories, ["skill_manage"], { focus: false }) ?? "", /skill_manage\(action='patch'\)/);
});
