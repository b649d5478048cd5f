import assert from "node:assert/strict";
import { createServer } from "node:http";
import { hostname } from "node:os";
import { type TestContext, test } from "node:test";
import { missingBubblewrap, openSandbox } from "../../test/support/engines/bubblewrap.ts";
import { withEngine } from "../../test/support/engines/require.ts";

async function site(t: TestContext): Promise<number> {
  const server = createServer((asked, response) => response.end(`site got ${asked.url} for ${asked.headers.host}`));
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  t.after(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

await withEngine("bubblewrap", missingBubblewrap, () => {
  test("hosts of the list are reached through the proxy, others are refused with the setting's name", async (t) => {
    const port = await site(t);
    const box = await openSandbox({ network: [`127.0.0.2:${port}`] });
    t.after(box.release);
    const plain = `curl -s http://127.0.0.2:${port}/a`;
    const answer = `site got /a for 127.0.0.2:${port}`;
    assert.equal((await box.run(plain)).output, answer);
    assert.equal((await box.run(`curl -s --proxytunnel http://127.0.0.2:${port}/a`)).output, answer);
    const refused = await box.run(`curl -s http://127.0.0.3:${port}/a`);
    assert.match(
      refused.output,
      /^127\.0\.0\.3:\d+ is not an allowed host .*terminal\.sandbox_network in config\.yaml: 127\.0\.0\.2:/,
    );
    const status = await box.run(`curl -s -o /dev/null -w '%{http_code}' http://127.0.0.3:${port}/a`);
    assert.deepEqual([status.output, status.exitCode], ["403", 0]);
    const tunnel = await box.run(`curl -sS --proxytunnel http://127.0.0.3:${port}/a`);
    assert.match(tunnel.output, /CONNECT tunnel failed, response 403/);
    assert.notEqual(tunnel.exitCode, 0);
    for (const { note } of [refused, status, tunnel])
      assert.match(note ?? "", /^127\.0\.0\.3:\d+ is not an allowed host .*terminal\.sandbox_network in config\.yaml/);
    assert.equal((await box.run(plain)).note, undefined, "said once");
    for (const around of [
      `curl -s --noproxy '*' http://127.0.0.2:${port}/a`,
      `curl -s http://127.0.0.1:${port}/a`,
      `exec 3<>/dev/tcp/127.0.0.2/${port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3`,
      "curl -s http://127.0.0.2:1/a",
    ])
      assert.doesNotMatch((await box.run(around)).output, /site got/, around);
    await box.run("kill -9 -1");
    assert.equal((await box.run(plain)).output, answer, "a new sandbox has the proxy too");
    assert.deepEqual(box.environment.confinement?.network, [`127.0.0.2:${port}`]);
  });

  test("a name that leads to the local network is refused, whoever owns the name", async (t) => {
    const port = await site(t);
    const name = hostname();
    const box = await openSandbox({ network: [`${name}:${port}`] });
    t.after(box.release);
    const { output } = await box.run(`curl -s --noproxy '' -x "$http_proxy" http://${name}:${port}/`);
    assert.match(output, /address of this machine or its local network/);
  });

  test("a listed server of this machine is at its own port inside; another one is not there", async (t) => {
    const [port, other] = [await site(t), await site(t)];
    for (const host of ["localhost", "127.0.0.1"]) {
      const box = await openSandbox({ network: [`${host}:${port}`, "localhost:3128"] });
      t.after(box.release);
      const ask = `curl -s http://${host}:${port}/a`;
      assert.equal((await box.run(ask)).output, `site got /a for ${host}:${port}`);
      assert.doesNotMatch((await box.run(`curl -s http://${host}:${other}/a`)).output, /site got/);
      assert.match((await box.run("curl -s http://example.org/")).output, /^example\.org is not an allowed host/);
      await box.run("kill -9 -1");
      assert.equal((await box.run(ask)).output, `site got /a for ${host}:${port}`, "in a new sandbox too");
    }
  });

  test("servers of the sandbox are reached by its other commands, and not from outside", async (t) => {
    const port = await site(t);
    for (const network of ["off", []] as const) {
      const box = await openSandbox({ network });
      t.after(box.release);
      const child = await box.environment.spawn(
        (await import("../../test/support/cleared.ts")).cleared("python3 -m http.server 8765 --bind 127.0.0.1"),
        {},
      );
      const wait =
        "for i in $(seq 100); do curl -sf http://127.0.0.1:8765/ > page && break; sleep 0.1; done; wc -l < page";
      assert.notEqual(Number((await box.run(wait)).output), 0);
      await assert.rejects(fetch("http://127.0.0.1:8765/"));
      assert.doesNotMatch((await box.run(`curl -s http://127.0.0.1:${port}/`)).output, /site got/);
      await child.kill();
    }
  });

  for (const entry of ["https://example.com/", "a b", "", "user@host", "*", "host:port", "host:70000", "localhost"])
    test(`${JSON.stringify(entry)} is no host, and nothing is opened with it`, async () => {
      await assert.rejects(openSandbox({ network: [entry] }), (error: Error) => {
        assert.equal(error.name, "UserError");
        assert.match(error.message, /terminal\.sandbox_network.*(?:is not a host; use example|needs a port)/);
        return true;
      });
    });
});
