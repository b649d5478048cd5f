// The guards through the agent's own door: a model judges first in smart mode, and files are where commands run.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { AgentEvent } from "../../src/agent/events.ts";
import { missingBubblewrap } from "../support/engines/bubblewrap.ts";
import { withEngine } from "../support/engines/require.ts";
import { talk } from "../support/talk.ts";

const SMART = "approvals:\n  mode: smart\n  timeout: 1\n  smart_policy: Be kind.\n";
/** Asked about because of its form; what it does is nothing. */
const COMMAND = "bash -c 'echo judged'";
const call = { toolCalls: [{ name: "terminal", arguments: { command: COMMAND } }] };

const results = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === "tool_end" ? [JSON.parse(String(event.result))] : []));
const asks = (events: readonly AgentEvent[]) => events.filter((event) => event.type === "ask").length;

test("in smart mode a command runs on the model's word, this once, and nobody is asked", async (t) => {
  const { server, say } = await talk(t, { config: SMART, wish: { interactive: true, yolo: false } });
  server.script(call, { text: "APPROVE" }, { text: "done" });
  const events = await say("go");
  const [result] = results(events);
  assert.equal(result.output, "judged");
  assert.match(result.approval, /approving model/);
  assert.equal(asks(events), 0);
  const judged = JSON.stringify(server.requests[1]?.body);
  assert.match(judged, /Be kind\./);
  assert.match(judged, /echo judged/);
});

test("in smart mode a refusal is final, and anything unclear is a question to the user", async (t) => {
  const { server, say } = await talk(t, { config: SMART, wish: { interactive: true, yolo: false } });
  server.script(call, { text: "DENY" }, { text: "a pity" });
  const [refused] = results(await say("go"));
  assert.match(refused.error, /approving model refused/);
  server.script(call, { text: "It depends." }, { text: "a pity" });
  const events = await say("again");
  assert.equal(asks(events), 1);
});

await withEngine("bubblewrap", missingBubblewrap, () => {
  test("unattended with backend auto, commands and file tools share one sandbox", async (t) => {
    const { server, say, project, osHome } = await talk(t, { config: "terminal:\n  backend: auto\n" });
    const write = (path: string) => ({ name: "write_file", arguments: { path, content: "x\n" } });
    server.script(
      {
        toolCalls: [
          { name: "terminal", arguments: { command: "echo inside > /tmp/only-there; echo here > made.txt" } },
        ],
      },
      { toolCalls: [{ name: "read_file", arguments: { path: "/tmp/only-there" } }] },
      { toolCalls: [write("kept.txt")] },
      { toolCalls: [write("~/outside.txt")] },
      { text: "done" },
    );
    const [, seen, kept, outside] = results(await say("go"));
    assert.equal(seen.content, "1|inside");
    assert.equal(kept.bytes_written, 2);
    assert.match(outside.error, /read-only/i);
    assert.equal(await readFile(join(project, "kept.txt"), "utf8"), "x\n");
    await assert.rejects(readFile(join(osHome, "outside.txt")));
  });
});
