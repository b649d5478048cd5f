// Bytes already sent are never rewritten: a state machine over everything a user, a model and a clock may do to a conversation, with the
// real program on one side and a server that writes down what it was sent on the other.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import type { UserInput } from "../src/agent/events.ts";
import { type OpenAgent, openAgent } from "../src/agent/open.ts";
import { layoutOf, recordOf } from "../src/agent/prompt-record.ts";
import { type OpenHome, openHome } from "../src/home/open.ts";
import { type Clock, systemClock } from "../src/kit/clock.ts";
import { createGate } from "../src/llm/gate/create-gate.ts";
import type { PrefixCause } from "../src/llm/gate.ts";
import type { ContentPart } from "../src/llm/messages.ts";
import { API_MODES, type ApiMode } from "../src/llm/wire.ts";
import { createWire } from "../src/llm/wires/create.ts";
import { buildSystemPromptParts } from "../src/prompt/build.ts";
import { openSessionStore } from "../src/sessions/open.ts";
import type { SessionStore, StoredCall } from "../src/sessions/store.ts";
import { play, rigAgent } from "./support/agent/agent-rig.ts";
import type { RecordedRequest, Step } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { aTarget } from "./support/model-target.ts";
import { firstBreak } from "./support/prefix-break.ts";
import { promptInputs } from "./support/prompt-inputs.ts";
import { temporaryStore } from "./support/session-store.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

const MODELS = ["claude-one", "claude-two"] as const;
type ModelName = (typeof MODELS)[number];

/** Real time, as far ahead as the test wants it; pauses before another try are over at once, time limits are not. */
function hastyClock(): Clock & { ahead: number } {
  const clock = {
    ahead: 0,
    now: () => systemClock.now() + clock.ahead,
    random: () => 0.5,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms < 10_000 ? 0 : ms, signal),
  };
  return clock;
}

/** One conversation, through as many processes as it takes. */
class World implements AsyncDisposable {
  readonly server: ModelServer;
  readonly #temp: TempHome;
  readonly #mode: ApiMode;
  readonly #clock = hastyClock();
  readonly #settings: Record<string, unknown> = { environment_probe: false };
  /** Causes that were given so far, and how many of them each model's last answered request knew. */
  readonly #causes: PrefixCause[] = [];
  readonly #before = new Map<string, { readonly request: RecordedRequest; readonly known: number }>();
  #seen = 0;
  #pictures = false;
  #home: OpenHome | null = null;
  #store: SessionStore | null = null;
  #agent: OpenAgent | null = null;
  #sessionId = "";
  readonly refused = new Set<RecordedRequest>();

  private constructor(server: ModelServer, temp: TempHome, mode: ApiMode) {
    this.server = server;
    this.#temp = temp;
    this.#mode = mode;
  }

  static async begin(server: ModelServer, mode: ApiMode): Promise<World> {
    server.clear();
    const temp = await tempHome({
      "SOUL.md": "I am the test's own helper.\n",
      "memories/MEMORY.md": "The user likes tests.\n",
    });
    await writeFile(join(temp.project, "AGENTS.md"), "Use tabs.\n");
    const world = new World(server, temp, mode);
    await world.configure({});
    await world.open();
    return world;
  }

  async open(): Promise<void> {
    const { dir, osHome, project } = this.#temp;
    const home = await openHome({
      argv: [],
      env: { HERMES_HOME: dir, HOME: osHome, PATH: process.env.PATH ?? "" },
      osHome,
      cwd: project,
    });
    const store = await openSessionStore({
      path: home.paths.stateDb,
      journalMode: "auto",
      log: home.log,
      clock: this.#clock,
    });
    const resume = this.#sessionId === "" ? undefined : { name: this.#sessionId };
    this.#agent = await openAgent({
      ...{ home, clock: this.#clock, store: async () => store, cwd: project },
      ...{ platform: "cli", source: "cli", interactive: false, resume },
    });
    [this.#home, this.#store] = [home, store];
  }

  /** Ends the process and goes on in another one. */
  async restart(): Promise<void> {
    await this.close();
    if (this.#pictures) this.expect("image_lost");
    await this.open();
  }

  async close(): Promise<void> {
    await this.#agent?.close("cli_close");
    if (this.#sessionId !== "" && !(await this.#store?.get(this.#sessionId))) {
      // Nothing was left of it: what comes next is another conversation.
      this.#sessionId = "";
      this.#before.clear();
    }
    await this.#store?.close();
    await this.#home?.close();
    this.#agent = null;
  }

  /** Settings below `agent:`, on top of those given before. */
  async configure(settings: Readonly<Record<string, unknown>>): Promise<void> {
    Object.assign(this.#settings, settings);
    const base = modelConfig(this.server, this.#mode).replace("fake-model", MODELS[0]);
    await writeFile(this.#temp.at("config.yaml"), `${base}agent: ${JSON.stringify(this.#settings)}\n`);
  }

  async say(said: string | UserInput, ...steps: Step[]): Promise<void> {
    this.server.script(...steps);
    const { outcome } = await play(this.agent.agent, said);
    const answer = outcome.finalText;
    assert.notEqual(answer, "");
    if (typeof said === "object") this.#pictures = true;
    assert.ok(this.server.requests.length > this.#seen, `nothing was sent: ${answer}`);
    this.#sessionId = this.agent.agent.sessionId;
    this.check();
  }

  expect(cause: PrefixCause): void {
    this.#causes.push(cause);
  }

  /** The law, as an outsider sees it: from the bodies alone. */
  check(): void {
    for (const request of this.server.requests.slice(this.#seen)) {
      const before = this.#before.get(request.body.model);
      const broke = before ? firstBreak(before.request, request) : null;
      const explained = before !== undefined && this.#causes.length > before.known;
      assert.ok(broke === null || explained, `${broke} was rewritten, and nobody said why`);
      if (!this.refused.has(request)) this.#before.set(request.body.model, { request, known: this.#causes.length });
    }
    this.#seen = this.server.requests.length;
  }

  /** The law, as the program sees it: no call of the conversation broke its prefix without a cause. */
  async checkBooks(): Promise<readonly StoredCall[]> {
    const calls = (await this.#store?.calls(this.#sessionId)) ?? [];
    for (const { brokeOwner, cause } of calls) assert.ok(brokeOwner === undefined || cause, `${brokeOwner} broke`);
    await this.#home?.log.flush();
    const log = await readFile(this.#temp.at("logs", "errors.log"), "utf8").catch(() => "");
    assert.ok(!log.includes("does not begin with"), log);
    return calls;
  }

  writeHome(name: string, text: string): Promise<void> {
    return this.#temp.write(name, text);
  }

  writeProject(name: string, text: string): Promise<void> {
    return writeFile(join(this.#temp.project, name), text);
  }

  /** What another program may do to the file. */
  tamper(sql: string): void {
    const db = new DatabaseSync(this.#temp.at("state.db"));
    db.exec(sql);
    db.close();
  }

  passDays(days: number): void {
    this.#clock.ahead += days * 24 * 60 * 60 * 1000;
  }

  get agent(): OpenAgent {
    if (!this.#agent) throw new Error("the conversation is closed");
    return this.#agent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    await this.#temp[Symbol.asyncDispose]();
  }
}

type State = { said: boolean };
type Command = fc.AsyncCommand<State, World>;

const command = (name: string, run: (world: World, state: State) => Promise<void>): Command => ({
  check: () => true,
  run: (state, world) => run(world, state),
  toString: () => name,
});
const talked = (name: string, run: (world: World) => Promise<void>): Command => ({
  check: (state) => state.said,
  run: (_state, world) => run(world),
  toString: () => name,
});
const todo = (content: string) => ({ name: "todo", arguments: { todos: [{ id: "1", content, status: "pending" }] } });
const remember = (content: string) => ({ name: "memory", arguments: { action: "add", target: "memory", content } });

const say = (said: string) =>
  command(`say ${JSON.stringify(said)}`, async (world, state) => {
    await world.say(said, { text: "An answer.", thinking: "hm" });
    state.said = true;
  });
const useTools = (n: number) =>
  command(`use tools ${n}`, async (world, state) => {
    await world.say(
      "do it",
      { text: "Working.", toolCalls: [todo(`a${n}`), { name: "read_file", arguments: '{"path": "AGENTS.md",' }] },
      { thinking: "hm", toolCalls: [todo(`b${n}`), remember(`fact ${n}`), { name: "no_such_tool", arguments: {} }] },
      { text: " Done. " },
    );
    state.said = true;
  });
const picture: ContentPart = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const showPicture = command("show a picture", async (world, state) => {
  await world.say({ text: "look", parts: [picture] }, { text: "I see." });
  state.said = true;
});
const failingServer = talked("a server that fails", async (world) => {
  const fail: Step = (request) => {
    world.refused.add(request);
    return { fault: "status", status: 503 };
  };
  await world.say("again", fail, { text: "Now." });
});
const changeFiles = (n: number) =>
  command(`files change ${n}`, async (world) => {
    await world.writeHome("SOUL.md", `I am somebody else, ${n}.\n`);
    await world.writeProject("AGENTS.md", `Use ${n} spaces.\n`);
    await world.writeHome("memories/MEMORY.md", `Everything is new, ${n}.\n`);
  });
const changeSettings = (n: number) =>
  command(`settings change ${n}`, (world) =>
    world.configure({ environment_hint: `hint ${n}`, coding_instructions: `do ${n}`, tool_use_enforcement: n > 4 }),
  );
const changeTools = (toolset: string) =>
  talked(`without ${toolset}, in another process`, async (world) => {
    world.expect("selection");
    await world.configure({ disabled_toolsets: [toolset] });
    await world.restart();
  });
const switchTo = (model: ModelName) =>
  command(`switch to ${model}`, async (world) => void (await world.agent.switchModel({ model })));
const midnight = command("midnight", async (world) => world.passDays(1));
const anotherProcess = talked("another process", (world) => world.restart());
const undo = talked("undo", async (world) => {
  world.expect("rewind");
  await world.agent.agent.undo();
});
const changeMood = (mood: string) =>
  command(`mood ${mood}`, async (world) => {
    world.expect("ephemeral");
    await world.configure({ system_prompt: mood });
  });

const commands = [
  fc.constantFrom("hello", "  spaced out \n", "你好 😀", "half a pair \ud83d", "").map(say),
  fc.nat(99).map(useTools),
  fc.nat(9).map(changeFiles),
  fc.nat(9).map(changeSettings),
  fc.constantFrom("todo", "memory").map(changeTools),
  fc.constantFrom(...MODELS).map(switchTo),
  fc.constantFrom("Be kind.", "Be brief.").map(changeMood),
  fc.constantFrom(failingServer, midnight, anotherProcess, undo, showPicture),
];

for (const mode of API_MODES)
  test(`${mode}: memory, files, settings, midnight, other models and other processes leave the prefix as it was`, async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    await using world = await World.begin(server, mode);
    const everything = [
      useTools(1),
      changeFiles(1),
      changeSettings(7),
      say("a"),
      switchTo("claude-two"),
      useTools(2),
      changeFiles(2),
      midnight,
      switchTo("claude-one"),
      say("b"),
      anotherProcess,
      useTools(3),
      failingServer,
      switchTo("claude-two"),
      say("c"),
      midnight,
      anotherProcess,
      say("d"),
    ];
    const state = { said: false };
    for (const command of everything) await command.run(state, world);
    const calls = await world.checkBooks();
    assert.deepEqual(
      calls.filter(({ brokeOwner }) => brokeOwner !== undefined),
      [],
    );
    // Every later process knew both models already.
    assert.equal(calls.filter(({ cause }) => cause === "model").length, 1);
  });

for (const mode of API_MODES)
  test(`${mode}: request n is the beginning of request n+1, whatever happens in between`, async () => {
    const server = await ModelServer.start();
    try {
      await fc.assert(
        fc.asyncProperty(fc.commands(commands, { maxCommands: 14 }), async (given) => {
          await using world = await World.begin(server, mode);
          await fc.asyncModelRun(() => ({ model: { said: false }, real: world }), given);
          await world.checkBooks();
        }),
        { numRuns: 10 },
      );
    } finally {
      await server.close();
    }
  });

test("each cause is named in the call's row, and what did not change is told to be common", async () => {
  const server = await ModelServer.start();
  try {
    await using world = await World.begin(server, "anthropic_messages");
    await world.say("one");
    await world.say("two");
    world.expect("rewind");
    await world.agent.agent.undo();
    await world.say("three");
    world.expect("ephemeral");
    await world.configure({ system_prompt: "Be kind." });
    await world.say("four");
    await world.agent.switchModel({ model: MODELS[1] });
    await world.say("five");
    await world.agent.switchModel({ model: MODELS[0] });
    await world.say("six");
    const calls = await world.checkBooks();
    const told = calls.map(({ model, brokeOwner, cause }) => [model, brokeOwner, cause]);
    assert.deepEqual(told, [
      [MODELS[0], undefined, undefined],
      [MODELS[0], undefined, undefined],
      [MODELS[0], "message 2 (user)", "rewind"],
      [MODELS[0], "ephemeral", "ephemeral"],
      [MODELS[1], undefined, "model"],
      [MODELS[0], undefined, undefined],
    ]);
    for (const [index, call] of calls.entries()) {
      assert.ok((call.commonBytes ?? 0) <= (call.bytes ?? 0));
      if (call.cause === undefined && index > 0) assert.ok((call.commonBytes ?? 0) > 0.9 * (call.bytes ?? 0));
    }
  } finally {
    await server.close();
  }
});

test("what changes a conversation behind its back, between two processes, is found and named", async () => {
  const server = await ModelServer.start();
  try {
    await using world = await World.begin(server, "chat_completions");
    await world.say("one");
    await world.say("two");
    await world.close();
    world.tamper("UPDATE messages SET content = 'zwei' WHERE content = 'two'");
    await world.open();
    await assert.rejects(world.say("three"), /message 2 .* was rewritten/);
    await assert.rejects(world.checkBooks(), /message 2 \(user\) broke/);
  } finally {
    await server.close();
  }
});

test("a clock in the prompt is found by both checks, and the program names the block it stands in", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  const { store } = await temporaryStore(t);
  const defects: string[] = [];
  const none = { usd: null, tokens: null };
  const gate = createGate({
    ledger: store,
    caps: () => ({ call: none, session: none, job: none, day: none }),
    priceOf: () => ({ type: "unknown" }),
    wireFor: (target) => createWire(target.apiMode, { fetch, clock: systemClock }),
    clock: systemClock,
    onDefect: (what) => defects.push(what),
  });
  let ticks = 0;
  for (const said of ["one", "two"]) {
    const build = buildSystemPromptParts({ ...promptInputs, environmentHint: `It is 12:00:0${ticks++} sharp.` });
    const prompt = { system: async () => ({ text: build.full, layout: layoutOf(recordOf(build)) }) };
    const target = aTarget("chat_completions", { baseUrl: server.url });
    await rigAgent({ gate, store, prompt, model: { target } }).chat(said);
  }
  const [first, second] = server.requests;
  assert.ok(first && second);
  assert.match(firstBreak(first, second) ?? "", /^the system text .* 12:00:01 sharp/);
  assert.equal(defects.length, 1);
  assert.match(defects[0] ?? "", /env_hints differs at byte \d+ /);
  const [, row] = await store.calls("session-1");
  assert.deepEqual([row?.brokeOwner, row?.cause], ["env_hints", undefined]);
  const same = Buffer.from(first.body.messages[0].content).subarray(0, row?.brokeOffset).toString();
  assert.ok(same.endsWith("It is 12:00:0"));
});
