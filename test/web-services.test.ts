// Every search service against a small server on loopback that speaks its language, through the tool's own door.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { configSchema } from "../src/home/config/schema.ts";
import "../src/tools/web-search.ts";
import { registerProvider } from "../src/tools/toolset/availability.ts";
import { registry } from "../src/tools/toolset/registry.ts";
import { dispatch } from "./support/dispatch.ts";
import { recordingLog, toolContext } from "./support/tool-context.ts";

interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}
type Answer = { readonly status?: number; readonly body: unknown; readonly location?: string };

async function serve(t: TestContext, answer: (asked: Asked) => Answer): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const question = { path: request.url ?? "", headers: request.headers, body };
    asked.push(question);
    const { status = 200, body: given, location } = answer(question);
    if (location) response.setHeader("location", location);
    response.writeHead(status).end(typeof given === "string" ? given : JSON.stringify(given));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }; // it listens on a port
}

interface Setup {
  readonly web?: object;
  readonly security?: object;
  readonly env?: Readonly<Record<string, string>>;
  readonly redact?: (text: string) => string;
}

async function search(args: Record<string, unknown>, { web = {}, security = {}, env = {}, redact }: Setup) {
  const log = recordingLog();
  const ctx = toolContext({
    config: configSchema.parse({ web, security }),
    env: (name) => env[name],
    log,
    ...(redact ? { redact } : {}),
  });
  const text = await dispatch(registry, "web_search", args, ctx);
  return { ...JSON.parse(String(text)), log: log.lines.map(({ message }) => message).join("\n") };
}

const hits = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    url: `https://site${index + 1}.test/p`,
    title: `Title ${index + 1}`,
    text: `About <strong>${index + 1}</strong> &amp; more`,
  }));
const expected = (count: number) =>
  hits(count).map(({ url, title }, index) => ({
    title,
    url,
    description: `About ${index + 1} & more`,
    position: index + 1,
  }));

const duckPage = (from: number, count: number, next: boolean) => `<!doctype html><html><body>
  <div class="result result--ad"><a class="result__a" href="https://duckduckgo.com/y.js?ad=1">Ad</a></div>
  ${hits(from + count)
    .slice(from)
    .map(
      ({ url, title, text }) =>
        `<div class="result"><h2><a class="result__a" href="//duckduckgo.com/l/?uddg=${encodeURIComponent(url)}&amp;rut=x">${title}</a></h2><a class="result__snippet">${text}</a></div>`,
    )
    .join("")}
  ${next ? `<div class="nav-link"><form action="/html/" method="post"><input type="submit" value="Next"><input type="hidden" name="q" value="cats"><input type="hidden" name="s" value="${from + count}"></form></div>` : ""}
  </body></html>`;

/** Per service: how it is set up, what it must be sent, what it answers with. */
const services: readonly {
  readonly name: string;
  readonly key?: string;
  readonly path: RegExp;
  readonly sends: (asked: Asked) => void;
  readonly answer: (asked: Asked) => unknown;
}[] = [
  {
    name: "searxng",
    path: /^\/search\?q=cats%26dogs\+x&format=json&pageno=1$/,
    sends: () => undefined,
    answer: () => ({ results: hits(7).map(({ url, title, text }) => ({ url, title, content: text })) }),
  },
  {
    name: "brave",
    key: "BRAVE_SEARCH_API_KEY",
    path: /^\/res\/v1\/web\/search\?q=cats%26dogs\+x&count=3&offset=0$/,
    sends: ({ headers }) => assert.equal(headers["x-subscription-token"], "the-key"),
    answer: () => ({ web: { results: hits(3).map(({ url, title, text }) => ({ url, title, description: text })) } }),
  },
  {
    name: "tavily",
    key: "TAVILY_API_KEY",
    path: /^\/search$/,
    sends({ headers, body }) {
      assert.equal(headers.authorization, "Bearer the-key");
      assert.deepEqual(JSON.parse(body), { query: "cats&dogs x", max_results: 3 });
    },
    answer: () => ({ results: hits(3).map(({ url, title, text }) => ({ url, title, content: text, score: 1 })) }),
  },
  {
    name: "exa",
    key: "EXA_API_KEY",
    path: /^\/search$/,
    sends({ headers, body }) {
      assert.equal(headers["x-api-key"], "the-key");
      assert.equal(JSON.parse(body).numResults, 3);
    },
    answer: () => ({ results: hits(3).map(({ url, title, text }) => ({ id: url, url, title, highlights: [text] })) }),
  },
  {
    name: "firecrawl",
    key: "FIRECRAWL_API_KEY",
    path: /^\/v2\/search$/,
    sends({ headers, body }) {
      assert.equal(headers.authorization, "Bearer the-key");
      assert.deepEqual(JSON.parse(body), { query: "cats&dogs x", limit: 3 });
    },
    answer: () => ({
      success: true,
      data: { web: hits(3).map(({ url, title, text }) => ({ url, title, description: text })) },
    }),
  },
  {
    name: "parallel",
    key: "PARALLEL_API_KEY",
    path: /^\/v1beta\/search$/,
    sends({ headers, body }) {
      assert.equal(headers["x-api-key"], "the-key");
      assert.equal(JSON.parse(body).objective, "cats&dogs x");
    },
    answer: () => ({ results: hits(3).map(({ url, title, text }) => ({ url, title, excerpts: [text] })) }),
  },
  {
    name: "ddgs",
    path: /^\/html\/$/,
    sends: ({ body }) => assert.equal(new URLSearchParams(body).get("q"), "cats&dogs x"),
    answer: () => duckPage(0, 7, false),
  },
];

for (const { name, key, path, sends, answer } of services)
  describe(name, () => {
    const env = key ? { [key]: "the-key" } : {};
    test("is asked in its own way, and its answer becomes the result", async (t) => {
      const { url, asked } = await serve(t, (question) => ({ body: answer(question) }));
      const web = { search_backend: name, [name]: { base_url: `${url}/` } };
      const { log, ...result } = await search({ query: " cats&dogs x ", limit: 3 }, { web, env });
      assert.deepEqual(result, { success: true, data: { web: expected(3) } }, log);
      assert.match(asked[0]?.path ?? "", path);
      if (asked[0]) sends(asked[0]);
      assert.equal(asked.length, 1);
    });

    test("fails in words when it is down, nonsense, moved, or out of credit", async (t) => {
      let given: Answer = { body: "" };
      const { url } = await serve(t, () => given);
      const setup = { web: { search_backend: name, [name]: { base_url: url } }, env };
      const failing: [Answer, RegExp][] = [
        [{ status: 503, body: { error: "tired" } }, /HTTP 503: tired/],
        [{ status: 429, body: { message: "slow down" } }, /allows no more requests for now \(HTTP 429\): slow down/],
        [{ status: 302, body: "", location: "https://else.test/" }, /has moved \(HTTP 302\): https:\/\/else\.test\//],
        ...(key
          ? [[{ status: 401, body: "no" }, new RegExp(`refuses the key .* Check ${key}`)] as [Answer, RegExp]]
          : []),
        ...(name === "ddgs"
          ? []
          : [[{ body: "<html>" }, /answered something that is not a result/] as [Answer, RegExp]]),
      ];
      for (const [answered, words] of failing) {
        given = answered;
        const { success, error } = await search({ query: "x" }, setup);
        assert.equal(success, false);
        assert.match(error, words);
      }
    });

    if (key)
      test("says which key is missing", async () => {
        const { error } = await search({ query: "x" }, { web: { search_backend: name } });
        assert.equal(error, `web.search_backend is "${name}", but ${key} is not set.`);
      });
  });

test("more results than a page holds are fetched page by page", async (t) => {
  const duck = await serve(t, ({ body }) => {
    const from = Number(new URLSearchParams(body).get("s") ?? 0);
    return { body: duckPage(from, 10, from < 30) };
  });
  const many = await search(
    { query: "cats", limit: 25 },
    { web: { backend: "duckduckgo", ddgs: { base_url: duck.url } } },
  );
  assert.deepEqual(many.data.web, expected(25));
  assert.equal(duck.asked.length, 3);
});

test("DuckDuckGo's question for a person is told, not taken for an empty result", async (t) => {
  const duck = await serve(t, () => ({ status: 202, body: '<div class="anomaly-modal__title">bots?</div>' }));
  const { error } = await search({ query: "x" }, { web: { ddgs: { base_url: duck.url } } });
  assert.match(error, /whether a person is asking.*another search service/);
});

test("a SearXNG that gives no JSON is told how to", async (t) => {
  const { url } = await serve(t, () => ({ status: 403, body: "no" }));
  const { error } = await search({ query: "x" }, { web: { backend: "searxng", searxng: { base_url: url } } });
  assert.match(error, /Add "json" to search\.formats in its settings\.yml/);
});

describe("which service is asked", () => {
  test("without a choice the keys decide, in a fixed order, and the next one helps out", async (t) => {
    const down = await serve(t, () => ({ status: 500, body: "" }));
    const good = await serve(t, () => ({
      body: { results: [{ url: "https://a.test/", title: "A", highlights: ["b"] }] },
    }));
    const web = { tavily: { base_url: down.url }, exa: { base_url: good.url } };
    const env = { EXA_API_KEY: "k", TAVILY_API_KEY: "k" };
    const { data, log } = await search({ query: "x" }, { web, env });
    assert.equal(data.web[0].url, "https://a.test/");
    assert.equal(down.asked.length, 1);
    assert.match(log, /web search with Tavily failed/);
  });

  test("a service the user named is the only one asked", async (t) => {
    const down = await serve(t, () => ({ status: 500, body: "" }));
    const duck = await serve(t, () => ({ body: duckPage(0, 1, false) }));
    const web = { backend: "tavily", tavily: { base_url: down.url }, ddgs: { base_url: duck.url } };
    assert.equal((await search({ query: "x" }, { web, env: { TAVILY_API_KEY: "k" } })).success, false);
    assert.equal(duck.asked.length, 0);
  });

  test("the questions of somebody with a SearXNG of their own never go to DuckDuckGo", async (t) => {
    const down = await serve(t, () => ({ status: 500, body: "" }));
    const duck = await serve(t, () => ({ body: duckPage(0, 1, false) }));
    const web = { searxng: { base_url: down.url }, ddgs: { base_url: duck.url } };
    assert.equal((await search({ query: "x" }, { web })).success, false);
    assert.equal(duck.asked.length, 0);
  });

  test("a name that is no service gets the names that are", async () => {
    const { error } = await search({ query: "x" }, { web: { search_backend: "gogle" } });
    assert.equal(
      error,
      'web.search_backend is "gogle", which is not a service. Use firecrawl, parallel, tavily, exa, searxng, brave, ddgs.',
    );
  });
});

test("a service that a plugin brings is asked when it is named; what it does wrong is told in words", async (t) => {
  const asked: unknown[] = [];
  const given: Record<string, unknown> = {
    almanac: {
      search: (query: string, { limit }: { limit: number }) => {
        asked.push(query, limit);
        return [{ url: "https://tides.test/", title: "<b>Tides</b>" }, { url: "javascript:0" }];
      },
    },
    broken: { search: () => Promise.reject(new Error("ink is dry")) },
    odd: { search: () => ({ results: [] }) },
    reader: { extract: () => [] },
    empty: {},
  };
  for (const [name, provider] of Object.entries(given))
    t.after(registerProvider("web_search", name, async () => provider));
  const { data } = await search({ query: "tides", limit: 3 }, { web: { search_backend: "almanac" } });
  assert.deepEqual(data.web, [{ title: "Tides", url: "https://tides.test/", description: "", position: 1 }]);
  assert.deepEqual(asked, ["tides", 3]);
  for (const [name, why] of [
    ["broken", /"broken", which a plugin provides, failed: ink is dry/],
    ["odd", /"odd".*not a result/],
    ["reader", /"reader", which cannot do that/],
    ["empty", /neither search\(\) nor extract\(\)/],
    ["almanack", /not a service. Use firecrawl,.*ddgs, almanac, broken/],
  ] as const)
    assert.match((await search({ query: "x" }, { web: { search_backend: name } })).error, why);
});

describe("what is searched and what is shown", () => {
  test("an empty query, a missing one and one with a key in it go nowhere", async (t) => {
    const duck = await serve(t, () => ({ body: duckPage(0, 1, false) }));
    const setup = {
      web: { ddgs: { base_url: duck.url } },
      redact: (text: string) => text.replaceAll("hunter2hunter2", "***"),
    };
    assert.match((await search({ query: "  " }, setup)).error, /empty/);
    assert.match((await search({}, setup)).error, /query/);
    assert.match((await search({ query: "who uses hunter2hunter2" }, setup)).error, /holds a key or password/);
    assert.equal(duck.asked.length, 0);
  });

  test("sites the user closed and things that are no web addresses are left out", async (t) => {
    const results = [
      { url: "javascript:alert(1)", title: "bad" },
      { url: "https://closed.test/", title: "closed" },
      { url: "https://open.test/", title: "", content: "x".repeat(2000) },
    ];
    const { url } = await serve(t, () => ({ body: { results } }));
    const security = { website_blocklist: { enabled: true, domains: ["closed.test"] } };
    const { data } = await search({ query: "x" }, { web: { searxng: { base_url: url } }, security });
    assert.deepEqual(data.web, [
      { title: "https://open.test/", url: "https://open.test/", description: `${"x".repeat(500)}…`, position: 1 },
    ]);
  });

  for (const [limit, shown] of [
    [0, 1],
    [-3, 1],
    [1000, 100],
    ["2", 2],
    [undefined, 5],
  ] as const)
    test(`limit ${limit} gives ${shown}`, async (t) => {
      const { url } = await serve(t, () => ({
        body: { results: hits(120).map(({ url: at, title }) => ({ url: at, title })) },
      }));
      const { data } = await search({ query: "x", limit }, { web: { searxng: { base_url: url } } });
      assert.equal(data.web.length, shown);
    });
});
