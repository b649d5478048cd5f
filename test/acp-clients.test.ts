// Other clients of editors, and what they bring along: `acpx`, which prints every line of the protocol, and MCP servers of a client.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { McpServer } from "@agentclientprotocol/sdk";
import { startEditor } from "./support/editor.ts";
import { smallServer } from "./support/mcp/http-server.ts";
import { tinyServer } from "./support/mcp/hub-rig.ts";
import type { RecordedRequest, Reply } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { environmentFor, launcher } from "./support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

let model: ModelServer;
let home: TempHome;
let reply: (request: RecordedRequest) => Reply | Promise<Reply>;

before(async () => {
  model = await ModelServer.start();
});
beforeEach(async () => {
  home = await tempHome({ "config.yaml": `${modelConfig(model)}terminal:\n  sandbox: "off"\n` });
  reply = () => ({ text: "ok" });
  model.clear().otherwise((request) => (request.body.tools?.length ? reply(request) : { text: "A title" }));
});
after(() => model.close());

const lastRole = ({ body }: RecordedRequest) => body.messages.at(-1).role;
const writes = (request: RecordedRequest): Reply =>
  lastRole(request) === "tool"
    ? { text: "done" }
    : { toolCalls: [{ name: "write_file", arguments: { path: "a.txt", content: "hi\n" } }] };

test("the guides name these clients as they are used here", async () => {
  const guide = (name: string) => readFile(join(import.meta.dirname, "..", "docs", "guide", name), "utf8");
  const { devDependencies, dependencies } = JSON.parse(
    await readFile(join(import.meta.dirname, "package.json"), "utf8"),
  );
  assert.match(await guide("editors.md"), /`npx acpx --agent "hermes acp" exec "[^"]+"`/);
  const version = { ...devDependencies, ...dependencies }["@modelcontextprotocol/inspector-cli"];
  assert.ok((await guide("mcp-server.md")).includes(`npx @modelcontextprotocol/inspector@${version} hermes mcp serve`));
});

describe("acpx", () => {
  const program = join(dirname(createRequire(import.meta.url).resolve("acpx/package.json")), "dist", "cli.js");

  /** Runs it in the project of the home; resolves to what it printed. */
  function acpx(
    ...args: string[]
  ): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
    const agent = `${process.execPath} ${launcher} acp`;
    const child = spawn(process.execPath, [program, "--agent", agent, ...args], {
      cwd: home.project,
      env: environmentFor({ home }),
    });
    let out = "";
    let err = "";
    child.stdout.on("data", (bytes: Buffer) => {
      out += bytes.toString("utf8");
    });
    child.stderr.on("data", (bytes: Buffer) => {
      err += bytes.toString("utf8");
    });
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (code) => resolve({ code, out, err }));
    });
  }

  /** The lines without what differs from run to run. */
  const golden = (out: string) =>
    out
      .split("\n")
      .filter(Boolean)
      .map((line) =>
        line
          .replaceAll(home.osHome, "HOME")
          .replace(/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "SESSION")
          .replace(/tc-[0-9a-f]{12}/g, "tc-CALL")
          .replace(/"used":\d+/g, '"used":0')
          .replace(/"availableCommands":\[.*\]/, '"availableCommands":[]')
          .replace(/"version":"[^"]+"/g, '"version":"V"')
          .replace(/"updatedAt":"[^"]+"/, '"updatedAt":"NOW"'),
      )
      // The title comes when it comes.
      .filter((line) => !line.includes("session_info_update"));

  // After a wanted change: ACP_GOLDEN=1 node --test test/acp-clients.test.ts, and read what differs.
  test("sees the lines of the golden file when an edit is approved", async () => {
    reply = writes;
    const { code, out } = await acpx("--format", "json", "--approve-all", "--no-terminal", "exec", "write a file");
    assert.equal(code, 0);
    const file = join(import.meta.dirname, "fixtures", "acp", "edit-approved.jsonl");
    if (process.env.ACP_GOLDEN) await writeFile(file, `${golden(out).join("\n")}\n`);
    assert.deepEqual(golden(out), (await readFile(file, "utf8")).split("\n").filter(Boolean));
    assert.equal(await readFile(join(home.project, "a.txt"), "utf8"), "hi\n");
  });

  test("denies an edit, and the file is not there", async () => {
    reply = writes;
    const { out } = await acpx("--format", "text", "--deny-all", "exec", "write a file");
    assert.match(out, /write: a\.txt \(failed\)/);
    assert.match(out, /\[done\] end_turn/);
    await assert.rejects(readFile(join(home.project, "a.txt")));
  });

  test("goes on with a session in another process, and cancels a prompt that runs", async () => {
    const begun = Promise.withResolvers<void>();
    assert.equal((await acpx("sessions", "new", "--name", "x")).code, 0);
    reply = async (request) => {
      begun.resolve();
      await request.clientLeft;
      return { text: "too late" };
    };
    const running = acpx("--ttl", "1", "--format", "text", "prompt", "-s", "x", "a long one");
    await begun.promise;
    const cancelled = await acpx("cancel", "-s", "x");
    assert.equal(cancelled.code, 0, cancelled.err);
    assert.match((await running).out, /cancelled/);
  });
});

describe("MCP servers of a client", () => {
  const names = () =>
    turnRequests()
      .at(-1)
      ?.body.tools.map((tool: { function: { name: string } }) => tool.function.name)
      .filter((name: string) => name.startsWith("mcp_"));
  const turnRequests = () => model.requests.filter(({ body }) => body.tools?.length);

  test("over stdio and HTTP: their tools are there with the first prompt, for this conversation alone", async () => {
    await using closers = new AsyncDisposableStack();
    const remote = await smallServer();
    closers.defer(() => remote.close());
    await using editor = await startEditor({ home });
    const tiny = tinyServer();
    const mcpServers: McpServer[] = [
      { name: "local", command: tiny.command, args: [...tiny.args], env: [{ name: "MINE", value: "brought along" }] },
      { type: "http", name: "remote", url: remote.url, headers: [] },
    ];
    const { sessionId } = await editor.agent.request("session/new", { cwd: home.project, mcpServers });
    reply = (request) =>
      lastRole(request) === "tool" ? { text: "done" } : { toolCalls: [{ name: "mcp_local_env", arguments: {} }] };
    await editor.say(sessionId, "what is in your environment?");
    assert.ok(names().includes("mcp_local_echo"), String(names()));
    assert.ok(
      names().some((name: string) => name.startsWith("mcp_remote_")),
      String(names()),
    );
    const told = turnRequests()
      .findLast((one) => lastRole(one) === "tool")
      ?.body.messages.at(-1).content;
    assert.match(told, /MINE/);
    reply = () => ({ text: "ok" });
    const other = await editor.begin();
    await editor.say(other, "hello");
    assert.deepEqual(names(), []);
  });
});
