// Tools that are not in the list, used through the program: found with tool_search, reached with tool_call, against real things on loopback.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { missingChromium, type Site, startSite } from "../support/engines/chromium.ts";
import { withEngine } from "../support/engines/require.ts";
import type { RecordedRequest, Reply } from "../support/model-server/script.ts";
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

/** A call that depends on what came before. */
type Play = Call | ((request: RecordedRequest) => Reply);
/** A call with the ref that stands beside a text in the newest result that has one. */
const beside =
  (name: string, text: string, more: Readonly<Record<string, unknown>> = {}): Play =>
  ({ raw }) => {
    const found = [...raw.matchAll(new RegExp(`${text}[^@]{0,20}@(e\\d+)`, "g"))].at(-1)?.[1];
    return bridged([name, { ref: `@${found}`, ...more }]);
  };

let server: ModelServer;
let site: Site;
before(async () => {
  server = await ModelServer.start();
  site = await startSite({
    "/page": PAGE,
    "/form": `<title>Form</title><form onsubmit="event.preventDefault(); out.textContent = 'Welcome aboard, ' + who.value">
      <label>Name <input id="who"></label><button>Board</button></form><p id="out"></p>`,
    "/search": (_request, response) => void response.end(JSON.stringify(FOUND)),
  });
});
beforeEach(() => void server.clear());
after(async () => {
  await server.close();
  await site.close();
});

/** One run: a search for each wish, then the calls. Resolves to the results of all of them, in order. */
async function play(
  wishes: readonly string[],
  calls: readonly Play[],
  config = "",
  files: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  await using home = await tempHome({ "config.yaml": `${modelConfig(server)}${config}`, ...files });
  await writeFile(join(home.project, "dot.png"), Buffer.from(DOT, "base64"));
  server.script(
    ...wishes.map((query): Reply => ({ toolCalls: [{ name: "tool_search", arguments: { query } }] })),
    ...calls.map((call) => (typeof call === "function" ? call : bridged(call))),
    { text: "done" },
  );
  const run: RunResult = await runHermes(["-z", "go"], { home });
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
  test("what stands in the list needs no search, and may be called through the bridge all the same", async () => {
    const [found = "", hits = "", page = ""] = await play(
      ["search the web"],
      [
        () => ({ toolCalls: [{ name: "web_search", arguments: { query: "pilot boat" } }] }),
        ["web_extract", { urls: [`${site.url}/page`] }],
      ],
      `${open}web: { search_backend: searxng, extract_backend: local, searxng: { base_url: "${site.url}" } }\n`,
    );
    assert.ok(!JSON.parse(found).matches.some(({ name }: { name: string }) => name.startsWith("web_")), found);
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

  test("what a plugin brings searches, reads, paints and speaks when the settings name it", async () => {
    const code = `export default (ctx) => {
      ctx.registerWebSearchProvider("almanac", {
        search: async (query, { limit }) => [{ url: "https://tides.test/", title: query + " " + limit, description: "high at noon" }],
        extract: async (urls) => urls.map((url) => ({ url, title: "Tides", content: "low at six" })),
      });
      ctx.registerImageGenProvider("crayon", { generate: async () => Buffer.from("${DOT}", "base64") });
      ctx.registerTtsProvider("parrot", { speak: async ({ text }) => new TextEncoder().encode(text) });
    };`;
    const config =
      "plugins: { enabled: [almanac] }\nweb: { backend: almanac }\nimage_gen: { provider: crayon }\ntts: { provider: parrot }\n";
    const results = await play(
      [],
      [
        ["web_search", { query: "tides", limit: 2 }],
        ["web_extract", { urls: ["https://93.184.215.14/tides"] }],
        ["image_generate", { prompt: "a heron" }],
        ["text_to_speech", { text: "hello" }],
      ],
      config,
      { "plugins/almanac/plugin.yaml": "name: almanac\nversion: 1.0.0\n", "plugins/almanac/index.mjs": code },
    );
    const [hits = "", page = "", image = "", sound = ""] = results;
    assert.match(hits, /"title":"tides 2","url":"https:\/\/tides\.test\/","description":"high at noon","position":1/);
    assert.match(page, /low at six/);
    assert.match(image, /"success":true,"image":".*\.png"/);
    assert.match(sound, /"success":true,"file_path":".*","media_tag":"MEDIA:.*\.mp3"/);
  });

  test("a script calls a tool", async () => {
    const code = "from hermes_tools import terminal\nprint(terminal('echo heron')['output'].upper())";
    const results = await play(["run code"], [["execute_code", { code }]]);
    assert.match(results.at(-1) ?? "", /HERON/);
  });
});

await withEngine("Chromium", missingChromium, () => {
  describe("the browser behind the search", () => {
    // One run for both pages: what costs is the start of the browser.
    test("a form in the browser: filled in, sent, read, photographed for a model that sees; a stale ref is refused; another page is read", async () => {
      const results = await play(
        ["open a page in the browser"],
        [
          ["browser_navigate", { url: `${site.url}/form` }],
          beside("browser_type", "Name", { text: "Ada" }),
          beside("browser_click", "Board"),
          ["browser_snapshot", {}],
          ["browser_vision", { question: "who boards?" }],
          ["browser_click", { ref: "@e99" }],
          ["browser_navigate", { url: `${site.url}/page` }],
          ["browser_snapshot", { full: true }],
        ],
        open,
      );
      const [found = "", opened = "", typed = "", clicked = "", read = "", seen, stale = "", page = "", again = ""] =
        results;
      assert.match(found, /browser_navigate/);
      assert.match(opened, /<untrusted_tool_result source="browser_navigate" id=/);
      assert.match(typed, /"success":true,"typed":3/);
      assert.match(clicked, /"success":true,"clicked":"@e\d+"/);
      assert.match(read, /Welcome aboard, Ada/);
      assert.match(JSON.stringify(seen), /screenshot_path.*data:image\/png;base64/);
      assert.match(stale, /not an element of the last snapshot/);
      assert.match(page, /Harbour/);
      assert.match(again, /link \\?"The second page\\?"/);
    });
  });
});
