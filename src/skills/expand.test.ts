import assert from "node:assert/strict";
import { test } from "node:test";
import { type SkillsHome, skillsHome, skillText } from "../../test/support/skills-home.ts";
import { loadBundles, slugOf, writeBundle } from "./bundles.ts";
import { expandSkillCommand, expandTyped, parseTypedSkills, preloadSkills, skillCommands } from "./expand.ts";
import { flushUsage } from "./roots.ts";
import { readUsage } from "./usage.ts";

const slugs: readonly (readonly [string, string])[] = [
  ["deploy", "deploy"],
  ["My Skill", "my-skill"],
  ["a_b  c", "a-b-c"],
  ["Café crème!", "cafe-creme"],
  ["--a--b--", "a-b"],
  ["发布", "发布"],
  ["배포", "배포"],
  ["!!!", ""],
  ["v1.2", "v12"],
];
for (const [name, slug] of slugs) {
  test(`${JSON.stringify(name)} is the command /${slug}`, () => {
    assert.equal(slugOf(name), slug);
    assert.equal(slugOf(slug), slug);
  });
}

const options = { platform: "cli", taken: new Set(["help", "reload-skills"]) };
const world = (files: Record<string, string> = {}) =>
  skillsHome({
    "skills/a/SKILL.md": "A",
    "skills/cat/b-two/SKILL.md": "B",
    "skills/c/SKILL.md": "C",
    "skills/help/SKILL.md": "Taken",
    "skills/d/SKILL.md": "D",
    "skills/e/SKILL.md": "E",
    "skills/f/SKILL.md": "F",
    "skills/off/SKILL.md": "Off",
    ...files,
  });

test("skills become commands unless a built-in has the name, they are off or not for this machine", async () => {
  const other = process.platform === "darwin" ? "windows" : "macos";
  const home = await world({
    "skills/os/SKILL.md": skillText("os", "D", `platforms: [${other}]\n`),
    "skills/user/SKILL.md": skillText("user", "D", "disable-model-invocation: true\n"),
    "skills/reload/SKILL.md": skillText("reload_skills", "D"),
  });
  home.settings = { disabled: ["off"] };
  const { skills, warnings } = await skillCommands(home, options);
  assert.deepEqual([...skills.keys()].sort(), ["a", "b-two", "c", "d", "e", "f", "user"]);
  assert.match(warnings.join("\n"), /\/help is a command already; use \/skill help/);
});

const lines: readonly (readonly [string, readonly string[] | null, string])[] = [
  ["/a do this", ["a"], "do this"],
  ["  /a", ["a"], ""],
  ["/b_two x", ["b-two"], "x"],
  ["/B-TWO x", ["b-two"], "x"],
  ["/a /c go", ["a", "c"], "go"],
  ["/a /etc/hosts", ["a"], "/etc/hosts"],
  ["/a /a go", ["a"], "/a go"],
  ["/a /unknown go", ["a"], "/unknown go"],
  ["/a /b-two /c /d /e /f go", ["a", "b-two", "c", "d", "e"], "/f go"],
  ["/a line one\nline two", ["a"], "line one\nline two"],
  ["/help", null, ""],
  ["/etc/hosts", null, ""],
  ["a", null, ""],
  ["look at /a", null, ""],
];
for (const [text, names, instruction] of lines) {
  test(`the line ${JSON.stringify(text)} asks for ${names ? names.join(" + ") : "no skill"}`, async () => {
    const typed = parseTypedSkills(text, await skillCommands(await world(), options));
    assert.deepEqual(typed?.type === "skills" ? typed.skills.map(({ name }) => name) : null, names);
    if (names) assert.equal(typed?.instruction, instruction);
  });
}

async function rich(): Promise<SkillsHome> {
  const home = await skillsHome({
    "skills/x/SKILL.md": skillText(
      "x",
      "D",
      "required_environment_variables: [X_KEY]\nmetadata:\n  hermes:\n    config:\n" +
        "      - {key: x.path, description: Where, default: ~/data}\n      - {key: x.mode, description: How}\n      - {key: x.mode, description: Twice}\n      - {key: bad}\n",
      `Read \${HERMES_SKILL_DIR}.\n`,
    ),
    "skills/x/scripts/run.sh": "r\n",
  });
  return home;
}

test("a setting written as a mapping in place of a list is one setting", async () => {
  const extra =
    "metadata:\n  hermes:\n    config:\n      key: x.path\n      description: Where\n      default: /srv/data\n";
  const home = await skillsHome({ "skills/x/SKILL.md": skillText("x", "D", extra) });
  const expansion = await expandTyped("/x", home, options);
  assert.ok(expansion?.type === "expanded");
  assert.ok(expansion.apiContent.includes("  x.path = /srv/data\n"), expansion.apiContent);
});

test("the parts of an expansion come in their order, and the stored text is what was typed", async () => {
  const home = await rich();
  const expansion = await expandTyped("/x do it", home, { ...options, sessionId: "s", runtimeNote: "nobody is here" });
  assert.ok(expansion?.type === "expanded");
  assert.equal(expansion.display, "/x do it");
  const dir = home.at("skills/x");
  const order = [
    '[The user invoked the "x" skill.',
    "---\nname: x\n",
    `Read ${dir}.`,
    `[Skill directory: ${dir}]`,
    `[Skill config (from ${home.at("config.yaml")}):\n  x.path = ${home.home.osHome}/data\n  x.mode = (not set)\n]`,
    "[Skill setup note: Before everything in this skill works: set X_KEY.]",
    `- scripts/run.sh  ->  ${dir}/scripts/run.sh`,
    "The user's instruction: do it",
    "[Runtime note: nobody is here]",
  ].map((part) => [part, expansion.apiContent.indexOf(part)] as const);
  for (const [part, at] of order) assert.notEqual(at, -1, part);
  assert.deepEqual(
    order.map(([, at]) => at),
    order.map(([, at]) => at).sort((a, b) => a - b),
  );
});

test("settings of the user stand over the skill's own, as one key or as a path", async () => {
  const home = await rich();
  home.settings = { config: { "x.path": "/here", x: { mode: "fast" } } };
  const expansion = await expandSkillCommand("x", "", home, { platform: "cli" });
  assert.ok(expansion.type === "expanded");
  assert.match(expansion.apiContent, /x\.path = \/here\n {2}x\.mode = fast/);
});

test("a skill whose command is taken is reached by its name; unknown names fail with a reason", async () => {
  const home = await world();
  const expansion = await expandSkillCommand("help", "me", home, { platform: "cli" });
  assert.ok(expansion.type === "expanded");
  assert.equal(expansion.display, "/help me");
  const failed = await expandSkillCommand("none", "", home, { platform: "cli" });
  assert.ok(failed.type === "failed" && /no skill 'none'/.test(failed.error));
});

test("invoking counts as use, not as a view", async () => {
  const home = await world();
  await expandTyped("/a /c x", home, options);
  await flushUsage(home);
  const usage = await readUsage(home);
  assert.deepEqual([usage?.get("a")?.use_count, usage?.get("a")?.view_count, usage?.get("c")?.use_count], [1, 0, 1]);
});

test("a bundle loads what it can, names what it cannot, and beats a skill of its name", async () => {
  const home = await world({
    "skill-bundles/a.yaml": "description: All of it\nskills: [c, cat/b-two, none, off, c]\ninstruction: Be quick.\n",
    "skill-bundles/empty.yml": "skills: []\n",
    "skill-bundles/broken.yaml": "skills: [\n",
    "skill-bundles/z-double.yaml": "name: A\nskills: [d]\n",
    "skill-bundles/nothing.yaml": "skills: [none]\n",
  });
  home.settings = { disabled: ["off"] };
  const expansion = await expandTyped("/a go on", home, options);
  assert.ok(expansion?.type === "expanded");
  assert.deepEqual(expansion.loaded, ["c", "b-two"]);
  assert.deepEqual(expansion.left, ["none (not_found)", "off (disabled)"]);
  assert.match(
    expansion.apiContent,
    /^\[The user invoked the "a" bundle[\s\S]*Left out: none[\s\S]*Be quick\.\]\n\n\[Skill: c\]/,
  );
  assert.match(expansion.apiContent, /The user's instruction: go on$/);
  const failed = await expandTyped("/nothing", home, options);
  assert.ok(failed?.type === "failed" && /none/.test(failed.error));
  assert.equal((await loadBundles(home)).warnings.length, 3);
});

test("a bundle that is written is found without a restart", async () => {
  const home = await world({ "skill-bundles/x.yaml": "skills: [a]\n" });
  const first = await loadBundles(home);
  assert.equal(await loadBundles(home), first);
  await writeBundle(home, { name: "My Set", description: "", skills: ["a", "c"], instruction: "Now" });
  assert.deepEqual((await loadBundles(home)).bundles.get("my-set")?.skills, ["a", "c"]);
});

test("preloading says what was loaded and what is missing", async () => {
  const home = await world();
  home.settings = { disabled: ["off"] };
  const { text, loaded, missing } = await preloadSkills(["a, c", "none", "off", "a"], home, { platform: "cli" });
  assert.deepEqual(
    [loaded, missing],
    [
      ["a", "c"],
      ["none", "off"],
    ],
  );
  assert.match(text, /^\[These skills are active for the whole session: a, c\./);
  assert.deepEqual(await preloadSkills(["none"], home, { platform: "cli" }), {
    text: "",
    loaded: [],
    missing: ["none"],
  });
});
