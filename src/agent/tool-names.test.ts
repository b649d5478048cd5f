import assert from "node:assert/strict";
import { test } from "node:test";
import { repairToolName } from "./assistant-message.ts";

const VALID = ["browser_click", "patch", "read_file", "search_files", "terminal", "todo", "web_search", "mcp_Git_log"];

const cases: readonly [given: string, meant: string | null][] = [
  ["Read_File", "read_file"],
  ["read-file", "read_file"],
  ["read file", "read_file"],
  ["ReadFile", "read_file"],
  ["ReadFileTool", "read_file"],
  ["read_file_tool", "read_file"],
  ["TodoTool_tool", "todo"],
  ["BrowserClick_tool", "browser_click"],
  ["patch-tool", "patch"],
  ["TERMINAL", "terminal"],
  ["terminl", "terminal"],
  ["websearch", "web_search"],
  ["MCP_git_LOG", "mcp_Git_log"],
  ["launch_rocket", null],
  ["", null],
  ["   ", null],
];

for (const [given, meant] of cases) {
  test(`"${given}" is ${meant ?? "no tool"}`, () => assert.equal(repairToolName(given, VALID), meant));
}
