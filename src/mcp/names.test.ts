import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { unicodeText } from "../../test/support/unicode-text.ts";
import { fromDoubleUnderscores, toolName } from "./settings.ts";

const cases: readonly [server: string, tool: string, name: string][] = [
  ["my-server", "read_file", "mcp_my_server_read_file"],
  ["ünï", "x", "mcp__n__x"],
  ["a.b", "get issue/1", "mcp_a_b_get_issue_1"],
  ["s", "😀", "mcp_s__"],
];

for (const [server, tool, name] of cases) {
  test(`${tool} of ${server} is called ${name}`, () => assert.equal(toolName(server, tool), name));
}

test("every name fits what providers take, and long names that differ stay different", () => {
  fc.assert(
    fc.property(unicodeText(), unicodeText(), (server, tool) => {
      assert.match(toolName(server, tool), /^[A-Za-z0-9_]{1,64}$/);
    }),
  );
  const long = "x".repeat(80);
  assert.equal(toolName("s", `${long}1`).length, 64);
  assert.notEqual(toolName("s", `${long}1`), toolName("s", `${long}2`));
});

test("the spelling with double underscores means the same tool", () => {
  assert.equal(fromDoubleUnderscores("mcp__my-server__read_file"), "mcp_my_server_read_file");
  assert.equal(fromDoubleUnderscores("mcp_a_b"), null);
});
