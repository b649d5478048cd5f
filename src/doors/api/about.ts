// What the server says about itself: models, abilities, health, skills and toolsets.
import { VERSION } from "../../home/paths.ts";
import { asRecord } from "../../kit/json.ts";
import { skillsContext } from "../../skills/open.ts";
import { offeredSkills } from "../../skills/open-skill.ts";
import { loadTools } from "../../tools/toolset/discover.ts";
import { registry } from "../../tools/toolset/registry.ts";
import { CONFIGURABLE, chooseToolsets, resolveToolset, switchableToolsets } from "../../tools/toolset/toolsets.ts";
import type { Reply, Route } from "./contract.ts";
import type { Api } from "./server.ts";

const PLATFORM = "hermes-agent";

export function aboutRoutes(api: Api): readonly Route[] {
  const ok = (body: object): Reply => ({ status: 200, body });
  const health = async () => ok({ status: "ok", platform: PLATFORM, version: VERSION });
  return [
    { method: "GET", path: "/health", handle: health },
    { method: "GET", path: "/v1/health", handle: health },
    { method: "GET", path: "/health/detailed", handle: async () => ok(await detailed(api)) },
    { method: "GET", path: "/v1/models", handle: async () => ok({ object: "list", data: models(api) }) },
    { method: "GET", path: "/v1/capabilities", handle: async () => ok(capabilities(api)) },
    { method: "GET", path: "/v1/skills", handle: async () => ok({ object: "list", data: await skills(api) }) },
    {
      method: "GET",
      path: "/v1/toolsets",
      handle: async () => ok({ object: "list", platform: "api_server", data: await toolsets(api) }),
    },
  ];
}

async function detailed({ parts, turns }: Api): Promise<object> {
  const status = await parts.status();
  const { state } = asRecord(status);
  return {
    ...{ status: "ok", platform: PLATFORM, gateway_state: state ?? null },
    active_agents: turns.running,
    ...status,
    api: { turns: turns.running, memory_mb: Math.round(process.memoryUsage.rss() / 1_048_576) },
  };
}

function models({ settings, startedAt }: Api): readonly object[] {
  return [settings.modelName, ...Object.keys(settings.routes)].map((id) => ({
    ...{ id, object: "model", created: startedAt, owned_by: "hermes", permission: [] },
    ...{ root: id, parent: null },
  }));
}

/** Endpoints by the names that clients know them by. */
const ENDPOINTS: Readonly<Record<string, readonly [method: string, path: string]>> = {
  health: ["GET", "/health"],
  health_detailed: ["GET", "/health/detailed"],
  capabilities: ["GET", "/v1/capabilities"],
  models: ["GET", "/v1/models"],
  chat_completions: ["POST", "/v1/chat/completions"],
  responses: ["POST", "/v1/responses"],
  response: ["GET", "/v1/responses/{response_id}"],
  response_delete: ["DELETE", "/v1/responses/{response_id}"],
  runs: ["POST", "/v1/runs"],
  run_status: ["GET", "/v1/runs/{run_id}"],
  run_events: ["GET", "/v1/runs/{run_id}/events"],
  run_approval: ["POST", "/v1/runs/{run_id}/approval"],
  run_stop: ["POST", "/v1/runs/{run_id}/stop"],
  skills: ["GET", "/v1/skills"],
  toolsets: ["GET", "/v1/toolsets"],
  sessions: ["GET", "/api/sessions"],
  session_create: ["POST", "/api/sessions"],
  session: ["GET", "/api/sessions/{session_id}"],
  session_update: ["PATCH", "/api/sessions/{session_id}"],
  session_delete: ["DELETE", "/api/sessions/{session_id}"],
  session_messages: ["GET", "/api/sessions/{session_id}/messages"],
  session_chat: ["POST", "/api/sessions/{session_id}/chat"],
  session_chat_stream: ["POST", "/api/sessions/{session_id}/chat/stream"],
  session_fork: ["POST", "/api/sessions/{session_id}/fork"],
  jobs: ["GET", "/api/jobs"],
  job_create: ["POST", "/api/jobs"],
  job: ["GET", "/api/jobs/{job_id}"],
  job_update: ["PATCH", "/api/jobs/{job_id}"],
  job_delete: ["DELETE", "/api/jobs/{job_id}"],
  job_pause: ["POST", "/api/jobs/{job_id}/pause"],
  job_resume: ["POST", "/api/jobs/{job_id}/resume"],
  job_run: ["POST", "/api/jobs/{job_id}/run"],
};

function capabilities({ settings }: Api): object {
  const { modelName, key, origins } = settings;
  return {
    object: "hermes.api_server.capabilities",
    platform: PLATFORM,
    model: modelName,
    auth: { type: "bearer", required: key !== null },
    runtime: {
      mode: "server_agent",
      tool_execution: "server",
      split_runtime: false,
      description: "The agent and its tools run on this server; clients send messages and read what comes of them.",
    },
    features: {
      ...{ chat_completions: true, chat_completions_streaming: true, responses_api: true, responses_streaming: true },
      ...{ run_submission: true, run_status: true, run_events_sse: true, run_stop: true, run_approval_response: true },
      ...{ tool_progress_events: true, approval_events: true, session_resources: true, session_chat: true },
      ...{ session_chat_streaming: true, session_fork: true, skills_api: true, jobs_admin: true },
      cors: origins.length > 0,
      session_continuity_header: "X-Hermes-Session-Id",
      session_key_header: "X-Hermes-Session-Key",
    },
    endpoints: Object.fromEntries(Object.entries(ENDPOINTS).map(([name, [method, path]]) => [name, { method, path }])),
  };
}

async function skills({ parts: { home, clock } }: Api): Promise<readonly object[]> {
  const offered = await offeredSkills(skillsContext({ home, clock }), "api_server");
  return offered.map(({ name, description, summary, category }) => ({
    ...{ name, description: description || summary, category },
  }));
}

async function toolsets({ parts: { home } }: Api): Promise<readonly object[]> {
  await loadTools(home.log);
  const question = { platform: "api_server", config: home.config(), env: (name: string) => home.env(name) };
  const chosen = new Set(chooseToolsets(question, registry).toolsets);
  return switchableToolsets(registry).map((name) => {
    const tools = resolveToolset(name, registry).filter((tool) => registry.has(tool));
    const needed = tools.flatMap((tool) => registry.get(tool)?.traits.requiresEnv ?? []);
    return {
      ...{ name, label: name.replaceAll("_", " "), description: CONFIGURABLE[name]?.description ?? "" },
      enabled: chosen.has(name),
      configured: needed.every((variable) => home.env(variable) !== undefined),
      tools,
    };
  });
}
