// A conversation through the real door of the agent: a home and a project on disk, a fake model server, everything between them real.
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import type { AgentEvent } from "../../src/agent/events.ts";
import { openAgent } from "../../src/agent/open.ts";
import type { OpenRequest } from "../../src/agent/open-request.ts";
import type { OpenAgent } from "../../src/agent/opened.ts";
import { type OpenHome, openHome } from "../../src/home/open.ts";
import { type Clock, systemClock } from "../../src/kit/clock.ts";
import { createRedactor } from "../../src/safety/redact.ts";
import { openSessionStore } from "../../src/sessions/open.ts";
import type { SessionStore } from "../../src/sessions/store.ts";
import { loadTools } from "../../src/tools/toolset/discover.ts";
import { registry, type ToolSpec } from "../../src/tools/toolset/registry.ts";
import { ModelServer } from "./model-server/server.ts";
import { modelConfig, tempHome } from "./temp-home.ts";

export interface TalkOptions {
  /** Added to the config that points at the server. */
  readonly config?: string;
  /** Of the Hermes home. */
  readonly home?: Readonly<Record<string, string>>;
  /** Of the folder the user stands in. */
  readonly project?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly request?: Partial<OpenRequest>;
  readonly mode?: Parameters<typeof modelConfig>[1];
  readonly contextLength?: number;
  readonly now?: number;
  /** Secrets are masked, as in the program. */
  readonly masked?: true;
}

export interface Talk {
  readonly server: ModelServer;
  readonly store: SessionStore;
  readonly home: OpenHome;
  readonly conversation: OpenAgent;
  readonly project: string;
  readonly homeDir: string;
  readonly osHome: string;
  /** Milliseconds; time stands still unless a test moves it. */
  now: number;
  write(name: string, text: string): Promise<void>;
  /** One turn; resolves to its events. */
  say(text: string): Promise<readonly AgentEvent[]>;
  /** Leaves the conversation and takes it up again, as another process would. */
  resume(opening?: Partial<OpenRequest>): Promise<void>;
  /** Another conversation in its place. */
  begin(opening?: Partial<OpenRequest>): Promise<void>;
}

export async function talk(t: TestContext, options: TalkOptions = {}): Promise<Talk> {
  const server = await ModelServer.start();
  t.after(() => server.close());
  const temp = await tempHome({
    "config.yaml": `${modelConfig(server, options.mode, options.contextLength)}${options.config ?? ""}`,
    ...options.home,
  });
  const write = async (name: string, text: string) => {
    await mkdir(dirname(join(temp.project, name)), { recursive: true });
    await writeFile(join(temp.project, name), text);
  };
  for (const [name, text] of Object.entries(options.project ?? {})) await write(name, text);
  const time = { now: options.now ?? Date.parse("2026-03-30T12:00:00Z") };
  const clock: Clock = { ...systemClock, now: () => time.now };
  const home = await openHome({
    argv: [],
    env: { HERMES_HOME: temp.dir, HOME: temp.osHome, PATH: process.env.PATH ?? "", ...options.env },
    osHome: temp.osHome,
    cwd: temp.project,
    ...(options.masked ? { redactorFor: createRedactor } : {}),
  });
  await loadTools(home.log);
  const ownTools = new Map(registry.names().map((name) => [name, registry.get(name)]));
  const store = await openSessionStore({ path: home.paths.stateDb, journalMode: "auto", log: home.log, clock });
  const request: OpenRequest = {
    ...{ home, clock, cwd: temp.project, platform: "cli", source: "cli", interactive: false, yolo: true },
    store: async () => store,
    ...options.request,
  };
  const result = {
    ...{ server, store, home, project: temp.project, homeDir: temp.dir, osHome: temp.osHome, write },
    get now() {
      return time.now;
    },
    set now(ms: number) {
      time.now = ms;
    },
    conversation: undefined as unknown as OpenAgent, // opened in the next step, with the clock above
    async say(text: string) {
      const events: AgentEvent[] = [];
      for await (const event of result.conversation.agent.run({ text })) events.push(event);
      return events;
    },
    async resume(more: Partial<OpenRequest> = {}) {
      const { sessionId } = result.conversation.agent;
      await result.conversation.close("cli_close");
      result.conversation = await openAgent({ ...request, ...more, resume: { name: sessionId } });
    },
    async begin(more: Partial<OpenRequest> = {}) {
      await result.conversation.close("new_session");
      result.conversation = await openAgent({ ...request, ...more });
    },
  };
  result.conversation = await openAgent(request);
  t.after(async () => {
    await result.conversation.close("cli_close");
    await store.close();
    await home.close();
    await temp[Symbol.asyncDispose]();
    // The registry is one per process: what a test's plugins registered, or took the place of, is for the next one as it was.
    for (const name of registry.toolsets().filter((set) => /^t[_-]/.test(set))) {
      for (const tool of registry.toolsOf(name)) {
        registry.deregister(tool);
        const ours = ownTools.get(tool);
        if (ours) registry.register(ours.spec as ToolSpec); // either kind goes in as it came out
      }
    }
  });
  return result;
}

export const warningsOf = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === "status" && event.kind === "warn" ? [event.message] : []));
