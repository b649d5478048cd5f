// Memories, skills and usage counts of the Python original: read, used, and left as they are where nobody changed them.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";

const MEMORY =
  "User's project is a Rust service\n§\nThe staging host is reached through the bastion\n§\nTests run with cargo nextest";
const USER = "Name: Ada\n§\nPrefers short answers";
const SKILL = `---
name: deploy-service
description: "Deploy the service to staging and watch it"
version: 1.2.0
author: Ada
license: MIT
metadata:
  hermes:
    tags: [deploy, staging]
    related_skills: [rollback]
---

# Deploy

1. Build the image.
2. Look at \${HERMES_SKILL_DIR}/references/hosts.md.
`;
/** As its own writer lays it out: sorted keys, two blanks, ISO times with an offset. */
const USAGE = `{
  "deploy-service": {
    "archived_at": null,
    "created_at": "2026-01-02T03:04:05.678901+00:00",
    "created_by": "agent",
    "last_patched_at": null,
    "last_used_at": "2026-02-03T04:05:06+00:00",
    "last_viewed_at": "2026-02-03T04:05:06+00:00",
    "patch_count": 0,
    "pinned": true,
    "state": "active",
    "use_count": 7,
    "view_count": 9
  },
  "gone-long-ago": {
    "a_field_of_tomorrow": [1, 2],
    "archived_at": "2026-03-01T00:00:00+00:00",
    "created_at": "2025-12-01T00:00:00+00:00",
    "created_by": null,
    "state": "archived",
    "use_count": 1
  }
}
`;

const FILES = {
  "memories/MEMORY.md": MEMORY,
  "memories/USER.md": USER,
  "skills/ops/deploy-service/SKILL.md": SKILL,
  "skills/ops/deploy-service/references/hosts.md": "staging: 10.0.0.5\n",
  "skills/ops/DESCRIPTION.md": "---\ndescription: Keeping things running\n---\n",
  "skills/.usage.json": USAGE,
  "skills/.bundled_manifest": "some-old-skill:0123456789abcdef0123456789abcdef\n",
  "skill-bundles/morning.yaml": "name: morning\nskills:\n  - deploy-service\n",
  ".no-bundled-skills": "",
};

async function fingerprints(dir: string, skip: ReadonlySet<string>): Promise<Record<string, string>> {
  const names = await readdir(dir, { recursive: true, withFileTypes: true });
  const found: Record<string, string> = {};
  for (const entry of names.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(dir.length + 1);
    if (Object.hasOwn(FILES, name) && !skip.has(name))
      found[name] = createHash("sha256")
        .update(await readFile(path))
        .digest("hex");
  }
  return found;
}

describe("memories and skills of the original", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  test("looking and talking changes no byte of them", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server), ...FILES });
    const before = await fingerprints(home.dir, new Set());
    assert.equal(Object.keys(before).length, Object.keys(FILES).length);
    server.script({ text: "Hello Ada." });
    const run = await runHermes(["-z", "hello"], { home });
    assert.equal(run.stdout, "Hello Ada.\n", run.stderr);
    const system = JSON.stringify(server.last.body);
    for (const part of [
      "The staging host is reached through the bastion",
      "Prefers short answers",
      "deploy-service: Deploy the service",
    ])
      assert.ok(system.includes(part), part);
    assert.ok(system.includes("ops: Keeping things running"));
    for (const args of [
      ["memory", "show"],
      ["memory", "status"],
      ["skills", "list"],
      ["skills", "view", "deploy-service"],
      ["skills", "doctor"],
      ["bundles"],
    ])
      assert.equal((await runHermes(args, { home })).code, 0, args.join(" "));
    assert.deepEqual(await fingerprints(home.dir, new Set()), before);
  });

  test("a write and a view change what they are about and nothing else, in the original's own form", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server), ...FILES });
    const touched = new Set(["memories/MEMORY.md", "skills/.usage.json"]);
    const before = await fingerprints(home.dir, touched);
    server.script(
      { toolCalls: [{ name: "memory", arguments: { action: "add", target: "memory", content: "Uses tokio" } }] },
      { toolCalls: [{ name: "skill_view", arguments: { name: "deploy-service" } }] },
      { text: "Done." },
    );
    const run = await runHermes(["-z", "remember that and look it up"], { home });
    assert.equal(run.stdout, "Done.\n", run.stderr);
    assert.equal(await readFile(home.at("memories/MEMORY.md"), "utf8"), `${MEMORY}\n§\nUses tokio`);
    assert.deepEqual(await fingerprints(home.dir, touched), before);

    const text = await readFile(home.at("skills/.usage.json"), "utf8");
    const usage = JSON.parse(text);
    const { last_used_at, last_viewed_at, ...rest } = usage["deploy-service"];
    assert.deepEqual(rest, {
      archived_at: null,
      created_at: "2026-01-02T03:04:05.678901+00:00",
      created_by: "agent",
      last_patched_at: null,
      patch_count: 0,
      pinned: true,
      state: "active",
      use_count: 8,
      view_count: 10,
    });
    assert.ok(Date.parse(last_used_at) > Date.parse("2026-02-03") && Date.parse(last_viewed_at) > 0);
    assert.deepEqual(usage["gone-long-ago"], JSON.parse(USAGE)["gone-long-ago"], "what nobody here knows is kept");
    assert.deepEqual(Object.keys(usage), Object.keys(usage).sort());

    const undone = await runHermes(["memory", "undo"], { home });
    assert.equal(undone.code, 0, undone.stderr);
    assert.equal(await readFile(home.at("memories/MEMORY.md"), "utf8"), MEMORY);
  });
});
