import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultConfig } from "../home/config/schema.ts";
import type { Question } from "../safety/decision.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { RunContext } from "../tools/toolset/context.ts";
import { openGuard } from "./open-guard.ts";
import type { OpenRequest } from "./open-request.ts";

function timeoutOf(question: Question, run: Partial<RunContext>, more: Partial<OpenRequest> = {}, screen_timeout = 0) {
  const config = defaultConfig();
  const settings = { ...config, approvals: { ...config.approvals, screen_timeout } };
  const request = { home: { config: () => settings }, ...more } as unknown as OpenRequest; // all that is asked of it here
  const ports = { sessionId: () => "s", foreignText: () => null }; // no command is judged
  return openGuard(request, {} as Environment, ports).ports.askTimeoutMs?.(question, run as RunContext);
}

test("a question of the agent waits two minutes at the terminal, ten in a chat", () => {
  const question = { kind: "clarify", question: "Which?", choices: null, multiSelect: false } as const;
  assert.equal(timeoutOf(question, {}), 120_000);
  assert.equal(timeoutOf(question, { chat: { chatId: "1" } }), 600_000);
});

test("a question about a command waits for ever on a screen, a minute at the terminal, five in a chat", () => {
  const question = { kind: "approval", command: "x", description: "x", patternKey: "x", allowAlways: true } as const;
  const waits = timeoutOf.bind(null, question);
  assert.equal(waits({}, { attended: true }), undefined);
  assert.equal(waits({}, { attended: true }, 90), 90_000);
  assert.equal(waits({}), 60_000);
  assert.equal(waits({ chat: { chatId: "1" } }), 300_000);
});
