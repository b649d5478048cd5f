// The API server in this process, on a home of its own, with the scripted model behind it; or `hermes api` in a process.
import { type ApiServer, startApi } from "../../src/doors/api/server.ts";
import { readApiSettings } from "../../src/doors/api/settings.ts";
import { lazy } from "../../src/kit/lazy.ts";
import type { SessionStore } from "../../src/sessions/store.ts";
import { ModelServer } from "./model-server/server.ts";
import { openRequest } from "./open-request.ts";
import { modelConfig, type TempHome, tempHome } from "./temp-home.ts";

export const KEY = "test-key-of-the-api";

export interface ApiRig extends AsyncDisposable {
  readonly url: string;
  readonly model: ModelServer;
  readonly store: SessionStore;
  readonly home: TempHome;
  /** Resolves when what was logged so far is written. */
  logged(): Promise<void>;
  /** One call with the key; the body of the answer as JSON. */
  call(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answered>;
  /** The events of a stream, until it ends. */
  events(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<SseEvent[]>;
  /** The server alone; its home, store and model stay. */
  stop(): Promise<void>;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what they expect
  readonly json: any;
}

export interface SseEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data?: string;
  readonly comment?: string;
}

interface RigOptions {
  /** `platforms.api_server.extra`. */
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly config?: string;
  /** Null: none is set. */
  readonly key?: string | null;
}

export async function apiRig({ extra = {}, config = "", key = KEY }: RigOptions = {}): Promise<ApiRig> {
  const model = await ModelServer.start();
  const home = await tempHome({ "config.yaml": modelConfig(model) + config });
  const { home: opened, store, request } = await openRequest(home, { masked: true });
  const options: Readonly<Record<string, unknown>> = { port: 0, key: key ?? undefined, ...extra };
  const settings = readApiSettings((name) => options[name], opened);
  const parts = {
    home: opened,
    store,
    clock: request.clock,
    cwd: home.project,
    status: async () => ({ state: "running" }),
  };
  const server: ApiServer = await startApi(parts, settings);
  const send = (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    fetch(server.url + path, {
      method,
      headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  const stop = lazy(() => server.close());
  return {
    ...{ url: server.url, model, store, home, logged: () => opened.log.flush() },
    async call(...args) {
      const response = await send(...args);
      const text = await response.text();
      return { status: response.status, headers: response.headers, json: text === "" ? null : JSON.parse(text) };
    },
    async events(...args) {
      return parseEvents(await (await send(...args)).text());
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      await store.close();
      await model.close();
      await home[Symbol.asyncDispose]();
    },
  };
}

/** A stream that has ended, event by event. */
export function parseEvents(text: string): SseEvent[] {
  return text
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const lines = block.split("\n").map((line) => {
        const at = line.indexOf(":");
        return [at === 0 ? "comment" : line.slice(0, at), line.slice(at + 2)] as const;
      });
      return Object.fromEntries(lines);
    });
}

/** What was said last to the model. */
export function lastText(messages: readonly { readonly content?: unknown }[]): string {
  const content = messages.at(-1)?.content;
  return typeof content === "string" ? content : JSON.stringify(content);
}
