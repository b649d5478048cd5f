// An editor: the client side of the official SDK, talking to the program over its standard streams. It keeps every byte that came.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import {
  type ClientCapabilities,
  type ClientContext,
  client,
  type InitializeResponse,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
  type SessionUpdate,
  type Stream,
} from "@agentclientprotocol/sdk";
import { serveEditor } from "../../src/doors/acp/server.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { openRequest } from "./open-request.ts";
import { environmentFor, launcher } from "./run-hermes.ts";
import type { TempHome } from "./temp-home.ts";

export interface EditorOptions {
  readonly home: TempHome;
  readonly env?: Readonly<Record<string, string>>;
  readonly capabilities?: ClientCapabilities;
  /** How the person answers; default: the first option. */
  answer?(request: RequestPermissionRequest): RequestPermissionResponse | Promise<RequestPermissionResponse>;
  readText?(path: string): string | Promise<string>;
  writeText?(path: string, text: string): void | Promise<void>;
  /** Calls of the agent beyond those: terminals. */
  call?(method: string, params: Readonly<Record<string, unknown>>): unknown;
}

export interface Editor extends Connected {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
}

/** The editor's side of one connection. */
export interface Connected extends AsyncDisposable {
  readonly agent: ClientContext;
  readonly initialized: InitializeResponse;
  /** Everything the agent told, in order. */
  readonly told: SessionNotification[];
  readonly asked: RequestPermissionRequest[];
  updates<K extends SessionUpdate["sessionUpdate"]>(
    kind: K,
    sessionId?: string,
  ): Extract<SessionUpdate, { sessionUpdate: K }>[];
  /** What the agent said, joined. */
  text(sessionId?: string): string;
  /** Waits for something to become true, looking after each update. */
  until(what: () => boolean): Promise<void>;
  /** A new conversation in the project; resolves to its id. */
  begin(cwd?: string): Promise<string>;
  say(sessionId: string, text: string): Promise<{ readonly stopReason: string }>;
}

export const chosen = (optionId: string): RequestPermissionResponse => ({ outcome: { outcome: "selected", optionId } });

export function startAcp({ home, env }: Pick<EditorOptions, "home" | "env">): ChildProcess {
  return spawn(process.execPath, [launcher, "acp"], {
    cwd: home.project,
    env: environmentFor({ home, ...(env && { env }) }),
    stdio: ["pipe", "pipe", "pipe"],
  });
}

export async function startEditor(options: EditorOptions): Promise<Editor> {
  const child = startAcp(options);
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new Error("the streams of the agent are missing");
  let out = "";
  let err = "";
  stdout.on("data", (bytes: Buffer) => {
    out += bytes.toString("utf8");
  });
  stderr.on("data", (bytes: Buffer) => {
    err += bytes.toString("utf8");
  });
  stdin.on("error", () => undefined); // the agent may be gone
  const stream = ndJsonStream(
    Writable.toWeb(stdin) as WritableStream<Uint8Array>, // the same streams in the web's types
    Readable.toWeb(stdout) as ReadableStream<Uint8Array>,
  );
  return {
    ...(await connectEditor(stream, options, () => err)),
    ...{ child, stdout: () => out, stderr: () => err },
    async [Symbol.asyncDispose]() {
      stdin.end();
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

/** The same over streams to an agent in this process: what needs no process of its own is seen sooner. */
export async function startEditorHere(options: EditorOptions): Promise<Connected> {
  const [there, back] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()];
  const { home, store } = await openRequest(options.home, { masked: true });
  const stop = new AbortController();
  const served = serveEditor(ndJsonStream(back.writable, there.readable), {
    ...{ home, clock: systemClock, store: async () => store, stop: stop.signal },
  });
  return {
    ...(await connectEditor(ndJsonStream(there.writable, back.readable), options)),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await served;
      await store.close();
      await home.close();
    },
  };
}

async function connectEditor(stream: Stream, options: EditorOptions, why = () => ""): Promise<Connected> {
  const told: SessionNotification[] = [];
  const asked: RequestPermissionRequest[] = [];
  const watchers = new Set<() => void>();
  const look = () => {
    for (const watch of watchers) watch();
  };
  const app = client({ name: "test-editor" })
    .onNotification("session/update", ({ params }) => {
      told.push(params);
      look();
    })
    .onRequest("session/request_permission", ({ params }) => {
      asked.push(params);
      look();
      return options.answer?.(params) ?? chosen(params.options[0]?.optionId ?? "");
    })
    .onRequest("fs/read_text_file", async ({ params }) => ({ content: (await options.readText?.(params.path)) ?? "" }))
    .onRequest("fs/write_text_file", async ({ params }) => {
      await options.writeText?.(params.path, params.content);
    })
    .onRequest(
      "*",
      async ({ method, params }) => options.call?.(method, params as Readonly<Record<string, unknown>>), // params of JSON-RPC
    );
  const connection = app.connect(stream);
  const { agent } = connection;
  const initialized = await agent.request("initialize", {
    protocolVersion: 1,
    clientInfo: { name: "test-editor", version: "1" },
    clientCapabilities: options.capabilities ?? {},
  });
  const of = (sessionId: string | undefined) =>
    told.filter((one) => sessionId === undefined || one.sessionId === sessionId).map(({ update }) => update);
  const editor: Connected = {
    ...{ agent, initialized, told, asked },
    updates: (kind, sessionId) =>
      of(sessionId).filter(
        (one): one is Extract<SessionUpdate, { sessionUpdate: typeof kind }> => one.sessionUpdate === kind,
      ),
    text: (sessionId) =>
      editor
        .updates("agent_message_chunk", sessionId)
        .map(({ content }) => (content.type === "text" ? content.text : ""))
        .join(""),
    until: (what) =>
      new Promise((resolve, reject) => {
        const watch = () => {
          if (!what()) return;
          watchers.delete(watch);
          resolve();
        };
        watchers.add(watch);
        void connection.closed.then(() => reject(new Error(`the agent has left: ${why()}`)));
        watch();
      }),
    begin: async (cwd = options.home.project) =>
      (await agent.request("session/new", { cwd, mcpServers: [] })).sessionId,
    async say(sessionId, text) {
      const ended = await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
      // The library hands answers on at once, and notifications that came before them a few steps later.
      await new Promise(setImmediate);
      return ended;
    },
    async [Symbol.asyncDispose]() {
      connection.close();
    },
  };
  return editor;
}
