// The agent's side of the protocol: what it offers, and which call goes where. Nothing but the protocol leaves through its stream.
import { type AgentConnection, type AuthMethod, agent, RequestError, type Stream } from "@agentclientprotocol/sdk";
import { z } from "zod";
import { chooseTarget } from "../../agent/open-model.ts";
import { t } from "../../home/language/words.ts";
import type { OpenHome } from "../../home/open.ts";
import { VERSION } from "../../home/paths.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import type { SessionStore } from "../../sessions/store.ts";
import { EditorSessions } from "./sessions.ts";

const PROTOCOL = 1;
const SETUP = "hermes-setup";

interface ServerOptions {
  readonly home: OpenHome;
  readonly clock: Clock;
  store(): Promise<SessionStore>;
  /** A signal: what runs ends as if the client had left. */
  readonly stop: AbortSignal;
}

/** Calls that the stable protocol no longer or not yet has; clients make them all the same. */
const servers = z.array(z.looseObject({})).optional();
const forkParams = z.object({ sessionId: z.string(), cwd: z.string(), mcpServers: servers });
const modelParams = z.object({ sessionId: z.string(), modelId: z.string() });

/** Resolves when the client is gone and everything it left running has ended. */
export async function serveEditor(stream: Stream, { home, clock, store, stop }: ServerOptions): Promise<void> {
  let sessions: EditorSessions | null = null;
  const open = (): EditorSessions => {
    if (!sessions) throw RequestError.invalidRequest(undefined, "initialize comes first");
    return sessions;
  };
  const log = home.log.child("acp");
  let connection: AgentConnection | null = null;
  const app = agent({ name: "hermes-agent" })
    .onRequest("initialize", async ({ params, client }) => {
      // Once more is another client's view of the same process: what is open stays.
      sessions ??= new EditorSessions({
        ...{ home, clock, store },
        client: connection?.client ?? client,
        capabilities: params.clientCapabilities ?? {},
      });
      return {
        protocolVersion: Math.min(params.protocolVersion, PROTOCOL) || PROTOCOL,
        agentInfo: { name: "hermes-agent", title: "Hermes", version: VERSION },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, embeddedContext: true },
          mcpCapabilities: { http: true, sse: true },
          sessionCapabilities: { list: {}, resume: {}, close: {}, fork: {} },
        },
        authMethods: await authMethods(home),
      };
    })
    .onRequest("authenticate", async ({ params }) => {
      const offered = await authMethods(home);
      if (!offered.some(({ id }) => id === params.methodId))
        throw RequestError.invalidParams(undefined, `There is no way "${params.methodId}" to sign in`);
      // Setup runs in a terminal; here it only matters what came of it.
      if ((await configuredProvider(home)) === null)
        throw RequestError.authRequired(undefined, "No model is connected. Run: hermes acp --setup");
      return {};
    })
    .onRequest("session/new", ({ params }) => open().begin(params))
    .onRequest("session/load", ({ params }) => open().load(params.sessionId, params))
    .onRequest("session/resume", ({ params }) => open().resume(params.sessionId, params))
    .onRequest(
      "session/fork",
      (given) => forkParams.parse(given),
      ({ params }) => open().fork(params.sessionId, { cwd: params.cwd, mcpServers: params.mcpServers as never }), // read like those of session/new
    )
    .onRequest("session/list", ({ params }) => open().list(params))
    .onRequest("session/close", async ({ params }) => void (await open().close(params.sessionId)))
    .onRequest("session/set_mode", async ({ params }) => void (await open().setMode(params.sessionId, params.modeId)))
    .onRequest("session/set_config_option", ({ params }) =>
      open().setOption(params.sessionId, params.configId, params.value),
    )
    .onRequest(
      "session/set_model",
      (given) => modelParams.parse(given),
      async ({ params }) => {
        await open().setModel(params.sessionId, params.modelId);
        return {};
      },
    )
    .onRequest("session/prompt", async ({ params, signal }) => {
      const session = open().get(params.sessionId);
      if (!session) return { stopReason: "refusal" };
      return session.prompt(params.prompt, signal);
    })
    .onNotification("session/cancel", ({ params }) => open().get(params.sessionId)?.cancel());
  connection = app.connect(stream);
  const { closed, close } = { closed: connection.closed, close: () => connection?.close() };
  stop.addEventListener("abort", close, { once: true });
  if (stop.aborted) close();
  await closed;
  const why: unknown = connection.signal.reason;
  log.info(`the editor has left: ${messageOf(why)}`);
  await (sessions as EditorSessions | null)?.closeAll();
}

/** The provider in use, if a key is there, and the way to get one. */
async function authMethods(home: OpenHome): Promise<AuthMethod[]> {
  const provider = await configuredProvider(home);
  return [
    ...(provider === null
      ? []
      : [{ id: provider, name: provider, description: t("The provider that Hermes is set up with") }]),
    {
      type: "terminal",
      id: SETUP,
      name: t("Set up Hermes"),
      description: t("Connect a model in a terminal"),
      args: ["--setup"],
    },
  ];
}

async function configuredProvider(home: OpenHome): Promise<string | null> {
  try {
    const { demo, providerName } = await chooseTarget(home, {}, { offline: true });
    return demo ? null : providerName;
  } catch (error) {
    home.log.child("acp").warn("the configured model cannot be used", error);
    return null;
  }
}
