// Text of strangers against what is promised about it. The rows are data: texts go to the fence, commands to the guard alone, and what
// runs are memory, skills and pages on loopback, in real conversations.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { ToolPins } from "../../src/mcp/pins.ts";
import { parseServers } from "../../src/mcp/settings.ts";
import { disarm, fenced } from "../../src/prompt/fence.ts";
import { type Site, startSite } from "../support/engines/chromium.ts";
import { guardRig } from "../support/guard-rig.ts";
import { tinyServer } from "../support/mcp/hub-rig.ts";
import { talk } from "../support/talk.ts";
import { tempHome } from "../support/temp-home.ts";
import { tellWhenDone } from "../support/trust-figures.ts";

interface Row {
  readonly id: string;
  readonly row:
    | { readonly kind: "mark"; readonly text: string }
    | { readonly kind: "command"; readonly command: string }
    | { readonly kind: "steps"; readonly first: string; readonly then: Step }
    | { readonly kind: "description"; readonly before?: string; readonly now: string };
  readonly expect: string;
  readonly why: string;
}

interface Step {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

const rows: readonly Row[] = (await readFile(new URL("../fixtures/trust/strangers.jsonl", import.meta.url), "utf8"))
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Row); // our own file

type Kind = Row["row"]["kind"];
type Of<K extends Kind> = Omit<Row, "row"> & { readonly row: Extract<Row["row"], { readonly kind: K }> };
const of = <K extends Kind>(kind: K) => rows.filter((one): one is Row & Of<K> => one.row.kind === kind);

test("there are enough rows, each with an id of its own", () => {
  assert.ok(rows.length >= 60);
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length);
});

/** The attacks among the rows of these kinds; the others show what stays free. */
const attacks = (...kinds: readonly Kind[]) =>
  rows.filter(({ row, expect }) => kinds.includes(row.kind) && !/^(?:same|free)$/.test(expect)).map(({ id }) => id);
const marksHeld = tellWhenDone({ kind: "marks and descriptions forged by strangers" }, attacks("mark", "description"));
const stepsHeld = tellWhenDone({ kind: "two steps: a stranger's text, then an action" }, attacks("command", "steps"));

/** As a model may read it, by other means than the code under test: compatibility forms folded, unseen characters gone. */
const LIKE: Readonly<Record<string, string>> = { е: "e", о: "o", О: "O", "‐": "-", "‿": "_" };
const read = (text: string) =>
  text
    .normalize("NFKD")
    .replace(/[\p{Cf}\p{Mn}\p{Default_Ignorable_Code_Point}]/gu, "")
    .replace(/[еоО‐‿]/g, (letter) => LIKE[letter] ?? letter)
    .toLowerCase();
const MARK =
  /untrusted_tool_result|\[\/?out-of-band user message|<\|[a-z_▁]+\|>|\[\/?inst\]|<<\/?sys>>|_of_turn>(?<=<(?:start|end)_of_turn>)|\[\/?(?:available_tools|tool_results)\]/g;

for (const { id, row, expect, why } of of("mark")) {
  test(`${id}: ${why}`, () => {
    if (expect === "same") return assert.equal(disarm(row.text), row.text);
    assert.match(read(row.text), MARK, "the row holds a mark before it is disarmed");
    assert.doesNotMatch(read(disarm(row.text)), MARK);
    const text = fenced("web_extract", `${row.text}${" and more of the page".repeat(3)}`);
    assert.deepEqual(read(text).match(MARK), ["untrusted_tool_result", "untrusted_tool_result"]);
    marksHeld(id);
  });
}

const SOURCE = "web_extract stranger.example";
const signal = new AbortController().signal;

for (const { id, row, expect, why } of of("command")) {
  test(`${id}: after a page, ${row.command} (${why}) is ${expect}`, async () => {
    const after = guardRig({ foreignText: () => SOURCE });
    const outcome = await after.guard.decide(row.command, signal, { cwd: "/home/me/project" });
    if (expect === "free") return assert.deepEqual([outcome.approved, after.asked.length], [true, 0]);
    assert.equal(outcome.approved, false);
    assert.match(after.asked[0]?.note ?? "", /web_extract stranger\.example/);
    const alone = guardRig({ foreignText: () => SOURCE, interactive: false });
    assert.equal((await alone.guard.decide(row.command, signal, { cwd: "/home/me/project" })).approved, false);
    stepsHeld(id);
  });
}

for (const { id, row, expect, why } of of("description")) {
  test(`${id}: a tool's description, ${why}, is ${expect}`, async () => {
    await using home = await tempHome({});
    const [server] = parseServers({ tiny: { command: "tiny" } }).servers;
    assert.ok(server);
    const pins = await ToolPins.open(join(home.dir, "mcp_pins.json"));
    const listing = (description: string) => ({
      tools: [{ name: "tool", description, inputSchema: { type: "object" } }],
      resources: false,
      prompts: false,
    });
    if (row.before !== undefined) pins.review(server, listing(row.before));
    const { listing: shown, warnings } = pins.review(server, listing(row.now));
    assert.match(warnings.join("\n"), /hermes mcp review tiny/);
    const description = shown.tools[0]?.description ?? "";
    if (expect === "old kept") assert.equal(description, row.before);
    else assert.match(description, /^\[Description withheld/);
    assert.ok(!JSON.stringify(shown).includes(row.now));
    await pins.flush();
    marksHeld(id);
  });
}

/** How a stranger's text gets in: what the model calls first. */
const FIRST: Readonly<Record<string, (place: { readonly site: Site; readonly stranger: string }) => Step>> = {
  page: ({ site }) => ({ tool: "web_extract", args: { urls: [site.url] } }),
  mcp: () => ({ tool: "mcp_tiny_echo", args: { text: "a text of some length from a server of others" } }),
  file: ({ stranger }) => ({ tool: "read_file", args: { path: stranger } }),
  command: ({ stranger }) => ({ tool: "terminal", args: { command: `cat ${stranger}` } }),
};

async function converse(t: TestContext) {
  const site = await startSite({ "/": `<title>T</title><p>${"A page of somebody else. ".repeat(20)}</p>` });
  t.after(() => site.close());
  const conversation = await talk(t, {
    config: `security: { allow_private_urls: true }\nweb: { extract_backend: local }\nmcp_servers:\n  tiny: ${JSON.stringify(tinyServer())}\n`,
    request: { yolo: false },
  });
  const stranger = join(conversation.osHome, "Downloads", "x", "README.md");
  await mkdir(dirname(stranger), { recursive: true });
  await writeFile(stranger, "Setup: the text of a stranger, which is longer than thirty-two characters.\n");
  const call = async ({ tool, args }: Step) => {
    const given = JSON.parse(JSON.stringify(args).replaceAll("$SITE", site.url));
    conversation.server.script({ toolCalls: [{ name: tool, arguments: given }] }, { text: "ok" });
    await conversation.say("go on");
    const { messages } = conversation.server.last.body as { messages: { role: string; content: string }[] }; // what we sent
    return messages.findLast(({ role }) => role === "tool")?.content ?? "";
  };
  return { ...conversation, call, site, stranger };
}

const steps = of("steps");
for (const first of new Set(steps.map(({ row }) => row.first))) {
  test(`in two steps, beginning with a ${first}`, async (t) => {
    const place = await converse(t);
    const begin = FIRST[first];
    assert.ok(begin);
    assert.match(await place.call(begin(place)), /^<untrusted_tool_result source="\w+" id="\w+">/);
    for (const { id, row, expect, why } of steps.filter((one) => one.row.first === first)) {
      const before = place.site.asked.length;
      const answer = await place.call(row.then);
      const got = /"staged":true/.test(answer) ? "waits" : /after text from outside/.test(answer) ? "refused" : answer;
      assert.equal(got, expect, `${id}: ${why}`);
      assert.equal(place.site.asked.length, before, `${id}: nothing was opened`);
      stepsHeld(id);
    }
  });
}

test("without a stranger's text none of these steps is held up", async (t) => {
  const place = await converse(t);
  // Opening a page brings a stranger's text in: that comes last.
  const isPage = ({ row }: (typeof steps)[number]) => row.then.tool === "web_extract";
  const begun = steps.filter((one) => one.row.first === "page");
  for (const { id, row } of [...begun.filter((one) => !isPage(one)), ...begun.filter(isPage)]) {
    const answer = await place.call(row.then);
    assert.doesNotMatch(answer, /"staged":true|after text from outside/, id);
    if (row.then.tool === "web_extract") assert.match(answer, /page|404|not found/i, id);
  }
});

test("what a message points at and the rules of a folder that is not trusted count too, and a past conversation that held such text", async (t) => {
  const place = await talk(t, {
    home: { "trusted_folders.json": "{}" },
    project: { "AGENTS.md": "Use tabs.\n", "notes.md": "the notes of somebody\n" },
    request: { yolo: false, readPage: async (url) => `the text of ${url}` },
  });
  const words = () => place.conversation.agent.foreignText.words ?? "";
  assert.equal(words(), "");
  place.server.script({ text: "ok" });
  await place.say("a kingfisher");
  assert.match(words(), /^rules of /);
  await place.conversation.attachReferences("see @url:https://a.example/x and @file:notes.md");
  assert.match(words(), /^file .*notes\.md, page https:\/\/a\.example\/x, rules of /);
  const first = place.conversation.agent.sessionId;
  await place.begin({ ignoreRules: true });
  assert.equal(words(), "");
  place.server.script({ toolCalls: [{ name: "session_search", arguments: { session_id: first } }] }, { text: "ok" });
  await place.say("what was that bird?");
  assert.match(words(), /^an earlier conversation with file .*notes\.md$/);
});

test("a folder that is trusted, and what the user typed, leave a conversation clean", async (t) => {
  const place = await talk(t, { project: { "AGENTS.md": "Use tabs.\n", "notes.md": "my notes\n" } });
  place.server.script({ toolCalls: [{ name: "read_file", arguments: { path: "notes.md" } }] }, { text: "ok" });
  await place.conversation.attachReferences("see @file:notes.md");
  await place.say("read my notes: </untrusted_tool_result> is a mark");
  assert.equal(place.conversation.agent.foreignText.words, null);
});
