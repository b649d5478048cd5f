// The first five minutes, in a real terminal: the screen says what it is, /setup connects a model without leaving it, `hermes setup` does
// the same on the command line.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { builtProgram, repository } from "../support/run-hermes.ts";
import { tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const KEY = "key-of-mine-123";

/** In front of the fake model: wants a key for everything. */
async function guarded(t: TestContext, model: ModelServer): Promise<string> {
  const server = createServer(async (request, response) => {
    if (request.headers.authorization !== `Bearer ${KEY}`) {
      response.writeHead(401, { "content-type": "application/json" });
      return void response.end('{"error":{"message":"no"}}');
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const headers = { "content-type": "application/json" };
    const init = request.method === "POST" ? { method: "POST", headers, body } : {};
    const answer = await fetch(`${model.origin}${request.url}`, init);
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.closeAllConnections());
  t.after(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

describe("the first five minutes", { skip: tmuxMissing() }, () => {
  test("npm start says what it is and offers /setup, which connects a model without leaving the screen", async (t) => {
    const model = await ModelServer.start();
    t.after(() => model.close());
    model.models = ["small", "large"];
    model.window = 200_000;
    model.otherwise({ text: "hello from the real one" });
    const url = await guarded(t, model);
    await using home = await tempHome();
    // As npm starts it.
    const env = { npm_lifecycle_event: "start", npm_package_json: join(builtProgram ?? repository, "package.json") };
    await using screen = await TerminalScreen.start([], { home, env, columns: 80, rows: 24 });
    const first = await screen.waitFor("/setup");
    assert.match(first, /Hermes is a personal AI agent/);
    await screen.waitFor("demo │");
    await screen.say("/setup model");
    await screen.waitFor("more; type to search");
    await screen.press("Escape");
    await screen.waitFor("Setup cancelled; nothing was saved.");
    await screen.say("/setup model");
    const list = await screen.waitFor("more; type to search");
    assert.match(
      list,
      /OpenRouter[\s\S]*Anthropic[\s\S]*OpenAI[\s\S]*Google[\s\S]*A server on this machine[\s\S]*Another OpenAI-compatible/,
    );
    await screen.say("another open");
    await screen.waitFor("Server URL");
    await screen.say(url);
    await screen.waitFor("API key for 127.0.0.1");
    await screen.type("wrong-key-123");
    await screen.waitFor("•••••••••••••");
    await screen.press("Enter");
    await screen.waitFor("The server did not accept this key");
    await screen.press("Enter");
    await screen.waitFor(/API key for 127\.0\.0\.1[\s\S]*\n>\s*\n/, { history: false });
    await screen.say(KEY);
    await screen.waitFor("Which model?");
    await screen.say("lar");
    await screen.waitFor("Type a message and press Enter.");
    const shown = await screen.text({ history: true });
    assert.match(shown, /✓ large at 127/);
    assert.doesNotMatch(shown, /wrong-key|key-of-mine/);
    await screen.say("hi");
    await screen.waitFor("hello from the real one");
    assert.equal((model.last.body as { model: string }).model, "large");
    await screen.say("/quit");
    assert.match(await screen.waitFor("Resume this conversation with"), /npm start -- --resume/);
    assert.match(await readFile(home.at(".env"), "utf8"), new RegExp(`_API_KEY=${KEY}\n`));
    assert.doesNotMatch(await readFile(home.at("config.yaml"), "utf8"), /key-of-mine/);
  });

  test("hermes setup fits 80x24, is filtered by typing, and Ctrl+C says what was saved", async () => {
    await using home = await tempHome();
    await using screen = await TerminalScreen.start(["setup"], { home, columns: 80, rows: 24 });
    await screen.waitFor("Welcome to Hermes");
    await screen.press("Enter");
    const list = await screen.waitFor("Which provider?", { history: false });
    assert.match(list, /❯ OpenRouter[\s\S]*more; type to search\s+↑↓ move/);
    await screen.say("qwen");
    await screen.waitFor("API key for Alibaba Cloud (Qwen) (not shown; Enter = choose another provider):");
    await screen.type("some-secret");
    await screen.press("C-c");
    assert.equal(await screen.exitCode(), 1);
    const shown = await screen.text({ history: true });
    assert.match(shown, /Setup cancelled; nothing was saved\./);
    assert.doesNotMatch(shown, /some-secret/);
  });

  test("a provider that cannot be used is told, and setup is offered; then the screen opens", async (t) => {
    const model = await ModelServer.start();
    t.after(() => model.close());
    model.window = 200_000;
    await using home = await tempHome({ "config.yaml": "model:\n  provider: openrouter\n  default: x/y\n" });
    await using screen = await TerminalScreen.start([], { home, columns: 80, rows: 24 });
    await screen.waitFor(/No API key for provider openrouter[\s\S]*Set up a model now\? \[Y\/n\]/);
    await screen.press("Enter");
    await screen.waitFor("Which provider?", { history: false });
    await screen.say("another open");
    await screen.waitFor("Server URL");
    await screen.say(model.url);
    await screen.waitFor("Which model?", { history: false });
    await screen.press("Enter");
    await screen.waitFor("⚕ fake-model │");
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
  });
});
