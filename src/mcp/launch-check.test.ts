// Nothing here is ever started: the lines go to the classifier only.
import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultConfig } from "../home/config/schema.ts";
import { commandLine, judgeLaunch, launchRefusal } from "./launch-check.ts";

const facts = (change: object = {}) => ({
  config: { ...defaultConfig(), ...change },
  home: "/u/.hermes",
  osHome: "/u",
  sudoPasswordSet: false,
  yolo: false,
});
const inline = commandLine({ command: "bash", args: ["--norc", "-c", "echo hello"] });

test("ordinary server commands are allowed", () => {
  for (const args of [["-y", "@scope/server", "/tmp"], ["server@1.0"]]) {
    assert.equal(judgeLaunch(commandLine({ command: "npx", args }), facts()).type, "allow");
  }
});

test("a program on the command line needs a yes, and the yes holds for exactly this line", () => {
  assert.equal(judgeLaunch(inline, facts()).type, "ask");
  assert.equal(judgeLaunch(inline, facts({ command_allowlist: [inline] })).type, "allow");
  assert.equal(judgeLaunch(`${inline} more`, facts({ command_allowlist: [inline] })).type, "ask");
  assert.equal(judgeLaunch(inline, { ...facts(), yolo: true }).type, "allow");
});

test("the refusal names the server and what to do", () => {
  assert.match(launchRefusal("x", inline, facts()) ?? "", /needs your approval.*hermes mcp test x/s);
  const denied = facts({ approvals: { ...defaultConfig().approvals, deny: ["npx *"] } });
  assert.match(launchRefusal("x", "npx thing", denied) ?? "", /forbids its command.*mcp_servers\.x\.command/s);
});
