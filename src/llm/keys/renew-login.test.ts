// A login that ran out, through the agent's own door: a model server and an issuer of tokens on loopback.
import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, type TestContext, test } from "node:test";
import { play } from "../../../test/support/agent/agent-rig.ts";
import { commandRig } from "../../../test/support/command-rig.ts";
import { ModelServer } from "../../../test/support/model-server/server.ts";
import { chooseTarget } from "../../agent/open-model.ts";
import { providerRow } from "../providers/table.ts";
import { renewLogin } from "./renew-login.ts";

const OLD = "lm-old-token-0123456789";
const NEW = "lm-new-token-0123456789";

describe("renewing a login", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());

  async function issuer(t: TestContext, answer: { status: number; body: object }) {
    const asked: string[] = [];
    const http = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      asked.push(body);
      response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body));
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    t.after(() => http.close());
    return { asked, url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/token` };
  }

  async function talk(t: TestContext, tokenUrl: string, accepts: (key: string) => boolean) {
    server.clear().otherwise(({ headers }) => {
      const key = String(headers.authorization).replace("Bearer ", "");
      return accepts(key) ? { text: "hello" } : { fault: "status", status: 401 };
    });
    const login = { id: "aaaaaa", auth_type: "oauth", access_token: OLD, refresh_token: "renew-me-0123" };
    const entry = { ...login, token_url: tokenUrl, client_id: "hermes", base_url: server.url };
    const rig = await commandRig(t, {
      "config.yaml": `model:\n  default: fake-model\n  provider: lmstudio\n  base_url: ${server.url}\n  context_length: 128000\n`,
      "auth.json": JSON.stringify({ active_provider: "lmstudio", credential_pool: { lmstudio: [entry] } }),
    });
    const { outcome, events } = await play(rig.ctx.conversation.agent, "hi");
    const { paths } = rig.ctx.home;
    const kept = JSON.parse(await readFile(paths.at("auth.json"), "utf8")).credential_pool.lmstudio[0];
    const lines = events.flatMap((event) => (event.type === "status" && event.kind === "warn" ? [event.message] : []));
    return { outcome, lines, kept, rig, path: paths.at("auth.json") };
  }

  test("a token that is refused is renewed once, kept, and told in one line", async (t) => {
    const { asked, url } = await issuer(t, {
      status: 200,
      body: { access_token: NEW, refresh_token: "renew-me-next", expires_in: 3600 },
    });
    const { outcome, lines, kept, path } = await talk(t, url, (key) => key === NEW);
    assert.equal(outcome.finalText, "hello");
    assert.deepEqual(asked, ["grant_type=refresh_token&refresh_token=renew-me-0123&client_id=hermes"]);
    assert.equal(lines.filter((line) => /the login to lmstudio was renewed\.$/.test(line)).length, 1);
    assert.deepEqual([kept.access_token, kept.refresh_token], [NEW, "renew-me-next"]);
    assert.ok(Math.abs(kept.expires_at - Date.now() / 1000 - 3600) < 600);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  test("a fresh token that is refused too is not renewed again; the user reads what to do", async (t) => {
    const { asked, url } = await issuer(t, { status: 200, body: { access_token: NEW } });
    const { outcome } = await talk(t, url, () => false);
    assert.equal(outcome.failed, true);
    assert.match(outcome.finalText ?? "", /did not accept the API key/);
    assert.equal(asked.length, 1);
  });

  test("an issuer that says no leaves the login as it was", async (t) => {
    const { url } = await issuer(t, { status: 400, body: { error: "invalid_grant" } });
    const { outcome, kept } = await talk(t, url, () => false);
    assert.equal(outcome.failed, true);
    assert.deepEqual([kept.access_token, kept.refresh_token], [OLD, "renew-me-0123"]);
  });

  test("who is logged in needs no settings", async (t) => {
    const { url } = await issuer(t, { status: 400, body: {} });
    const { rig } = await talk(t, url, () => true);
    await rig.ctx.home.setConfigKeys({ "model.provider": undefined, "model.base_url": undefined });
    const { target } = await chooseTarget(rig.ctx.home, { model: "fake-model" }, { offline: true });
    assert.deepEqual([target.provider, target.baseUrl, target.apiKey], ["lmstudio", server.url, OLD]);
  });
});

test("the token that renews a login goes nowhere but to its provider, and never in the clear", async () => {
  const row = providerRow("nous");
  assert.ok(row);
  const entry = { id: "aaaaaa", access_token: OLD, refresh_token: "r", client_id: "hermes" };
  const asked: string[] = [];
  const fetch = async (url: string | URL | Request) => {
    asked.push(String(url));
    return Response.json({ access_token: NEW });
  };
  const renew = (token_url?: string) =>
    renewLogin({ ...entry, ...(token_url ? { token_url } : {}) }, row, { fetch, now: () => 0 });
  for (const url of [
    undefined,
    "https://nousresearch.com.evil.example/token",
    "http://portal.nousresearch.com/token",
    "https://evil.example/?nousresearch.com",
    "http://127.0.0.1:1/token",
  ])
    assert.equal(await renew(url), null);
  assert.deepEqual(asked, []);
  assert.equal((await renew("https://portal.nousresearch.com/token"))?.access_token, NEW);
});
