// A stream of a chat that breaks off in this program itself, over a real connection.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { parseEvents } from "../../../test/support/api-rig.ts";
import { chatRoutes } from "./chat-completions.ts";
import type { Call } from "./contract.ts";
import type { Api } from "./server.ts";

test("a stream in which something is thrown says so in an event of its own before it ends", async (t) => {
  const logged: unknown[] = [];
  const log = { child: () => ({ error: (_: string, error: unknown) => logged.push(error) }) };
  const events = (async function* () {
    yield { type: "text", delta: "half", sessionId: "s" };
    throw new Error("the details are for the log");
  })();
  const api = {
    parts: { clock: { now: () => 0 }, home: { log } },
    settings: { modelName: "hermes-agent", keepaliveSeconds: 3600 },
    runs: { isAsync: () => false },
    modelFor: () => undefined,
    turns: { begin: async () => ({ sessionId: "s", events }) },
  } as unknown as Api; // the parts that a stream touches
  const [route] = chatRoutes(api);
  const server = createServer((incoming, outgoing) => {
    const body = async () => ({ messages: [{ role: "user", content: "x" }], stream: true });
    const gone = new AbortController().signal;
    void route?.handle({
      incoming,
      outgoing,
      headers: {},
      query: new URLSearchParams(),
      param: String,
      body,
      gone,
    } satisfies Call);
  });
  server.listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [failed, finish, done] = parseEvents(await response.text()).slice(-3);
  assert.equal(failed?.event, "hermes.error");
  const { message, code, choices } = JSON.parse(failed?.data ?? "{}");
  assert.deepEqual([message, code, choices], ["internal error; see logs/errors.log of the home", "agent_error", []]);
  assert.equal(JSON.parse(finish?.data ?? "{}").choices[0].finish_reason, "error");
  assert.equal(done?.data, "[DONE]");
  assert.match(String(logged), /the details are for the log/);
});
