import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { skillText } from "../support/skills-place.ts";
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
});
