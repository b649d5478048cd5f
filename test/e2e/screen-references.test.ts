import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

test("on the screen a message is sent with what it points at, and the user sees how much that was", {
  skip: tmuxMissing(),
}, async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  await using home = await tempHome({ "config.yaml": modelConfig(server) });
  await writeFile(join(home.project, "notes.txt"), "the heron flies at dawn\n");
  server.otherwise({ text: "I have read it." });
  await using screen = await TerminalScreen.start([], { home });
  await screen.waitFor("fake-model");
  await screen.say("what is in @file:notes.txt and @file:gone.txt");
  const shown = await screen.waitFor("I have read it.");
  assert.match(shown, /❯ what is in @file:notes\.txt and @file:gone\.txt/);
  assert.match(shown, /@file:gone\.txt: file not found/);
  assert.match(shown, /\[@ context: 2 ref\(s\), \d+ tokens\]/);
  const sent = server.requests[0]?.body.messages.at(-1).content;
  assert.match(sent, /--- Attached Context ---[\s\S]*the heron flies at dawn/);
});
