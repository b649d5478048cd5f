import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultConfig } from "../home/config/schema.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { RunContext } from "../tools/toolset/context.ts";
import { openGuard } from "./open-guard.ts";
import type { OpenRequest } from "./open-request.ts";

test("a question about a command waits a minute at the terminal, five in a chat", () => {
  const request = { home: { config: defaultConfig } } as unknown as OpenRequest; // all that is asked of it here
  const { askTimeoutMs } = openGuard(request, {} as Environment, {
    sessionId: () => "s",
    foreignText: () => null,
  }).ports; // no command is judged
  const question = { kind: "approval", command: "x", description: "x", patternKey: "x", allowAlways: true } as const;
  assert.equal(askTimeoutMs?.(question, {} as RunContext), 60_000); // a run without a chat
  assert.equal(askTimeoutMs?.(question, { chat: { chatId: "1" } } as RunContext), 300_000); // and with one
});
