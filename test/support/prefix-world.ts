// One conversation under watch: the real program on one side, a server that writes down what it was sent on the other.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openAgent } from "../../src/agent/open.ts";
import type { OpenAgent } from "../../src/agent/opened.ts";
import { type OpenHome, openHome } from "../../src/home/open.ts";
import { type Clock, systemClock } from "../../src/kit/clock.ts";
import type { PrefixCause } from "../../src/llm/gate.ts";
import type { UserInput } from "../../src/llm/messages.ts";
import type { ApiMode } from "../../src/llm/wire.ts";
import { openSessionStore } from "../../src/sessions/open.ts";
import type { SessionStore, StoredCall } from "../../src/sessions/store.ts";
import { registry } from "../../src/tools/toolset/registry.ts";
import { play } from "./agent/agent-rig.ts";
import type { RecordedRequest, Step } from "./model-server/script.ts";
import type { ModelServer } from "./model-server/server.ts";
import { firstBreak } from "./prefix-break.ts";
import { modelConfig, type TempHome, tempHome } from "./temp-home.ts";

export const MODELS = ["claude-one", "claude-two"] as const;
export type ModelName = (typeof MODELS)[number];

/** A handful of messages is enough to be worth a summary; reviews in the background would take the answers meant for others. */
const SHORT_TALKS =
  "compression: { protect_first_n: 0, protect_last_n: 2 }\nmemory: { nudge_interval: 0 }\nskills: { creation_nudge_interval: 0 }\n";

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
export class World implements AsyncDisposable {
  readonly server: ModelServer;
  readonly #temp: TempHome;
  readonly #mode: ApiMode;
  readonly #more: string;
  readonly #clock = hastyClock();
  readonly #settings: Record<string, unknown> = { environment_probe: false };
  /** Causes that were given so far, and how many of them each model's last answered request knew. */
  readonly #causes: PrefixCause[] = [];
  readonly #before = new Map<string, { readonly request: RecordedRequest; readonly known: number }>();
  #seen = 0;
  #pictures = false;
  #foreign: readonly string[] = [];
  #home: OpenHome | null = null;
  #store: SessionStore | null = null;
  #agent: OpenAgent | null = null;
  #sessionId = "";
  /** Compression goes on in another one. */
  readonly #sessions = new Set<string>();
  readonly refused = new Set<RecordedRequest>();

  private constructor(server: ModelServer, temp: TempHome, mode: ApiMode, more: string) {
    this.#more = more;
    this.server = server;
    this.#temp = temp;
    this.#mode = mode;
  }

  /** `more` is added to config.yaml. */
  static async begin(server: ModelServer, mode: ApiMode, more = ""): Promise<World> {
    server.clear().otherwise((request) => ({ text: isSideCall(request) ? "## Active Task\nNone" : "ok" }));
    const temp = await tempHome({
      "SOUL.md": "I am the test's own helper.\n",
      "memories/MEMORY.md": "The user likes tests.\n",
    });
    await writeFile(join(temp.project, "AGENTS.md"), "Use tabs.\n");
    const world = new World(server, temp, mode, more);
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
    await writeFile(
      this.#temp.at("config.yaml"),
      `${base}agent: ${JSON.stringify(this.#settings)}\n${SHORT_TALKS}${this.#more}`,
    );
  }

  async say(said: string | UserInput, ...steps: Step[]): Promise<void> {
    this.server.script(...steps);
    const { outcome } = await play(this.agent.agent, said);
    const answer = outcome.finalText;
    assert.notEqual(answer, "");
    if (typeof said === "object") this.#pictures = true;
    assert.ok(this.server.requests.length > this.#seen, `nothing was sent: ${answer}`);
    this.#moveOn();
    this.check();
  }

  /** All but the newest turn becomes a summary; false when there is too little to shorten. */
  async compress(): Promise<boolean> {
    const report = await this.agent.agent.compress({ here: 1 });
    this.check();
    if (report.type !== "compressed") return false;
    this.expect("compression");
    this.#moveOn();
    return true;
  }

  async undoCompression(): Promise<void> {
    if ((await this.agent.agent.undoCompression()) === null) return;
    this.expect("rewind");
    this.#moveOn();
  }

  #moveOn(): void {
    this.#sessionId = this.agent.agent.sessionId;
    this.#sessions.add(this.#sessionId);
  }

  /** A server of tools comes, goes, or comes back with others. */
  connectTools(names: readonly string[], description: string): void {
    for (const name of this.#foreign) registry.deregister(name);
    this.#foreign = names.map((name) => `mcp_weather_${name}`);
    for (const name of this.#foreign)
      registry.register({
        ...{ name, description, toolset: "clarify" },
        parameters: { type: "object", properties: { place: { type: "string" } } },
        handler: () => "rain",
      });
  }

  expect(cause: PrefixCause): void {
    this.#causes.push(cause);
  }

  /** The law, as an outsider sees it: from the bodies alone. */
  check(): void {
    for (const request of this.server.requests.slice(this.#seen)) {
      if (isSideCall(request)) continue;
      const before = this.#before.get(request.body.model);
      const broke = before ? firstBreak(before.request, request) : null;
      const explained = before !== undefined && this.#causes.length > before.known;
      assert.ok(broke === null || explained, `${broke} was rewritten, and nobody said why`);
      if (!this.refused.has(request) && !isFork(request))
        this.#before.set(request.body.model, { request, known: this.#causes.length });
    }
    this.#seen = this.server.requests.length;
  }

  /** The law, as the program sees it: no call of the conversation broke its prefix without a cause. */
  async checkBooks(): Promise<readonly StoredCall[]> {
    const calls: StoredCall[] = [];
    for (const id of this.#sessions) calls.push(...((await this.#store?.calls(id)) ?? []));
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
    const db = new DatabaseSync(this.#temp.at("state.db"), { timeout: 10_000 });
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
    this.connectTools([], "");
    await this.close();
    await this.#temp[Symbol.asyncDispose]();
  }
}

/** Memories are saved before a part of the conversation goes: the same beginning, an end of its own. */
function isFork({ raw }: RecordedRequest): boolean {
  return raw.includes("[System: This conversation is about to be");
}

/** The model that writes the summary is asked about the conversation, not in it. */
function isSideCall({ raw }: RecordedRequest): boolean {
  return raw.includes("hand-over notes");
}
