// What is seen of the work on a real terminal: output on demand, the end of a running command, tasks, thinking, what was taken back.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { RecordedRequest } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const SETTINGS =
  "onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\napprovals:\n  destructive_slash_confirm: false\n";
const MARKDOWN =
  "## Result\n\nSee [the docs](https://docs.test/a):\n\n- a point that is long enough to be wrapped once on a terminal that has eighty columns\n\n```ts\nconst a = 1;\n```\n\n| Name | n |\n|---|--:|\n| 行 | 2 |\n\nThe end.";

function newest(request: RecordedRequest): string {
  const { role, content } = request.body.messages.at(-1);
  return `${role}: ${typeof content === "string" ? content : JSON.stringify(content)}`;
}

describe("the work on the screen", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());

  test("output opens with a key, a running command shows its end, tasks stay in sight, what is taken back is struck out", async () => {
    await using at = await tempHome({ "config.yaml": modelConfig(server) + SETTINGS });
    const command =
      "for i in 1 2 3 4 5 6 7; do echo step $i of many; done; until [ -e go ]; do sleep 0.1; done; echo over";
    const todos = [
      { id: "1", content: "look around", status: "completed" },
      { id: "2", content: "build it", status: "in_progress" },
    ];
    server.otherwise((request) => {
      const said = newest(request);
      if (said.includes("please build"))
        return {
          thinking: "I should plan first.",
          toolCalls: [
            { name: "todo", arguments: { todos } },
            { name: "terminal", arguments: { command } },
          ],
        };
      return said.startsWith("tool:") ? { text: MARKDOWN } : { text: "ok" };
    });
    await using screen = await TerminalScreen.start([], { home: at, columns: 80, rows: 30 });
    await screen.waitFor("fake-model");
    await screen.say("please build");
    await screen.waitFor(/│ step 3 of many\n.*│ step 4[\s\S]*│ step 7 of many/, { history: false });
    assert.match(await screen.text(), /Tasks 1\/2\n✓ look around\n▸ build it/);
    await screen.say("/todo");
    await screen.waitFor("The task list is hidden");
    await writeFile(join(at.project, "go"), "");
    const text = await screen.waitFor("The end.");
    assert.doesNotMatch(await screen.waitForGone("│ step 7 of many"), /Tasks 1\/2/);
    assert.match(text, /❯ \/todo\n\nThe task list is hidden/);
    assert.match(
      text,
      /\nResult\n\nSee the docs \(https:\/\/docs\.test\/a\):\n\n- a point[^\n]*\n {2}\S[\s\S]*\n {2}ts\n {2}const a = 1;\n\n Name │ +n\n/,
    );

    await screen.waitForGone("esc to stop");
    const before = await screen.text({ history: true });
    await screen.press("C-o");
    await screen.waitFor(
      /💻 \$ for i in 1 2[^\n]*\n\n {2}\$ for i[\s\S]*step 7 of many\n {2}over\n+call 2 of 2 .*Esc closes/,
    );
    await screen.press("Left");
    await screen.waitFor(/✓ look around\n {2}▸ build it\n+call 1 of 2/, { history: false });
    await screen.press("C-o");
    await screen.waitForGone("call 1 of 2");
    await screen.press("C-t");
    await screen.waitFor(/Thinking of the last turn\n\n {2}I should plan first\./, { history: false });
    await screen.press("Escape");
    await screen.waitForGone("Thinking of the last turn");
    const uncounted = (shown: string) => shown.replace(/\d+s/g, "");
    assert.equal(uncounted(await screen.text({ history: true })), uncounted(before), "everything is where it was");

    await screen.say("/undo");
    await screen.waitFor(/❯ \/undo\n\n↶ Undid 1 message/);
    await screen.waitFor(/❯ please build/, { history: false });
    assert.match(await screen.styled(), /\u001b\[[\d;]*9m[^\u001b]*The end\.\n\n\u001b\[[\d;]*m/);
  });
});
