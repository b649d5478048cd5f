import assert from "node:assert/strict";
import { test } from "node:test";
import { dispatch } from "../../test/support/dispatch.ts";
import { recordingLog, toolContext } from "../../test/support/tool-context.ts";
import { configSchema } from "../home/config/schema.ts";
import { systemClock } from "../kit/clock.ts";
import { AvailabilityCache } from "./toolset/availability.ts";
import type { CronRequest, DeliveryPort, ToolContext } from "./toolset/context.ts";
import { loadTools } from "./toolset/discover.ts";

import { registry } from "./toolset/registry.ts";
import { SessionTools } from "./toolset/session-tools.ts";

const log = recordingLog();
await loadTools(log);
const call = async (name: string, args: object, ctx: Partial<ToolContext> = {}) =>
  JSON.parse(String(await dispatch(registry, name, { ...args }, toolContext(ctx))));

test("without their ports the tools are no part of a session, and say so when called all the same", async () => {
  const open = (ports: readonly string[]) =>
    SessionTools.open({
      registry,
      availability: new AvailabilityCache(systemClock),
      platform: "cli",
      config: configSchema.parse({}),
      contextLength: 200_000,
      environment: toolContext().environment,
      log,
      env: () => undefined,
      ports: new Set(ports),
    });
  const none = await open([]);
  const both = await open(["cron", "deliver"]);
  for (const name of ["cronjob", "send_message"]) {
    assert.ok(!none.names.has(name) && both.names.has(name), name);
    assert.ok(
      !JSON.stringify(none.definitions).includes(name) && JSON.stringify(both.definitions).includes(name),
      name,
    );
    assert.equal(none.prepare("tool_call", { name, arguments: { action: "list" } }).name, "tool_call");
  }
  assert.match((await call("cronjob", { action: "list" })).error, /not configured/);
  assert.match((await call("send_message", { target: "telegram", message: "hi" })).error, /No messaging platform/);
});

const requests: readonly [args: object, request: CronRequest | RegExp][] = [
  [{ action: "list" }, { action: "list" }],
  [
    { action: "create", schedule: "every 2h", prompt: "look", repeat: "3", skills: "news" },
    { action: "create", schedule: "every 2h", prompt: "look", repeat: 3, skills: ["news"] },
  ],
  [
    { action: "create", schedule: "30m", script: "a.sh", no_agent: true, model: { model: "m" } },
    { action: "create", schedule: "30m", script: "a.sh", no_agent: true, model: { model: "m" } },
  ],
  [{ action: "create", prompt: "look" }, /^schedule:/],
  [{ action: "create", schedule: "30m" }, /^prompt, skills, script:/],
  [{ action: "create", schedule: "30m", prompt: "x", no_agent: true }, /^no_agent:/],
  [
    { action: "update", job_id: "j", prompt: "", skills: [] },
    { action: "update", jobId: "j", prompt: "", skills: [] },
  ],
  [{ action: "update", job_id: "j" }, /nothing to change/],
  [{ action: "update", prompt: "x" }, /^job_id:/],
  [
    { action: "pause", job_id: " news " },
    { action: "pause", jobId: "news" },
  ],
  [
    { action: "resume", job_id: "j" },
    { action: "resume", jobId: "j" },
  ],
  [
    { action: "remove", job_id: "j" },
    { action: "remove", jobId: "j" },
  ],
  [
    { action: "run_now", job_id: "j" },
    { action: "run", jobId: "j" },
  ],
  [
    { action: "trigger", job_id: "j" },
    { action: "run", jobId: "j" },
  ],
  [{ action: "remove" }, /^job_id:/],
  [{ action: "explode" }, /action/],
];
for (const [args, expected] of requests) {
  test(`cronjob ${JSON.stringify(args)} ${expected instanceof RegExp ? "is refused" : "reaches the schedule"}`, async () => {
    const seen: CronRequest[] = [];
    const cron = {
      manage: async (request: CronRequest) => {
        seen.push(request);
        return { success: true as const, count: 0, jobs: [] };
      },
    };
    const result = await call("cronjob", args, { cron });
    if (expected instanceof RegExp) {
      assert.deepEqual([seen, result.success], [[], false]);
      assert.match(result.error, expected);
    } else assert.deepEqual([seen, result.success], [[expected], true]);
    const inside = await call("cronjob", args, { cron, origin: "cron" });
    assert.equal(inside.success, false);
  });
}

test("send_message hands over what is whole and names what is missing", async () => {
  const sent: object[] = [];
  const deliver: DeliveryPort = {
    send: async (message) => {
      sent.push(message);
      return { success: true, platform: "telegram", chat_id: "5", message_id: "9" };
    },
    targets: async () => [{ target: "telegram:5", name: "me", home: true }],
  };
  assert.deepEqual(await call("send_message", { target: "telegram:5:7", message: "hi MEDIA:/a.png" }, { deliver }), {
    success: true,
    platform: "telegram",
    chat_id: "5",
    message_id: "9",
  });
  assert.deepEqual(sent, [{ target: "telegram:5:7", text: "hi MEDIA:/a.png" }]);
  const wrong = [
    [{ message: "hi" }, /^target: say/],
    [{ target: ":5", message: "hi" }, /^target: ":5"/],
    [{ target: "telegram", message: " " }, /^message: is empty/],
  ] as const;
  for (const [args, error] of wrong) assert.match((await call("send_message", args, { deliver })).error, error);
  assert.equal(sent.length, 1);
  const listed = await call("send_message", { action: "list" }, { deliver });
  assert.deepEqual(listed.targets, [{ target: "telegram:5", name: "me", home: true }]);
});
