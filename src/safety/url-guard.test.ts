import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { recordingLog } from "../../test/support/tool-context.ts";
import { systemClock } from "../kit/clock.ts";
import { createRedactor } from "./redact.ts";
import {
  addressKind,
  checkUrl,
  hasSecretQuery,
  holdsSecret,
  parseWebUrl,
  type UrlGuardOptions,
  UrlRefusedError,
  WebsitePolicy,
} from "./url-guard.ts";

const PUBLIC = "93.184.215.14";

const strict = (names: Readonly<Record<string, readonly string[]>> = {}): UrlGuardOptions => ({
  allowPrivate: false,
  async resolve(host) {
    const found = names[host];
    if (!found) throw Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" });
    return found;
  },
});
const refusal = async (url: string, options: UrlGuardOptions = strict()) => {
  try {
    await checkUrl(url, options);
    return "open";
  } catch (error) {
    assert.ok(error instanceof UrlRefusedError, String(error));
    return error.kind;
  }
};

describe("what may be opened", () => {
  const cases: readonly (readonly [url: string, outcome: string])[] = [
    ["ftp://example.com/", "scheme"],
    ["file:///etc/hostname", "scheme"],
    ["javascript:alert(1)", "scheme"],
    ["data:text/html,x", "scheme"],
    ["gopher://example.com/", "scheme"],
    ["example.com", "not_a_url"],
    ["", "not_a_url"],
    ["http://", "not_a_url"],
    ["http://[fe80::1%25eth0]/", "not_a_url"],
    ["http://user:pw@example.com/", "credentials"],
    ["http://93.184.215.14@127.0.0.1/", "credentials"],
    [`http://${PUBLIC}/`, "open"],
    ["http://[2606:2800:21f:cb07::1]/", "open"],
    ["http://127.0.0.1/", "private"],
    ["http://127.0.0.1./", "private"],
    ["http://127.1/", "private"],
    ["http://0x7f.1/", "private"],
    ["http://0x7f000001/", "private"],
    ["http://017700000001/", "private"],
    ["http://2130706433/", "private"],
    ["http://①②⑦.0.0.1/", "private"],
    ["http://0/", "private"],
    ["http://10.1.2.3:8080/", "private"],
    ["http://172.31.255.255/", "private"],
    ["http://192.168.0.1/", "private"],
    ["http://100.64.0.1/", "private"],
    ["http://169.254.1.1/", "private"],
    ["http://198.18.0.1/", "private"],
    ["http://224.0.0.1/", "private"],
    ["http://255.255.255.255/", "private"],
    ["http://[::1]/", "private"],
    ["http://[::]/", "private"],
    ["http://[::ffff:127.0.0.1]/", "private"],
    ["http://[::ffff:7f00:1]/", "private"],
    ["http://[::127.0.0.1]/", "private"],
    ["http://[64:ff9b::7f00:1]/", "private"],
    ["http://[64:ff9b::5db8:d70e]/", "open"],
    ["http://[64:ff9b:1::5db8:d70e]/", "private"],
    ["http://[2002:7f00:1::]/", "private"],
    ["http://[fc00::1]/", "private"],
    ["http://[fe80::1]/", "private"],
    ["http://[fec0::1]/", "private"],
    ["http://[ff02::1]/", "private"],
    ["http://[4000::1]/", "private"],
    ["http://169.254.169.254/latest/meta-data/", "metadata"],
    ["http://[::ffff:169.254.169.254]/", "metadata"],
    ["http://[64:ff9b::a9fe:a9fe]/", "metadata"],
    ["http://0xa9fea9fe/", "metadata"],
    ["http://169.254.170.2/", "metadata"],
    ["http://169.254.169.253/", "metadata"],
    ["http://100.100.100.200/", "metadata"],
    ["http://168.63.129.16/", "metadata"],
    ["http://[::ffff:168.63.129.16]/", "metadata"],
    ["http://192.0.0.192/", "metadata"],
    ["http://[fd00:ec2::254]/", "metadata"],
    ["http://metadata.google.internal/", "metadata"],
    ["http://METADATA.Google.Internal./", "metadata"],
    ["http://metadata.goog", "metadata"],
    ["http://nowhere.test/", "unknown_host"],
  ];
  for (const [url, outcome] of cases)
    test(`${url || "nothing"}: ${outcome}`, async () => {
      assert.equal(await refusal(url), outcome);
    });

  test("a name is judged by all its addresses: one bad one closes it", async () => {
    const names = strict({
      "good.test": [PUBLIC, "2606:2800:21f:cb07::1"],
      "half.test": [PUBLIC, "10.0.0.1"],
      "cloud.test": [PUBLIC, "169.254.169.254"],
      "empty.test": [],
    });
    assert.equal(await refusal("http://good.test/", names), "open");
    assert.equal(await refusal("http://half.test/", names), "private");
    assert.equal(await refusal("http://cloud.test/", names), "metadata");
    assert.equal(await refusal("http://empty.test/", names), "unknown_host");
  });

  test("a bad address behind many good ones is seen too, and at most eight are kept", async () => {
    const many = Array.from({ length: 20 }, (_, index) => `93.184.215.${index + 1}`);
    const names = strict({ "many.test": many, "bad.test": [...many, "127.0.0.1"] });
    assert.equal((await checkUrl("http://many.test/", names)).addresses.length, 8);
    assert.equal(await refusal("http://bad.test/", names), "private");
  });

  test("the switch for private addresses opens them, and never a metadata service", async () => {
    const open = { ...strict({ "near.test": ["192.168.1.2"], "cloud.test": ["169.254.169.254"] }), allowPrivate: true };
    assert.equal((await checkUrl("http://near.test/", open)).isPrivate, true);
    assert.equal(await refusal("http://127.0.0.1/", open), "open");
    assert.equal(await refusal("http://cloud.test/", open), "metadata");
    assert.equal(await refusal("http://[::ffff:169.254.169.254]/", open), "metadata");
    assert.equal(await refusal("http://metadata.google.internal/", open), "metadata");
  });

  test("a name nobody knows passes only where a proxy looks names up; addresses are judged there too", async () => {
    const proxied = { ...strict({ "near.test": ["10.0.0.1"] }), proxied: true };
    assert.deepEqual((await checkUrl("http://nowhere.test/", proxied)).addresses, []);
    assert.equal(await refusal("http://near.test/", proxied), "private");
    assert.equal(await refusal("http://127.0.0.1/", proxied), "private");
  });

  test("a refusal says how the address can be allowed", async () => {
    await assert.rejects(checkUrl("http://127.0.0.1/", strict()), /security\.allow_private_urls: true in config\.yaml/);
  });

  test("every IPv4 address is of the same kind in its mapped form", () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        assert.equal(addressKind(`::ffff:${address}`), addressKind(address));
      }),
    );
  });

  test("no spelling of a host gets past: what is parsed is lower case, without a dot at its end", () => {
    assert.equal(parseWebUrl(" HTTP://Example.COM.:8080/A ").href, "http://example.com:8080/A");
    assert.equal(parseWebUrl("http://bücher.example/").hostname, "xn--bcher-kva.example");
    assert.equal(parseWebUrl("http://%6c%6fcalhost/").hostname, "localhost");
  });
});

describe("the website policy", () => {
  const policy = (settings: Record<string, unknown>, more: { homeDir?: string; now?: () => number } = {}) => {
    const log = recordingLog();
    const options = {
      settings: () => settings,
      homeDir: more.homeDir ?? tmpdir(),
      userHome: tmpdir(),
      clock: { ...systemClock, now: more.now ?? (() => 0) },
      log,
    };
    return { log, check: (url: string) => new WebsitePolicy(options).check(url), lasting: new WebsitePolicy(options) };
  };

  const rules: readonly (readonly [rule: string, url: string, blocked: boolean])[] = [
    ["x.test", "https://x.test/", true],
    ["x.test", "https://a.b.x.test/p", true],
    ["x.test", "https://yx.test/", false],
    ["*.x.test", "https://x.test/", false],
    ["*.x.test", "https://a.x.test/", true],
    ["  HTTPS://www.X.test./path?q=1  # no games", "https://x.test/", true],
    ["www.x.test", "https://x.test/", true],
    ["x.test:8080", "https://x.test:1/", true],
    ["bücher.test", "https://xn--bcher-kva.test/", true],
    ["x.test", "https://X.TEST./", true],
    ["# x.test", "https://x.test/", false],
    ["", "https://x.test/", false],
    ["*", "https://x.test/", false],
    ["10.0.0.1", "http://10.0.0.1/", true],
  ];
  for (const [rule, url, blocked] of rules)
    test(`rule "${rule}" ${blocked ? "closes" : "leaves open"} ${url}`, async () => {
      assert.equal((await policy({ enabled: true, domains: [rule] }).check(url)) !== null, blocked);
    });

  test("it is off by default, and says which rule of which file closed a site", async () => {
    assert.equal(await policy({ domains: ["x.test"] }).check("https://x.test/"), null);
    assert.deepEqual(await policy({ enabled: true, domains: ["*.x.test"] }).check("https://a.x.test/p"), {
      url: "https://a.x.test/p",
      host: "a.x.test",
      rule: "*.x.test",
      source: "config",
      message: "Blocked by website policy: 'a.x.test' matched rule '*.x.test' from config",
    });
  });

  test("shared files count; one that cannot be read is a warning and the other rules stay", async (t) => {
    const homeDir = await mkdtemp(join(tmpdir(), "policy-"));
    t.after(() => rm(homeDir, { recursive: true, force: true }));
    await writeFile(join(homeDir, "list.txt"), "# shared\n\ny.test\r\nz.test # too\n");
    const settings = { enabled: true, domains: ["x.test", 7, "shop*.test"], shared_files: ["gone.txt", "list.txt"] };
    const { check, log } = policy(settings, { homeDir });
    assert.equal((await check("https://y.test/"))?.source, join(homeDir, "list.txt"));
    assert.notEqual(await check("https://z.test/"), null);
    assert.notEqual(await check("https://x.test/"), null);
    assert.ok(log.lines.some(({ message }) => /gone\.txt cannot be read/.test(message)));
    assert.ok(log.lines.some(({ message }) => /website_blocklist\.domains/.test(message)));
    assert.ok(log.lines.some(({ message }) => /"shop\*\.test" in config is not a domain/.test(message)));
  });

  test("a changed list is in force half a minute later", async () => {
    let now = 1000;
    const domains: string[] = [];
    const { lasting } = policy({ enabled: true, domains }, { now: () => now });
    assert.equal(await lasting.check("https://x.test/"), null);
    domains.push("x.test");
    now += 29_999;
    assert.equal(await lasting.check("https://x.test/"), null);
    now += 1;
    assert.notEqual(await lasting.check("https://x.test/"), null);
  });
});

describe("secrets in addresses and queries", () => {
  const known = "correct-horse-battery";
  const redact = createRedactor({ enabled: true, knownSecrets: () => [known] });
  const key = `sk-${"a1B2".repeat(8)}`;
  const cases: readonly (readonly [text: string, secret: boolean])[] = [
    [`https://x.test/?q=${known}`, true],
    [`https://x.test/${known}/pixel.png`, true],
    [`https://x.test/?q=${encodeURIComponent(`my ${known}`)}`, true],
    [`https://x.test/?q=${known.replace("-", "%2D")}`, true],
    [`https://x.test/?a=${key}`, true],
    [`what is ${key}`, true],
    ["https://x.test/?code=abc123&state=xyz", false],
    ["https://x.test/search?q=how+to+rotate+an+api+key", false],
    ["docker MYSQL_PASSWORD=changeme example", false],
    ["who calls from +14155551234", false],
    ["https://x.test/%zz?q=100%", false],
  ];
  for (const [text, secret] of cases)
    test(`${text.replace(key, "<key>").replace(known, "<known>")}: ${secret ? "refused" : "fine"}`, () => {
      assert.equal(holdsSecret(text, redact), secret);
    });

  const queries: readonly (readonly [query: string, secret: boolean])[] = [
    ["token=abc", true],
    ["api_key=abc", true],
    ["apiKey=abc", true],
    ["X-Amz-Signature=abc", true],
    ["access_token=abc", true],
    ["sig=abc", true],
    ["token=", false],
    ["code=abc&state=def", false],
    ["keyword=cats&tokens=4", false],
    ["q=token", false],
  ];
  for (const [query, secret] of queries)
    test(`the query ${query} ${secret ? "stays with us" : "may be handed on"}`, () => {
      assert.equal(hasSecretQuery(new URL(`https://x.test/?${query}`)), secret);
    });
});
