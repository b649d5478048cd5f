// Money through the doors a user has: whoever makes a paid call is stopped by a cap of nothing, and the books say what the servers said.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { BackgroundTasks } from "../src/agent/background.ts";
import { openAgent } from "../src/agent/open.ts";
import type { OpenRequest } from "../src/agent/open-request.ts";
import type { OpenAgent } from "../src/agent/opened.ts";
import { triagePorts } from "../src/commands/kanban-side.ts";
import { runBatch } from "../src/doors/cli/batch/runner.ts";
import { Goals } from "../src/goals/keeper.ts";
import { NO_CONTRACT, newGoal } from "../src/goals/state.ts";
import type { OpenHome } from "../src/home/open.ts";
import { Boards } from "../src/kanban/boards.ts";
import { createCard } from "../src/kanban/cards.ts";
import { decomposeCard, specifyCard } from "../src/kanban/triage.ts";
import { systemClock } from "../src/kit/clock.ts";
import type { Task } from "../src/llm/gate.ts";
import type { SessionStore, UsageTotals } from "../src/sessions/store.ts";
import { play } from "./support/agent/agent-rig.ts";
import { realServer } from "./support/mcp/hub-rig.ts";
import type { Answer, ScriptedCall } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { openRequest } from "./support/open-request.ts";
import { runHermes } from "./support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const USAGE = { input: 1000, output: 10 };
const SAID: Answer = { text: "ok", thinking: "hm", usage: USAGE };

interface World {
  readonly temp: TempHome;
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly request: OpenRequest;
  readonly server: ModelServer;
  /** Requests for pictures and speech. */
  readonly media: { readonly url: string; asked: number };
  /** From here on nothing may leave, if this run is the one with the cap. */
  shut(): Promise<void>;
  readonly opened: readonly OpenAgent[];
  /** Opens a conversation that is closed with the test. */
  open(more?: Partial<OpenRequest>): Promise<OpenAgent>;
}

/** One way to spend money. `play` calls `shut` at the last moment before the call it is about. */
interface Door {
  readonly config?: (world: Pick<World, "server" | "media">) => string;
  readonly files?: Readonly<Record<string, string>>;
  readonly play: (world: World) => Promise<void>;
}

/** The model calls a tool, and with that call the tap is shut. */
const tool =
  (call: ScriptedCall, more?: Partial<OpenRequest>): Door["play"] =>
  async (world) => {
    world.server.script(async () => {
      await world.shut();
      return { toolCalls: [call], usage: USAGE };
    });
    const { agent } = await world.open(more);
    await play(agent, "go", {
      onEvent(event) {
        if (event.type === "ask") event.request.answer({ choice: "deny" });
      },
    });
  };

/** Seldom-used tools are called through the tool that finds them. */
const hidden = (name: string, args: object): ScriptedCall => ({
  name: "tool_call",
  arguments: { name, arguments: args },
});

/** A card is read by a model, asked for in a conversation. */
function triage(read: typeof specifyCard): Door["play"] {
  return async (world) => {
    const { agent } = await firstTurn(world);
    const boards = new Boards(world.home, systemClock);
    const board = await boards.open("default");
    const { id } = await board.change((change) => createCard(change, { title: "find a heron", triage: true }));
    const signal = new AbortController().signal;
    const conversation = { sessionId: agent.sessionId, auxiliary: agent.auxiliary };
    const ports = triagePorts(
      { home: world.home, clock: systemClock, store: async () => world.store, conversation },
      signal,
    );
    await read(board, id, ports).catch(() => undefined); // what the model said is no card
    board.close();
  };
}

async function firstTurn({ server, shut, open }: World, more: Partial<OpenRequest> = {}): Promise<OpenAgent> {
  const conversation = await open(more);
  server.script(async () => {
    await shut();
    return SAID;
  });
  await conversation.agent.chat("a question about herons");
  return conversation;
}

const PLUGIN = `export default (ctx) => ctx.registerTool({
  name: "t_money_ask", description: "asks", handler: () => ctx.llm.complete({ prompt: "capital of France?" }).catch(String),
});`;

/** Every purpose money is spent for. A new one does not compile until it stands here. */
const DOORS: Readonly<Record<Exclude<Task, "curator" | "skills_hub">, Door>> = {
  main: {
    async play({ open, shut }) {
      const { agent } = await open();
      await shut();
      await agent.chat("hello");
    },
  },
  subagent: { play: tool({ name: "delegate_task", arguments: { goal: "count to three" } }) },
  compression: {
    async play({ open, shut }) {
      const { agent } = await open();
      for (let turn = 0; turn < 6; turn++) await agent.chat(`line ${turn} ${"and so on ".repeat(80)}`);
      await shut();
      await agent.compress();
    },
  },
  title_generation: {
    async play(world) {
      const { agent } = await firstTurn(world, { titles: true });
      for await (const notice of agent.notices) if (notice.type === "session" && notice.reason === "titled") return;
    },
  },
  background_review: {
    config: () => "memory: { nudge_interval: 1 }\n",
    async play(world) {
      const { agent } = await firstTurn(world);
      await agent.settled();
    },
  },
  flush_memories: {
    config: () => "memory: { flush_min_turns: 1, nudge_interval: 0 }\n",
    async play({ open, shut }) {
      const { agent } = await open();
      for (const text of ["one", "two"]) await agent.chat(text);
      await shut();
      assert.ok(agent.wantsToSave);
      await agent.saveMemories();
    },
  },
  vision: {
    config: ({ server }) =>
      `auxiliary: { vision: { provider: custom, base_url: "${server.url}", api_key: k-123456789, model: eye } }\n`,
    async play(world) {
      await writeFile(join(world.temp.project, "pic.png"), Buffer.from(PNG, "base64"));
      await world.home.setConfigKey("model.supports_vision", false);
      await tool(hidden("vision_analyze", { image_url: "pic.png", question: "what?" }))(world);
      const described = world.opened.at(-1)?.describe(join(world.temp.project, "pic.png"), "what?");
      await described?.catch(() => undefined); // the capped one is refused
    },
  },
  web_extract: {
    config: () => "web: { summarize: true, extract_backend: local }\nsecurity: { allow_private_urls: true }\n",
    play: async (world) => {
      const page = createServer((_request, response) => {
        response.setHeader("content-type", "text/html");
        response.end(
          `<title>T</title><article>${"<p>The heron leaves at noon, every day.</p>".repeat(1000)}</article>`,
        );
      });
      await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
      const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}/`; // it listens on a port
      await tool({ name: "web_extract", arguments: { urls: [url] } })(world);
      page.closeAllConnections();
      page.close();
    },
  },
  approval: {
    config: () => "approvals: { mode: smart }\n",
    async play(world) {
      world.server.otherwise({ ...SAID, text: "DENY" });
      const command = "chmod 777 money-door-note.txt";
      await tool({ name: "terminal", arguments: { command } }, { interactive: true })(world);
    },
  },
  goal_judge: {
    async play(world) {
      const conversation = await firstTurn(world);
      const { agent, store } = conversation;
      const goals = new Goals({
        door: {
          isBusy: () => false,
          take: async ({ meta }) => ((await store.setMeta(meta.key, meta.value, meta.expected)) ? "done" : "changed"),
        },
        clock: systemClock,
        config: () => world.home.config(),
        subject: () => ({
          ...{ store, sessionId: agent.sessionId, auxiliary: agent.auxiliary, processes: () => [] },
          pays(account) {
            conversation.account = account;
          },
        }),
        onError: assert.fail,
      });
      const goal = newGoal({ goal: "find a heron", contract: NO_CONTRACT }, { now: 1, maxTurns: 3 });
      await goals.change(() => ({ state: goal }));
      await goals.turnEnded({ interrupted: null, failed: null }, agent.lastOutcome?.messages ?? []);
      goals.close();
    },
  },
  triage_specifier: { play: triage(specifyCard) },
  kanban_decomposer: { play: triage(decomposeCard) },
  mcp: {
    config: () => `mcp_servers: ${JSON.stringify({ every: realServer("everything") })}\n`,
    play: tool({ name: "mcp_every_trigger_sampling_request", arguments: { prompt: "a bird", maxTokens: 20 } }),
  },
  plugin: {
    config: () => "plugins: { enabled: [t_money] }\n",
    files: { "plugins/t_money/plugin.yaml": "name: t_money\nversion: 1.0.0\n", "plugins/t_money/index.mjs": PLUGIN },
    play: tool({ name: "t_money_ask", arguments: {} }),
  },
  image_generation: {
    config: ({ media }) => `image_gen: { base_url: "${media.url}", api_key: k-123456789 }\n`,
    play: tool(hidden("image_generate", { prompt: "a heron" })),
  },
  text_to_speech: {
    config: ({ media }) => `tts: { base_url: "${media.url}", api_key: k-123456789 }\n`,
    play: tool(hidden("text_to_speech", { text: "a heron" })),
  },
  transcription: {
    config: ({ media }) => `stt: { base_url: "${media.url}", api_key: k-123456789 }\n`,
    async play({ temp, open, shut }) {
      const file = join(temp.project, "voice.ogg");
      await writeFile(file, "OggS");
      const conversation = await open();
      await shut();
      await conversation.transcribe(file).catch(() => undefined); // the capped one is refused
    },
  },
};

async function enter(t: TestContext, door: Door, cap: string | null): Promise<World & { shutAt(): number }> {
  const server = await ModelServer.start();
  const media = { url: "", asked: 0 };
  const maker = createServer((request, response) => {
    media.asked++;
    request.resume();
    const picture = { data: [{ b64_json: PNG }], usage: { input_tokens: USAGE.input, output_tokens: USAGE.output } };
    response.end(request.url?.endsWith("/images/generations") ? JSON.stringify(picture) : "SOUND");
  });
  await new Promise<void>((resolve) => maker.listen(0, "127.0.0.1", resolve));
  media.url = `http://127.0.0.1:${(maker.address() as AddressInfo).port}/v1`; // it listens on a port
  const config = `${modelConfig(server)}${door.config?.({ server, media }) ?? ""}`;
  const temp = await tempHome({ "config.yaml": config, ...door.files });
  const { home, store, request: opening } = await openRequest(temp);
  const opened: OpenAgent[] = [];
  let shutAt = Number.POSITIVE_INFINITY;
  server.otherwise(SAID);
  t.after(async () => {
    for (const conversation of opened) await conversation.close("cli_close");
    await store.close();
    await home.close();
    await server.close();
    maker.closeAllConnections();
    maker.close();
    await temp[Symbol.asyncDispose]();
  });
  return {
    ...{ temp, home, store, request: opening, server, media, opened },
    shutAt: () => shutAt,
    async shut() {
      shutAt = server.requests.length + media.asked;
      if (cap !== null) await home.setConfigKey(cap, 0);
    },
    async open(more) {
      const conversation = await openAgent({ ...opening, learn: true, ...more });
      opened.push(conversation);
      return conversation;
    },
  };
}

/** The books hold every request, with the tokens that the servers counted, and the conversation's own sum says the same. */
async function assertBooks(world: World, { uncounted = 0 } = {}): Promise<ReadonlyMap<string, UsageTotals>> {
  const books = await world.store.usage({ by: "purpose" });
  const sum = (field: "calls" | "inputTokens" | "outputTokens") =>
    [...books.values()].reduce((total, row) => total + row[field], 0);
  const counted = sent(world) - uncounted;
  const expected = [sent(world), counted * USAGE.input, counted * USAGE.output];
  assert.deepEqual([sum("calls"), sum("inputTokens"), sum("outputTokens")], expected);
  for (const { agent } of world.opened) {
    const { apiCalls, inputTokens, outputTokens } = agent.totals;
    assert.deepEqual([apiCalls, inputTokens, outputTokens], expected, "the sum of the conversation");
  }
  return books;
}

const sent = ({ server, media }: World) => server.requests.length + media.asked;

for (const [purpose, door] of Object.entries(DOORS)) {
  test(`${purpose}: with a cap of 0 nothing leaves; without one it is in the books as the server counted it`, async (t) => {
    const capped = await enter(t, door, "budget.session.usd");
    await door.play(capped);
    assert.equal(sent(capped), capped.shutAt(), "something left after it was forbidden");
    const free = await enter(t, door, null);
    await door.play(free);
    assert.ok(sent(free) > free.shutAt(), "without a cap it does ask");
    // Servers of speech do not say what they counted.
    const isSpeech = purpose === "text_to_speech" || purpose === "transcription";
    const books = await assertBooks(free, { uncounted: isSpeech ? 1 : 0 });
    assert.ok((books.get(purpose)?.calls ?? 0) > 0, `no row for ${purpose}: ${[...books.keys()].join(", ")}`);
  });
}

const dataset = '{"prompt": "one"}\n{"prompt": "two"}\n';

test("batch: a job's cap of 0 lets no prompt leave; without one each prompt is in the books", async (t) => {
  const door: Door = {
    async play({ temp, home, store, shut }) {
      const datasetFile = join(temp.project, "prompts.jsonl");
      await writeFile(datasetFile, dataset);
      await shut();
      const request = { datasetFile, runName: "r", dir: join(temp.project, "r"), batchSize: 2, distribution: "safe" };
      await runBatch(
        { ...request, maxTurns: 2, workers: 2, resume: false },
        { home, store, clock: systemClock, cwd: temp.project, signal: t.signal, say: () => undefined },
      );
    },
  };
  const capped = await enter(t, door, "budget.job.tokens");
  await door.play(capped);
  assert.equal(sent(capped), 0);
  const free = await enter(t, door, null);
  await door.play(free);
  assert.equal((await assertBooks(free)).get("main")?.calls, 2);
});

test("background: a cap of 0 stops a prompt beside the conversation; without one it is in the books", async (t) => {
  const door: Door = {
    async play({ request, open, shut }) {
      const beside = await open();
      await shut();
      const { promise, resolve } = Promise.withResolvers<void>();
      const tasks = new BackgroundTasks({ clock: systemClock, onReport: () => resolve() });
      tasks.start("count the birds", request, beside);
      await promise;
      await tasks.close();
    },
  };
  const capped = await enter(t, door, "budget.day.usd");
  await door.play(capped);
  assert.equal(sent(capped), 0);
  const free = await enter(t, door, null);
  await door.play(free);
  assert.equal((await free.store.usage({ by: "purpose" })).get("main")?.calls, 1);
});

test("hermes -z under a cap of 0 sends nothing, says which cap it was and fails", async (t) => {
  const { server, temp } = await enter(
    t,
    { config: () => "budget: { day: { usd: 0 } }\n", play: async () => undefined },
    null,
  );
  const { code, stderr, stdout } = await runHermes(["-z", "hi"], { home: temp });
  assert.equal(server.requests.length, 0);
  assert.notEqual(code, 0);
  assert.match(stdout + stderr, /budget\.day\.usd/);
});
