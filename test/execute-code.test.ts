// Scripts through the program itself: their calls take the path of every call.
import assert from "node:assert/strict";
import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "./support/model-server/server.ts";
import { runHermes } from "./support/run-hermes.ts";
import { modelConfig, tempHome } from "./support/temp-home.ts";

describe("a conversation that runs scripts", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const script = (...lines: string[]) => ({
    toolCalls: [{ name: "execute_code", arguments: { code: lines.join("\n") } }],
  });
  const lastResult = () => JSON.parse(server.last.body.messages.at(-1).content);

  test("gets one result for many calls, redacted like any other", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await writeFile(join(home.project, "a.txt"), `one\nOPENAI_API_KEY=sk-proj-${"a1B2c3D4".repeat(6)}\n`);
    server.script(
      script(
        "from hermes_tools import read_file, terminal",
        "text = read_file('a.txt')['content']",
        "print('sk-proj-a1B2c3D4' in text, read_file('a.txt')['total_lines'], terminal('echo hi')['output'])",
      ),
      { text: "done" },
    );
    const run = await runHermes(["-z", "count"], { home });
    assert.equal(run.stdout, "done\n", run.stderr);
    const offered = server.requests[0]?.body.tools.find(
      (tool: { function: { name: string } }) => tool.function.name === "execute_code",
    );
    assert.match(offered.function.description, /gives: .*read_file, write_file, search_files, patch, terminal \(/);
    const { status, output, tool_calls_made } = lastResult();
    assert.deepEqual([status, output, tool_calls_made], ["success", "False 2 hi", 3]);
  });

  test("has the calls of a script judged by the guard, and what it does by itself as well", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script(
      script("from hermes_tools import terminal", "print(terminal('rm -r build')['status'])"),
      script("import os, shutil", "os.makedirs('kept')", "os.system('rm -r ' + 'kept')"),
      script("import shutil", "shutil.rmtree('kept')"),
      { text: "done" },
    );
    await runHermes(["-z", "clean"], { home });
    const results = server.requests.slice(1).map(({ body }) => JSON.parse(body.messages.at(-1).content));
    assert.equal(results[0].output, "blocked");
    for (const { status, output } of results.slice(1)) {
      assert.equal(status, "error");
      assert.match(output, /PermissionError: BLOCKED: recursive delete: .*unattended/);
    }
    await access(join(home.project, "kept"));
  });

  test("is offered no script tools it does not have", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script(script("import hermes_tools", "print([n for n in dir(hermes_tools) if n.endswith('_file')])"), {
      text: "done",
    });
    await runHermes(["-z", "x", "--toolsets", "code_execution"], { home });
    const [tool] = server.last.body.tools;
    assert.match(tool.function.description, /gives: none \(/);
    assert.equal(lastResult().output, "[]");
  });
});
