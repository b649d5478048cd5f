// A key that the user pastes is masked before it is stored or sent, and offered a home.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { AgentEvent, AskRequest } from "../../src/agent/events.ts";
import { createRedactor } from "../../src/safety/redact.ts";
import { commandRig } from "../support/command-rig.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { type Talk, talk, warningsOf } from "../support/talk.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

interface Row {
  readonly id: string;
  readonly row: { readonly text: string; readonly value?: string; readonly name?: string | null };
  readonly expect: "taken" | "left";
  readonly why: string;
}

const rows: readonly Row[] = readFileSync(new URL("../fixtures/trust/pasted-keys.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

test("keys are taken out of what a user says, loose words are not", () => {
  const { fromUser } = createRedactor({ enabled: true, knownSecrets: () => [] });
  const fallen = rows.flatMap(({ id, why, expect, row: { text, value = "", name = null } }) => {
    const found = fromUser(text);
    if (expect === "left") return found.text === text ? [] : [`${id} (${why}) became ${found.text}`];
    const [key] = found.keys;
    const right = found.keys.length === 1 && key?.value === value && key.name === name && !found.text.includes(value);
    const again = fromUser(found.text);
    if (again.text !== found.text || again.keys.length > 0) return [`${id} (${why}) again: ${again.text}`];
    return right ? [] : [`${id} (${why}) ${JSON.stringify(found)}`];
  });
  assert.deepEqual(fallen, []);
});

test("what the home knows already is masked without a name, and switched off nothing is", () => {
  const known = "correct-horse-battery";
  const { fromUser } = createRedactor({ enabled: true, knownSecrets: () => [known] });
  assert.deepEqual(fromUser(`it is ${known}`), {
    text: "it is correc...tery",
    keys: [{ value: known, shown: "correc...tery", name: null }],
  });
  const off = createRedactor({ enabled: false, knownSecrets: () => [known] });
  assert.deepEqual(off.fromUser(known), { text: known, keys: [] });
});

const KEY = "sk-ant-api03-Zq83hfLw0xPk29RtVbN5mYc7";
const SHOWN = "sk-ant...mYc7";

/** One turn in which every question gets this answer. */
async function answering(chat: Talk, text: string, choice: "once" | "cancel") {
  const asked: AskRequest[] = [];
  const events: AgentEvent[] = [];
  for await (const event of chat.conversation.agent.run({ text, from: "person" })) {
    events.push(event);
    if (event.type !== "ask") continue;
    asked.push(event.request);
    event.request.answer({ choice } as never); // a confirm question
  }
  return { asked, events };
}

test("where somebody can be asked the key is offered a home, and is known from then on", async (t) => {
  const chat = await talk(t, { masked: true, request: { interactive: true } });
  chat.server.otherwise({ text: `so it is ${KEY.slice(0, 20)}` });
  const { asked, events } = await answering(chat, `my key is ${KEY}`, "once");
  const [question] = asked.map((request) => request.question);
  assert.ok(question?.kind === "confirm");
  assert.match(question.title, /^Keep sk-ant\.\.\.mYc7 in .*\.env as ANTHROPIC_API_KEY\?$/);
  assert.match(await readFile(join(chat.homeDir, ".env"), "utf8"), new RegExp(`^ANTHROPIC_API_KEY=${KEY}$`, "m"));
  const kept = events.flatMap((event) => (event.type === "status" && event.kind === "done" ? event.message : []));
  assert.deepEqual(kept, [`${SHOWN} is kept as ANTHROPIC_API_KEY in ${join("~", ".hermes", ".env")} and masked here.`]);
  assert.deepEqual(warningsOf(events), []);
  assert.ok(!JSON.stringify(chat.server.requests).includes(KEY));
  assert.ok(JSON.stringify(chat.server.requests[0]?.body).includes(`my key is ${SHOWN}`));
  // Said again, also backwards through base64, it is a known value, and nobody is asked.
  const again = await answering(chat, `again: ${Buffer.from(KEY).toString("base64")}`, "once");
  assert.equal(again.asked.length, 0);
  assert.ok(!JSON.stringify(chat.server.requests).includes(Buffer.from(KEY).toString("base64").slice(8, 30)));
});

test("declined, the key is masked all the same, in memory, on disk and in every later request", async (t) => {
  const chat = await talk(t, { masked: true, request: { interactive: true } });
  chat.server.otherwise({ text: "ok" });
  const { events } = await answering(chat, `my key is ${KEY}`, "cancel");
  assert.match(
    warningsOf(events).join("\n"),
    /^Masked in your message.*sk-ant\.\.\.mYc7.*hermes config set ANTHROPIC_API_KEY$/,
  );
  const start = events.find((event) => event.type === "turn_start");
  assert.equal(start?.type === "turn_start" && start.input.text, `my key is ${SHOWN}`);
  await chat.resume();
  await answering(chat, "and now?", "cancel");
  const stored = await chat.store.load(chat.conversation.agent.sessionId);
  assert.equal(stored[0]?.content, `my key is ${SHOWN}`);
  assert.ok(!JSON.stringify([stored, chat.server.requests]).includes(KEY));
  const [first, second] = chat.server.requests.map(({ body }) =>
    JSON.stringify((body as { messages: unknown[] }).messages[1]),
  );
  assert.equal(first, second, "the bytes that were sent first are sent again");
});

test("a key that is said to a running turn is masked too", async (t) => {
  const chat = await talk(t, { masked: true });
  chat.server.script({ toolCalls: [{ name: "todo", arguments: {} }] }, { text: "done" });
  for await (const event of chat.conversation.agent.run({ text: "go" }))
    if (event.type === "tool_start") assert.equal(chat.conversation.agent.steer(`use ${KEY}`), true);
  const sent = JSON.stringify(chat.server.requests);
  assert.ok(sent.includes(`use ${SHOWN}`));
  assert.ok(!sent.includes(KEY));
});

test("what a slash command stores or sends holds no key, and one line says so", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  server.otherwise({ text: "ok" });
  const rig = await commandRig(t, { "config.yaml": modelConfig(server) }, { masked: true });
  for (let turn = 0; turn < 6; turn++) await rig.chat(`words ${turn} ${"and more ".repeat(300)}`);
  for (const typed of ["/pin", "/title", "/branch", "/background", "/compress", "/new now"]) {
    await rig.type(`${typed} ${KEY}`);
    while (rig.ctx.background?.running.length) await setImmediate();
    const heard = rig.text();
    assert.match(heard, /^warning: Masked in your message.*sk-ant\.\.\.mYc7 \(ANTHROPIC_API_KEY\)/, typed);
    assert.ok(!heard.includes(KEY), typed);
  }
  rig.busy = true;
  await rig.type(`/pin the port is 8080`);
  assert.equal(rig.text(), "1. the port is 8080");
  const sessions = await rig.ctx.store.list({ limit: 20 });
  assert.ok(sessions.some(({ title }) => title?.includes(SHOWN)));
  const sent = JSON.stringify(server.requests);
  assert.ok(sent.includes(SHOWN));
  for await (const file of glob("state.db*", { cwd: rig.ctx.home.paths.dir }))
    assert.ok(!(await readFile(join(rig.ctx.home.paths.dir, file), "latin1")).includes(KEY), file);
  assert.ok(!sent.includes(KEY));
});

test("a script gets one line about it, and store and exports hold no key", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  await using home = await tempHome({ "config.yaml": modelConfig(server) });
  server.otherwise({ text: "ok" });
  const { stderr, stdout } = await runHermes(["-z", `deploy with DEPLOY_TOKEN=Zq83hfLw0xPk29Rt and ${KEY}`], { home });
  assert.equal(stdout, "ok\n");
  assert.match(
    stderr,
    /^hermes: Masked in your message.*DEPLOY_TOKEN.*sk-ant\.\.\.mYc7.*hermes config set DEPLOY_TOKEN\n$/,
  );
  const exported = await runHermes(["sessions", "export", "-"], { home });
  assert.match(exported.stdout, /sk-ant\.\.\.mYc7/);
  const kept = (await readFile(home.at("state.db"))).toString("latin1");
  for (const secret of [KEY, "Zq83hfLw0xPk29Rt"])
    for (const text of [kept, exported.stdout, JSON.stringify(server.requests)])
      assert.ok(!text.includes(secret), secret);
});

test("an export masks what was stored before", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  await using home = await tempHome({ "config.yaml": `${modelConfig(server)}security:\n  redact_secrets: false\n` });
  server.otherwise({ text: "ok" });
  await runHermes(["-z", `my key is ${KEY}`], { home });
  assert.ok(JSON.stringify(server.requests).includes(KEY), "switched off, it is sent as it is");
  await home.write("config.yaml", modelConfig(server));
  for (const format of ["jsonl", "md", "html"]) {
    const { stdout } = await runHermes(["sessions", "export", "-", "--format", format], { home });
    assert.ok(!stdout.includes(KEY), format);
    assert.ok(stdout.includes(SHOWN), format);
  }
});

describe("at a terminal", { skip: tmuxMissing() }, () => {
  const known = `ANTHROPIC_API_KEY=${KEY}`;
  const SEEN = "onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n";

  test("the screen asks, shows the masked message and leaves no key in the input history", async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    server.otherwise({ text: "Thank you." });
    await using home = await tempHome({ "config.yaml": modelConfig(server) + SEEN });
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("fake-model");
    await screen.type(`my key is ${KEY}`);
    await screen.press("Enter");
    await screen.waitFor("as ANTHROPIC_API_KEY?");
    await screen.press("Up");
    await screen.press("Enter");
    await screen.waitFor("Thank you.");
    assert.ok((await readFile(home.at(".env"), "utf8")).includes(known));
    assert.ok(!(await readFile(home.at(".hermes_history"), "utf8")).includes(KEY));
    assert.ok(!JSON.stringify(server.requests).includes(KEY));
    const said = await screen.waitFor(
      "✓ sk-ant...mYc7 is kept as ANTHROPIC_API_KEY in ~/.hermes/.env and masked here.",
    );
    assert.match(said, /\? Keep sk-ant\.\.\.mYc7 in ~\/\.hermes\/\.env as ANTHROPIC_API_KEY\? → yes/);
    assert.doesNotMatch(said, /allowed once|⚠ sk-ant/);
    await screen.press("Up");
    await screen.waitFor(`❯ my key is ${SHOWN}`, { history: false });
    assert.ok(!(await screen.text({ history: true })).includes(KEY));
  });

  test("a key that is kept while the demo answers leaves the next start as it was, and says what to do", async () => {
    await using home = await tempHome({ "config.yaml": SEEN });
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("demo");
    await screen.say(`my key is ${KEY}`);
    await screen.waitFor("as ANTHROPIC_API_KEY?");
    await screen.press("Up");
    await screen.press("Enter");
    await screen.waitFor(/is kept as ANTHROPIC_API_KEY[\s\S]*choose a\s+model: hermes\s+model/);
    const next = await runHermes(["-z", "hello"], { home });
    assert.equal(next.code, 0, next.stderr);
    assert.match(next.stdout, /I am the built-in demo/);
    assert.match(next.stderr, /^ANTHROPIC_API_KEY is set, but no model is chosen.*hermes model$/m);
    await using again = await TerminalScreen.start([], { home });
    await again.waitFor(/❯[\s\S]*demo/);
    for (const [args, told] of [
      [["status"], /^Model +built-in demo \(ANTHROPIC_API_KEY is set but no model is selected: hermes model\)$/m],
      [["doctor"], /⚠ ANTHROPIC_API_KEY is set but no model is selected/],
    ] as const)
      assert.match((await runHermes(args, { home })).stdout, told);
    const named = await runHermes(["-z", "hello", "--provider", "anthropic"], { home });
    assert.deepEqual([named.code, /is configured, but no model/.test(named.stderr)], [2, true]);
  });

  test("hermes chat -q asks too, and a no keeps nothing", async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    server.otherwise({ text: "Thank you." });
    for (const letter of ["n", "y"]) {
      await using home = await tempHome({ "config.yaml": modelConfig(server), ".env": "OTHER=1\n" });
      await using screen = await TerminalScreen.start(["chat", "-q", `my key is ${KEY}`], { home });
      await screen.waitFor("[y]es, anything else = no:");
      await screen.type(letter);
      await screen.press("Enter");
      await screen.waitFor("Thank you.");
      assert.equal(await screen.exitCode(), 0);
      assert.equal((await readFile(home.at(".env"), "utf8")).includes(known), letter === "y");
    }
    assert.ok(!JSON.stringify(server.requests).includes(KEY));
  });
});
