import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { play } from "../../../test/support/agent/agent-rig.ts";
import { commandRig } from "../../../test/support/command-rig.ts";
import type { RecordedRequest } from "../../../test/support/model-server/script.ts";
import { ModelServer } from "../../../test/support/model-server/server.ts";

const FIRST = "lm-first-0123456789";
const SECOND = "lm-second-0123456789";
const THIRD = "lm-third-0123456789";
const keyOf = (request: RecordedRequest) => String(request.headers.authorization).replace("Bearer ", "");
const goalOf = (request: RecordedRequest): string =>
  String(request.body.messages.find((message: { role: string }) => message.role === "user").content);

/** Not the conversation itself, and not what gives it a title. */
const isChild = (request: RecordedRequest) => /^(one|two|three)$/.test(goalOf(request));

describe("keys of children", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());

  /** Three children that all work at the same time, in a home whose provider has these keys. */
  async function delegate(t: TestContext, tokens: readonly string[], more = "") {
    server.clear();
    const entries = tokens.map((access_token, priority) => ({ id: `aaaaa${priority}`, priority, access_token }));
    const rig = await commandRig(t, {
      "config.yaml": `model:\n  default: fake-model\n  provider: lmstudio\n  base_url: ${server.url}\n  context_length: 128000\n${more}`,
      "auth.json": JSON.stringify({ credential_pool: { lmstudio: entries } }),
    });
    let waiting = 0;
    let all = Promise.withResolvers<void>();
    server.otherwise(async (request) => {
      if (goalOf(request) === "start it") {
        if (request.body.messages.at(-1).role === "tool") return { text: "over" };
        all = Promise.withResolvers();
        waiting = 0;
        const tasks = [{ goal: "one" }, { goal: "two" }, { goal: "three" }];
        return { toolCalls: [{ name: "delegate_task", arguments: { tasks } }] };
      }
      if (!isChild(request)) return { text: "A title" };
      if (++waiting === 3) all.resolve();
      await all.promise;
      return { text: "done" };
    });
    return async () => {
      server.requests.length = 0;
      const { outcome } = await play(rig.ctx.conversation.agent, "start it");
      assert.equal(outcome.finalText, "over");
      return server.requests.filter(isChild).map(keyOf).sort();
    };
  }

  test("children side by side each work with a key of their own, and give it back", async (t) => {
    const keys = await delegate(t, [FIRST, SECOND, THIRD]);
    assert.deepEqual(await keys(), [FIRST, SECOND, THIRD].sort());
    assert.deepEqual(await keys(), [FIRST, SECOND, THIRD].sort());
  });

  test("more children than keys share them evenly", async (t) => {
    const keys = await delegate(t, [FIRST, SECOND]);
    assert.deepEqual(await keys(), [FIRST, FIRST, SECOND]);
  });

  test("a key that was given by hand is the children's key too", async (t) => {
    const given = "lm-by-hand-0123456789";
    const keys = await delegate(t, [FIRST, SECOND], `  api_key: ${given}\n`);
    assert.deepEqual(await keys(), [given, given, given]);
  });
});
