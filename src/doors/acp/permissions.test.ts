import assert from "node:assert/strict";
import { mock, test } from "node:test";
import type { RequestPermissionRequest, RequestPermissionResponse } from "@agentclientprotocol/sdk";
import { recordingLog } from "../../../test/support/tool-context.ts";
import type { AskRequest } from "../../agent/events.ts";
import type { ApprovalQuestion } from "../../safety/decision.ts";
import { Permissions } from "./permissions.ts";

type Asked = Omit<RequestPermissionRequest, "sessionId">;

const edits = [{ path: "/w/a.txt", before: "1\n", after: "2\n" }];
const never = new AbortController().signal;

/** A client that gives an answer, or none until the question is taken back. */
function client(answer: (asked: Asked) => RequestPermissionResponse | null, stop: () => void = () => undefined) {
  const asked: Asked[] = [];
  const permissions = new Permissions(
    async (request, signal) => {
      asked.push(request);
      const given = answer(request);
      if (given) return given;
      return new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    },
    recordingLog([]),
    stop,
  );
  return { permissions, asked };
}

const selected = (optionId: string) => ({ outcome: { outcome: "selected" as const, optionId } });

async function approve(permissions: Permissions, question: Partial<ApprovalQuestion>, signal = never) {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const whole = { kind: "approval", command: "rm x", description: "delete", patternKey: "delete", allowAlways: true };
  const request = { id: "1", question: { ...whole, ...question }, signal, expiresAt: null, answer: resolve };
  await permissions.answer(request as AskRequest); // as the agent makes it
  return promise;
}

test("nobody waits longer than a minute for an answer about an edit; silence is told apart from a no", async () => {
  const times: number[] = [];
  mock.method(AbortSignal, "timeout", (ms: number) => {
    times.push(ms);
    return AbortSignal.abort(new Error("time is up"));
  });
  try {
    const { permissions } = client(() => null);
    assert.equal(await permissions.edit(edits, "a.txt", never), "silence");
    assert.deepEqual(times, [60_000]);
  } finally {
    mock.restoreAll();
  }
  const { permissions, asked } = client(() => ({ outcome: { outcome: "cancelled" } }));
  assert.equal(await permissions.edit(edits, "a.txt", never), "no");
  assert.equal(await permissions.edit(edits, "a.txt", never), "no");
  assert.deepEqual(
    asked.map(({ toolCall }) => toolCall.toolCallId),
    ["edit-approval-1", "edit-approval-2"],
  );
});

for (const [option, choice] of [
  ["allow_once", "once"],
  ["allow_session", "session"],
  ["allow_always", "always"],
  ["deny", "deny"],
  ["deny_always", "deny"],
  ["something else", "deny"],
] as const)
  test(`the option ${option} is the answer ${choice}`, async () => {
    const { permissions } = client(() => selected(option));
    assert.deepEqual(await approve(permissions, {}), { choice });
  });

test("what a yes may not last for is not offered", async () => {
  const { permissions, asked } = client(() => selected("deny"));
  await approve(permissions, { allowAlways: false, allowSession: false });
  assert.deepEqual(
    asked[0]?.options.map(({ optionId }) => optionId),
    ["allow_once", "deny", "deny_always"],
  );
});

test("a question that ran out of time is denied as such, and a password is asked nobody", async () => {
  const over = new AbortController();
  const { permissions, asked } = client(() => {
    setImmediate(() => over.abort());
    return null;
  });
  assert.deepEqual(await approve(permissions, {}, over.signal), { choice: "deny", timedOut: true });
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const request = { id: "2", question: { kind: "sudo" }, signal: never, expiresAt: null, answer: resolve };
  await permissions.answer(request as AskRequest); // as the agent makes it
  assert.deepEqual(await promise, { text: null });
  assert.equal(asked.length, 1);
});
