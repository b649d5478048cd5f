import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { skillText } from "../support/skills-home.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";

describe("skills through the program", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  test("what the model saves as a skill in one run it can load in the next", async (t) => {
    const home = await tempHome({ "config.yaml": modelConfig(server) });
    t.after(() => home[Symbol.asyncDispose]());
    const content = skillText("release", "Release the package", "", "1. Run the tests.\n2. Tag the heron.\n");
    server.script(
      {
        toolCalls: [
          { name: "skill_manage", arguments: { action: "create", name: "release", category: "dev", content } },
        ],
      },
      (request) => ({ text: request.raw.includes("Skill 'release' created.") ? "Saved." : "It failed." }),
    );
    const first = await runHermes(["-z", "remember how we release"], { home });
    assert.equal(first.stdout, "Saved.\n", first.stderr);
    assert.equal(await readFile(home.at("skills/dev/release/SKILL.md"), "utf8"), content);

    server.script({ toolCalls: [{ name: "skill_view", arguments: { name: "release" } }] }, (request) => ({
      text: request.raw.includes("Tag the heron") ? "I know." : "I do not know.",
    }));
    const second = await runHermes(["-z", "release it"], { home });
    assert.equal(second.stdout, "I know.\n", second.stderr);
    assert.equal(JSON.parse(await readFile(home.at("skills/.usage.json"), "utf8")).release.view_count, 1);
  });

  test("hermes skills lists and shows them", async (t) => {
    const home = await tempHome({ "skills/dev/release/SKILL.md": skillText("release", "Release the package") });
    t.after(() => home[Symbol.asyncDispose]());
    const list = await runHermes(["skills", "list"], { home });
    assert.match(list.stdout, /release {2}Release the package/);
    assert.equal((await runHermes(["skills", "view", "none"], { home })).code, 1);
  });

  test("-s puts skills in front of the first message as it is sent, and a missing one ends the run", async (t) => {
    const home = await tempHome({
      "config.yaml": modelConfig(server),
      "skills/dev/release/SKILL.md": skillText("release", "Release the package", "", "Tag the heron.\n"),
      "skills/notes/SKILL.md": skillText("notes", "Write notes", "", "Name the owl.\n"),
    });
    t.after(() => home[Symbol.asyncDispose]());
    server.script({ text: "Ready." }, { text: "Still." });
    const run = await runHermes(["-s", "release,notes", "-z", "go"], { home });
    assert.equal(run.stdout, "Ready.\n", run.stderr);
    const body = server.last.body as { messages: { role: string; content: string }[] };
    const sent = body.messages.at(-1)?.content ?? "";
    assert.match(
      sent,
      /^\[These skills are active for the whole session: release, notes\.[\s\S]*heron[\s\S]*owl[\s\S]*\n\ngo$/,
    );
    const list = await runHermes(["sessions", "list", "--json"], { home });
    assert.doesNotMatch(list.stdout, /heron/, "titles and previews see what was typed");

    await runHermes(["-c", "-z", "and now"], { home });
    const next = server.last.body as typeof body;
    assert.equal(next.messages.at(-1)?.content, "and now");
    assert.ok(
      next.messages.some(({ content }) => content === sent),
      "the same bytes again",
    );
    const usage = JSON.parse(await readFile(home.at("skills/.usage.json"), "utf8"));
    assert.equal(usage.notes.use_count, 1);

    const missing = await runHermes(["--skills", "release", "-s", "nothing", "-z", "go"], { home });
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /No such skill: nothing/);
    server.script({ text: "Plain." });
    await runHermes(["--ignore-rules", "-s", "release", "-z", "go"], { home });
    const plain = (server.last.body as typeof body).messages;
    assert.equal(plain.at(-1)?.content, "go");
    assert.match(plain[0]?.content ?? "", /<available_skills>/, "its skill tools have something to load");
  });

  test("hermes bundles makes, shows and removes a bundle", async (t) => {
    const home = await tempHome({
      "skills/a/SKILL.md": skillText("a", "First"),
      "skills/b/SKILL.md": skillText("b", "Second"),
    });
    t.after(() => home[Symbol.asyncDispose]());
    const bundles = (...args: string[]) => runHermes(["bundles", ...args], { home });
    assert.match((await bundles()).stdout, /No bundles yet/);
    const made = await bundles(
      "create",
      "My Morning",
      "--skill",
      "a",
      "--skill",
      "b",
      "-d",
      "Start",
      "--instruction",
      "Be quick",
    );
    assert.match(made.stdout, /\/my-morning loads a, b/, made.stderr);
    assert.match((await bundles("create", "My Morning", "--skill", "a")).stderr, /already.*--force replaces it/);
    assert.match((await bundles("create", "x", "--skill", "none")).stderr, /There is no skill none/);
    assert.match((await bundles("create", "x")).stderr, /A bundle needs skills/);
    assert.match((await bundles("show", "my_morning")).stdout, /✓ a\n {2}✓ b\nInstruction: Be quick/);
    assert.match((await bundles("list")).stdout, /\/my-morning {2}a, b {2}— Start/);
    assert.equal((await bundles("delete", "my-morning")).code, 0);
    assert.equal((await bundles("delete", "my-morning")).code, 1);
  });
});
