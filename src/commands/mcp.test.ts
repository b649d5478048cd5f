import assert from "node:assert/strict";
import { test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";
import { tinyServer } from "../../test/support/mcp/hub-rig.ts";

test("/reload-mcp asks first, and says how each server is", async (t) => {
  const rig = await commandRig(t, {
    "config.yaml": `mcp_servers: ${JSON.stringify({ tiny: tinyServer(), none: { command: "no-such-program" } })}\n`,
  });
  rig.text();
  await rig.type("/reload-mcp");
  assert.match(rig.text(), /asked: Reconnect the MCP servers\?\nNothing changed\./);
  rig.answers.push("always");
  await rig.type("/reload_mcp");
  assert.match(rig.text(), /tiny: 8 tools[\s\S]*none: MCP server "none": the command "no-such-program" was not found/);
  assert.equal(rig.ctx.home.config().approvals.mcp_reload_confirm, false);
  await rig.type("/reload-mcp");
  assert.doesNotMatch(rig.text(), /asked/);
  await rig.ctx.conversation.close("cli_close");
});

test("/reload-mcp without servers says so", async (t) => {
  const rig = await commandRig(t);
  rig.text();
  await rig.type("/reload-mcp now");
  assert.match(rig.text(), /No MCP servers configured/);
});
