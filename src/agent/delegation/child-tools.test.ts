import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { recordingLog } from "../../../test/support/tool-context.ts";
import { defaultConfig } from "../../home/config/schema.ts";
import { loadTools } from "../../tools/toolset/discover.ts";
import { registry } from "../../tools/toolset/registry.ts";
import { childTools } from "./spawn.ts";

const parent = new Set([
  ...["terminal", "process", "read_file", "write_file", "patch", "search_files", "todo"],
  ...["delegate_task", "clarify", "memory", "send_message", "cronjob", "execute_code", "mcp_github_issue"],
]);

describe("the tools of a child", () => {
  before(async () => {
    await loadTools(recordingLog());
    registry.register({
      name: "mcp_github_issue",
      toolset: "mcp-github",
      description: "x",
      parameters: { type: "object" },
      handler: () => "",
    });
  });
  after(() => void registry.deregister("mcp_github_issue"));

  const { delegation } = defaultConfig();
  const choose = (asked?: readonly string[], change: { mayDelegate?: boolean; inherit?: boolean } = {}) => {
    const settings = { ...delegation, inherit_mcp_toolsets: change.inherit ?? true };
    const { only, unknown } = childTools(parent, asked, { mayDelegate: change.mayDelegate ?? false, settings });
    return { only: [...only].sort(), unknown };
  };

  test("are the parent's, without those that speak to the user or for the parent", () => {
    const { only } = choose();
    for (const gone of ["delegate_task", "clarify", "memory", "send_message", "cronjob"])
      assert.ok(!only.includes(gone), gone);
    assert.ok(only.includes("execute_code") && only.includes("terminal") && only.includes("mcp_github_issue"));
  });

  test("may be asked for by toolset, and are never more than the parent has", () => {
    assert.deepEqual(choose(["todo", "web", "memory", "clarify"]).only, ["mcp_github_issue", "todo"]);
    assert.deepEqual(choose(["all"]).only, choose().only);
    assert.deepEqual(choose(["nonsense"]), { only: choose().only, unknown: ["nonsense"] });
    assert.deepEqual(choose(["moa"]), { only: choose().only, unknown: ["moa"] }, "a toolset whose tools are not there");
  });

  test("hold the servers' tools only where the settings say so", () => {
    assert.deepEqual(choose(["todo"], { inherit: false }).only, ["todo"]);
    assert.ok(!choose(undefined, { inherit: false }).only.includes("mcp_github_issue"));
    assert.deepEqual(choose(["mcp-github"], { inherit: false }).only, ["mcp_github_issue"]);
  });

  test("include delegate_task for an orchestrator alone", () => {
    assert.ok(choose(undefined, { mayDelegate: true }).only.includes("delegate_task"));
    assert.ok(choose(["todo"], { mayDelegate: true }).only.includes("delegate_task"));
  });
});
