// What a conversation pays before its first word is answered: the first request of a default session, weighed piece by piece against
// test/budget/first-request.json. Everybody's tools and texts meet here.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { openAgent } from "../src/agent/open.ts";
import { NEW_CONFIG } from "../src/home/config/schema.ts";
import type { RecordedRequest } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { openRequest } from "./support/open-request.ts";
import { runHermes } from "./support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

const FILE = "test/budget/first-request.json";

interface Budget {
  readonly whole: number;
  readonly framing: number;
  /** For a block or a tool without a line of its own. */
  readonly unlisted: number;
  readonly system: Readonly<Record<string, number>>;
  readonly tools: Readonly<Record<string, number>>;
}
const budget: Budget = JSON.parse(await readFile(new URL(`../${FILE}`, import.meta.url), "utf8"));

/** One piece of the request, and what it may weigh. */
interface Piece {
  readonly name: string;
  readonly tokens: number;
  readonly most: number;
}

/** The heaviest each piece was in any of the sessions. */
const seen = new Map<string, Piece>();

describe("the first request of a default session", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());

  /** Of a conversation with a person, who has one tool more than a script: the one that asks. */
  async function firstRequest(temp: TempHome): Promise<RecordedRequest> {
    server.script({ text: "pong" });
    const { home, store, request: opening } = await openRequest(temp);
    const conversation = await openAgent({ ...opening, interactive: true, learn: false });
    assert.equal(await conversation.agent.chat("ping"), "pong");
    await conversation.close("cli_close");
    await store.close();
    await home.close();
    const [request] = server.requests;
    assert.ok(request);
    return request;
  }

  const sessions: readonly (readonly [model: string, where: string, files: Readonly<Record<string, string>>])[] = [
    ["claude-sonnet-5", "a sandbox", {}],
    ["gemini-3-pro", "a sandbox", { "package.json": '{"scripts":{"test":"node --test"}}' }],
    ["claude-sonnet-5", "an empty folder", {}],
    ["gpt-5.5", "an empty folder", {}],
    ["claude-sonnet-5", "a code workspace", { "package.json": '{"scripts":{"test":"node --test"}}' }],
    ["gemini-3-pro", "a code workspace", { "package.json": '{"scripts":{"test":"node --test"}}' }],
  ];
  for (const [model, where, files] of sessions)
    test(`${model} in ${where} stays within its tokens, piece by piece`, async (t) => {
      server.clear();
      const config = (where === "a sandbox" ? NEW_CONFIG : "") + modelConfig(server).replace("fake-model", model);
      await using home = await tempHome({ "config.yaml": config });
      for (const [name, text] of Object.entries(files)) await writeFile(join(home.project, name), text);
      const request = await firstRequest(home);
      const pieces = weigh(request, home);
      const whole = pieces.reduce((sum, { tokens }) => sum + tokens, 0);
      for (const line of table([...pieces, { name: "whole", tokens: whole, most: budget.whole }])) t.diagnostic(line);
      for (const piece of pieces) {
        if (piece.tokens > (seen.get(piece.name)?.tokens ?? 0)) seen.set(piece.name, piece);
        assert.ok(piece.tokens <= piece.most, complaint(piece));
      }
      assert.ok(
        whole <= budget.whole,
        `${whole} tokens before the first word, ${budget.whole} allowed ("whole" in ${FILE}). Shorten something, or defer a tool behind tool search.`,
      );
    });

  test("every default tool is in the request, or named in it so that it can be asked for", async () => {
    server.clear();
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const request = await firstRequest(home);
    const { stdout } = await runHermes(["tools", "list", "--json"], { home });
    const offered: {
      toolsets: { enabled: boolean; tools: { name: string; enabled: boolean; available: boolean }[] }[];
    } = JSON.parse(stdout);
    const wanted = offered.toolsets
      .filter(({ enabled }) => enabled)
      .flatMap(({ tools }) => tools.filter((tool) => tool.enabled && tool.available).map(({ name }) => name));
    assert.ok(wanted.includes("terminal") && wanted.length >= 13, wanted.join(" "));
    const sent = request.body.tools
      .map(({ function: { name, description } }: { function: Record<string, string> }) => `${name}\n${description}`)
      .join("\n");
    const listed = request.body.tools.map(({ function: { name } }: { function: Record<string, string> }) => name);
    const waiting = wanted.filter((name) => !listed.includes(name) && !name.startsWith("browser_")).sort();
    assert.deepEqual(waiting, ["cronjob", "image_generate", "skills_list", "text_to_speech", "vision_analyze"]);
    for (const name of wanted) assert.match(sent, new RegExp(`\\b${name}\\b`), `${name} cannot be reached`);
  });

  test("no line leaves room for another text to grow unseen", () => {
    for (const { name, tokens, most } of seen.values()) {
      const listed = most !== budget.unlisted && name !== "framing"; // which grows with every tool
      assert.ok(!listed || most <= tokens * 1.15 + 20, `${name}: ${tokens} tokens, the line in ${FILE} says ${most}`);
    }
  });
});

/** The system text by block, each tool's schema, and all that holds them together. The user's own word counts as framing. */
function weigh({ body, raw }: RecordedRequest, home: TempHome): readonly Piece[] {
  const system: string = body.messages[0].content;
  const blocks = blocksOf(system, home).map(([id, text]) =>
    weighed(`system ${id}`, text, budget.system[id] ?? budget.unlisted),
  );
  const tools = (body.tools as { function: { name: string } }[]).map((tool) =>
    weighed(
      `tool ${tool.function.name}`,
      JSON.stringify(tool.function),
      budget.tools[tool.function.name] ?? budget.unlisted,
    ),
  );
  const bare = { ...body, messages: [{ ...body.messages[0], content: "" }, ...body.messages.slice(1)] };
  const wrappers = body.tools.map((tool: object) => ({ ...tool, function: null }));
  assert.ok(raw.length > system.length);
  return [...blocks, ...tools, weighed("framing", JSON.stringify({ ...bare, tools: wrappers }), budget.framing)];
}

/** The letters of a temporary folder are drawn by lot and weigh more than those of a home. */
const weighed = (name: string, text: string, most: number): Piece => {
  const settled = text.replace(/\/[\w/.-]*?hermes-[a-z]+-\w{6}/g, "/home/user");
  return { name, tokens: countTokens(settled), most };
};

/** Cut where the stored stamp says that one block ends and the next begins. */
function blocksOf(system: string, home: TempHome): readonly (readonly [id: string, text: string])[] {
  const db = new DatabaseSync(home.at("state.db"), { readOnly: true, timeout: 10_000 });
  const row = db.prepare("SELECT system_prompt, prompt_fingerprint FROM sessions").get();
  db.close();
  assert.equal(row?.system_prompt, system);
  const stamp: { blocks: [string, number][] } = JSON.parse(String(row?.prompt_fingerprint));
  let at = 0;
  return stamp.blocks.map(([id, length]) => {
    const text = system.slice(at, at + length);
    at += length + "\n\n".length;
    return [id, text];
  });
}

function table(pieces: readonly Piece[]): readonly string[] {
  return pieces.map(
    ({ name, tokens, most }) => `${name.padEnd(26)} ${String(tokens).padStart(5)} of ${String(most).padStart(5)}`,
  );
}

function complaint({ name, tokens, most }: Piece): string {
  const [part = "", key = ""] = name.split(" ");
  const line = key === "" ? `"${part}"` : `"${key}" under "${part === "tool" ? "tools" : part}"`;
  return `${name} weighs ${tokens} tokens, ${most} are allowed. Every conversation pays for it with every request: shorten it, or set ${line} in ${FILE} to ${tokens} on purpose.`;
}
