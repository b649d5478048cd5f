// Tools that are not in the list, used through the program: found with tool_search, reached with tool_call, against real things on loopback.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { missingChromium, type Site, startSite } from "../support/engines/chromium.ts";
import { withEngine } from "../support/engines/require.ts";
import type { Reply } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { type RunResult, runHermes } from "../support/run-hermes.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";

const PAGE = `<!doctype html><title>Harbour</title><article><h1>Harbour news</h1>
  <p>The pilot boat Heron leaves at noon. ${"The harbour master writes about tides and ropes. ".repeat(12)}</p>
  <p><a href="/second">The second page</a></p></article>`;
const FOUND = { results: [{ url: "https://harbour.test/heron", title: "Heron", content: "A pilot boat" }] };

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

type Call = readonly [name: string, args: Readonly<Record<string, unknown>>];
const bridged = ([name, args]: Call): Reply => ({
  toolCalls: [{ name: "tool_call", arguments: { name, arguments: args } as never }],
});

let server: ModelServer;
let site: Site;
before(async () => {
  server = await ModelServer.start();
  site = await startSite({
    "/page": PAGE,
    "/search": (_request, response) => void response.end(JSON.stringify(FOUND)),
  });
});
beforeEach(() => void server.clear());
after(async () => {
  await server.close();
  await site.close();
});

/** One run: a search for each wish, then the calls. Resolves to the results of all of them, in order. */
async function play(wishes: readonly string[], calls: readonly Call[], config = ""): Promise<readonly string[]> {
  await using home = await tempHome({ "config.yaml": `${modelConfig(server)}${config}` });
  await writeFile(join(home.project, "dot.png"), Buffer.from(DOT, "base64"));
  server.script(
    ...wishes.map((query): Reply => ({ toolCalls: [{ name: "tool_search", arguments: { query } }] })),
    ...calls.map(bridged),
    { text: "done" },
  );
  const run: RunResult = await runHermes(["-z", "go"], { home, timeoutMs: 90_000 });
  assert.equal(run.stdout, "done\n", run.stderr);
  const [first] = server.requests;
  for (const { body } of server.requests)
    assert.equal(JSON.stringify(body.tools), JSON.stringify(first?.body.tools), "the list is the same, byte for byte");
  return server.last.body.messages
    .filter(({ role }: { role: string }) => role === "tool")
    .map(({ content }: { content: string }) => content);
}

const open = "security: { allow_private_urls: true }\n";

describe("tools behind the search", () => {
  test("a search and a page of the web", async () => {
    const [found = "", hits = "", page = ""] = await play(
      ["search the web"],
      [
        ["web_search", { query: "pilot boat" }],
        ["web_extract", { urls: [`${site.url}/page`] }],
      ],
      `${open}web: { search_backend: searxng, extract_backend: local, searxng: { base_url: "${site.url}" } }\n`,
    );
    assert.ok(
      JSON.parse(found).matches.some(({ name }: { name: string }) => name === "web_search"),
      found,
    );
    assert.match(hits, /harbour\.test\/heron/);
    assert.match(page, /pilot boat Heron leaves at noon/);
    assert.match(page, /untrusted_tool_result source="web_extract"/);
  });

  test("a page of this machine is refused without the setting", async () => {
    const before = site.asked.length;
    const [page = ""] = await play([], [["web_extract", { urls: [`${site.url}/page`] }]]);
    assert.match(page, /allow_private_urls/);
    assert.equal(site.asked.length, before, "nobody asked for it");
  });

  test("a picture is shown to a model that sees; what is not set up says what is missing", async () => {
    const results = await play(
      ["look at an image", "make an image", "speak a text aloud"],
      [
        ["vision_analyze", { image_url: "nowhere.png", question: "what is it?" }],
        ["vision_analyze", { image_url: "dot.png", question: "what is it?" }],
        ["image_generate", { prompt: "a heron" }],
        ["text_to_speech", { text: "hello" }],
      ],
    );
    const [nowhere, image, drawing, speech] = results.slice(3).map((result) => JSON.stringify(result));
    assert.match(nowhere ?? "", /File not found: nowhere\.png/);
    assert.match(image ?? "", /data:image\/png;base64/, "the model sees pictures: it gets this one");
    assert.match(drawing ?? "", /Not configured: .*OPENAI_API_KEY/);
    assert.match(speech ?? "", /Not configured: .*OPENAI_API_KEY/);
  });

  test("a script calls a tool", async () => {
    const code = "from hermes_tools import terminal\nprint(terminal('echo heron')['output'].upper())";
    const results = await play(["run code"], [["execute_code", { code }]]);
    assert.match(results.at(-1) ?? "", /HERON/);
  });
});

await withEngine("Chromium", missingChromium, () => {
  describe("the browser behind the search", () => {
    test("a page in the browser: opened, then read again", async () => {
      const [found = "", opened = "", read = ""] = await play(
        ["open a page in the browser"],
        [
          ["browser_navigate", { url: `${site.url}/page` }],
          ["browser_snapshot", { full: true }],
        ],
        open,
      );
      assert.match(found, /browser_navigate/);
      assert.match(opened, /Harbour/);
      assert.match(read, /link \\?"The second page\\?"/);
    });
  });
});
