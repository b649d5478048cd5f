// Signing in, against a real authorization server on loopback.
import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { McpError } from "../src/mcp/errors.ts";
import { login } from "../src/mcp/oauth-login.ts";
import { parseServer } from "../src/mcp/settings.ts";
import { type Authority, authority } from "./support/mcp/authority.ts";
import { type SmallServer, smallServer } from "./support/mcp/http-server.ts";
import { hubRig } from "./support/mcp/hub-rig.ts";
import { startHermes } from "./support/run-hermes.ts";
import { tempHome } from "./support/temp-home.ts";

describe("a server that wants a sign-in", () => {
  let issuer: Authority;
  let server: SmallServer;
  before(async () => {
    issuer = await authority();
    server = await smallServer();
    issuer.protect(server);
  });
  after(() => Promise.all([issuer.close(), server.close()]));

  const entry = () => ({ url: server.url, auth: "oauth" });
  const settings = () => {
    const parsed = parseServer("small", entry()).settings;
    assert.ok(parsed);
    return parsed;
  };
  const browser = (url: string) => void fetch(url);
  const loginPorts = (tokensDir: string) => ({
    tokensDir,
    cwd: tokensDir,
    osHome: tokensDir,
    log: { debug: () => undefined },
    redact: (text: string) => text,
    show: browser,
    paste: async () => null,
    signal: AbortSignal.timeout(20_000),
  });

  test("says so as long as nobody signed in, and works afterwards; tokens are private files", async () => {
    await using rig = await hubRig({ small: entry() });
    assert.equal(rig.server("small").status.state, "needs_reauth");
    assert.match(rig.server("small").status.reason ?? "", /requires sign-in\. Run: hermes mcp login small/);
    const tokensDir = join(rig.dir, "mcp-tokens");
    const { tokensFile } = await login(settings(), loginPorts(tokensDir));
    assert.equal(tokensFile, join(tokensDir, "small.json"));
    assert.deepEqual((await readdir(tokensDir)).sort(), ["small.client.json", "small.json", "small.meta.json"]);
    for (const name of await readdir(tokensDir)) assert.equal((await stat(join(tokensDir, name))).mode & 0o777, 0o600);
    await rig.server("small").reconnect();
    assert.equal(await rig.call("small", "ping"), '{"result":"pong"}');
  });

  test("an expired token is refreshed once, a passing failure costs no token, a refused refresh asks for a login", async () => {
    await using rig = await hubRig({ small: entry() });
    const tokensDir = join(rig.dir, "mcp-tokens");
    await login(settings(), loginPorts(tokensDir));
    await rig.server("small").reconnect();
    issuer.access.clear();
    issuer.grants.length = 0;
    assert.equal(await rig.call("small", "ping"), '{"result":"pong"}');
    assert.deepEqual(issuer.grants, ["refresh_token"]);

    const before = await readFile(join(tokensDir, "small.json"), "utf8");
    issuer.access.clear();
    issuer.down = true;
    assert.match(await rig.call("small", "ping"), /MCP server "small"/);
    assert.equal(await readFile(join(tokensDir, "small.json"), "utf8"), before);
    issuer.down = false;
    assert.equal(await rig.call("small", "ping"), '{"result":"pong"}');

    issuer.access.clear();
    issuer.refresh.clear();
    assert.match(await rig.call("small", "ping"), /requires sign-in\. Run: hermes mcp login small/);
  });

  test("calls that find the token expired at the same time share one refresh", async () => {
    await using rig = await hubRig({ small: entry() });
    await login(settings(), loginPorts(join(rig.dir, "mcp-tokens")));
    await rig.server("small").reconnect();
    for (let round = 0; round < 3; round++) {
      issuer.access.clear();
      issuer.grants.length = 0;
      const answers = await Promise.all([1, 2, 3, 4].map(() => rig.call("small", "ping")));
      assert.deepEqual(answers, Array(4).fill('{"result":"pong"}'));
      assert.deepEqual(issuer.grants, ["refresh_token"]);
    }
  });

  test("an answer of another login is not believed, and the code may be pasted", async () => {
    const home = await tempHome();
    const tokensDir = home.at("mcp-tokens");
    const forged = login(settings(), {
      ...loginPorts(tokensDir),
      show(url) {
        const back = new URL(new URL(url).searchParams.get("redirect_uri") ?? "");
        back.search = "?code=stolen&state=other";
        void fetch(back);
      },
    });
    await assert.rejects(forged, (error) => error instanceof McpError && /another login/.test(error.message));
    const { promise: ended, resolve } = Promise.withResolvers<string>();
    await login(settings(), {
      ...loginPorts(tokensDir),
      async show(url) {
        // The browser is on another machine: it cannot reach our callback, but its user sees the address.
        const response = await fetch(url, { redirect: "manual" });
        resolve(response.headers.get("location") ?? "");
      },
      paste: () => ended,
    });
    assert.ok((await readdir(tokensDir)).includes("small.json"));
    await home[Symbol.asyncDispose]();
  });

  test("hermes mcp login does it all from the command line", async () => {
    const home = await tempHome({
      "config.yaml": `mcp_servers:\n  small:\n    url: ${server.url} # mine\n    auth: oauth\n`,
    });
    const hermes = startHermes(["mcp", "login", "small"], { home });
    hermes.stdout?.on("data", (text: string) => {
      const [url] = /http:\S+/.exec(text) ?? [];
      if (url?.includes("/authorize")) browser(url);
    });
    const { code, stdout, stderr } = await hermes.result;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Signed in to small\. Tokens are in ~\/\.hermes\/mcp-tokens\/small\.json/);
    assert.equal((await stat(home.at("mcp-tokens", "small.json"))).mode & 0o777, 0o600);
    await home[Symbol.asyncDispose]();
  });
});
