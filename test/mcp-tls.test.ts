// Servers behind certificates of one's own: an authority, a client certificate, and what is said when they do not fit.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { createServer as createTlsServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../src/kit/clock.ts";
import { type SmallServer, smallServer } from "./support/mcp/http-server.ts";
import { hubRig } from "./support/mcp/hub-rig.ts";

const openssl = (dir: string, ...args: string[]) => execFileSync("openssl", args, { cwd: dir, stdio: "ignore" });

function missing(): string | false {
  try {
    openssl(tmpdir(), "version");
    return false;
  } catch {
    return "openssl is not installed";
  }
}

describe("a server behind TLS", { skip: missing() }, () => {
  let dir = "";
  let small: SmallServer;
  const fronts: Server[] = [];

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), "hermes-tls-"));
    small = await smallServer();
    const keyed = (name: string) => ["-newkey", "rsa:2048", "-nodes", "-keyout", `${name}.key`];
    openssl(dir, "req", "-x509", ...keyed("ca"), "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority");
    for (const name of ["server", "client"]) {
      openssl(dir, "req", ...keyed(name), "-out", `${name}.csr`, "-subj", `/CN=${name}`);
      await writeFile(join(dir, `${name}.ext`), "subjectAltName=IP:127.0.0.1\n");
      const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", `${name}.ext`];
      openssl(dir, "x509", "-req", "-in", `${name}.csr`, "-out", `${name}.pem`, ...signed);
    }
    const both = `${await readFile(join(dir, "client.pem"), "utf8")}${await readFile(join(dir, "client.key"), "utf8")}`;
    await writeFile(join(dir, "both.pem"), both);
  });
  after(async () => {
    for (const front of fronts) {
      front.closeAllConnections();
      await new Promise((done) => front.close(done));
    }
    await small.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** The small server behind a certificate; with `strict` it wants to see one as well. */
  async function front({ strict }: { readonly strict: boolean }): Promise<string> {
    const server = createTlsServer(
      {
        cert: await readFile(join(dir, "server.pem")),
        key: await readFile(join(dir, "server.key")),
        ...(strict ? { requestCert: true, rejectUnauthorized: true, ca: await readFile(join(dir, "ca.pem")) } : {}),
      },
      (incoming, outgoing) => {
        const { method, headers } = incoming;
        const inner = request(`${small.origin}${incoming.url}`, { method, headers }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing);
        });
        incoming.pipe(inner);
      },
    );
    fronts.push(server);
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  }

  /** Only the first try counts. */
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms < 60_000 ? 1 : ms, signal),
  };
  const cases: readonly (readonly [what: string, strict: boolean, settings: object, wanted: RegExp])[] = [
    ["an unknown authority is refused", false, {}, /certificate is not accepted \(.*mcp_servers\.small\.ssl_verify/],
    ["ssl_verify false takes any certificate", false, { ssl_verify: false }, /^connected$/],
    ["ssl_verify as text false does too", false, { ssl_verify: "false" }, /^connected$/],
    ["ssl_verify names the authority", false, { ssl_verify: "~/ca.pem" }, /^connected$/],
    [
      "a missing authority is named",
      false,
      { ssl_verify: "~/nowhere.pem" },
      /file of mcp_servers\.small\.ssl_verify cannot be read .*nowhere\.pem/,
    ],
    ["a server that wants a certificate gets none", true, { ssl_verify: "~/ca.pem" }, /MCP server "small": .*url/],
    [
      "client_cert and client_key are shown",
      true,
      { ssl_verify: "~/ca.pem", client_cert: "~/client.pem", client_key: "client.key" },
      /^connected$/,
    ],
    ["one file may hold both", true, { ssl_verify: "~/ca.pem", client_cert: "both.pem" }, /^connected$/],
    [
      "a missing key is named",
      true,
      { ssl_verify: "~/ca.pem", client_cert: "~/client.pem", client_key: "~/gone.key" },
      /file of mcp_servers\.small\.client_key cannot be read/,
    ],
  ];
  for (const [what, strict, settings, wanted] of cases) {
    test(what, async () => {
      const url = await front({ strict });
      await using rig = await hubRig({ small: { url, ...settings } }, { clock, cwd: dir, osHome: dir });
      const { state, reason } = rig.server("small").status;
      assert.match(state === "connected" ? state : (reason ?? state), wanted);
      if (state === "connected") assert.equal(await rig.call("small", "ping"), '{"result":"pong"}');
    });
  }

  test("with such settings an open address works too, and its redirect takes no credentials along", async () => {
    const door = createServer((_request, response) => response.writeHead(307, { location: small.url }).end());
    await new Promise<void>((done) => door.listen(0, "127.0.0.1", done));
    const origin = `http://127.0.0.1:${(door.address() as AddressInfo).port}/mcp`;
    small.seen.length = 0;
    {
      await using rig = await hubRig(
        { small: { url: origin, headers: { Authorization: "Bearer t" }, ssl_verify: false } },
        { clock, cwd: dir, osHome: dir },
      );
      assert.equal(rig.server("small").status.state, "connected");
      assert.ok(small.seen.length > 0 && small.seen.every(({ authorization }) => authorization === undefined));
    }
    door.closeAllConnections();
    await new Promise((done) => door.close(done));
  });
});
