// What goes wrong around a browser: forbidden places, pages that hang, a browser that dies, none at all.
import assert from "node:assert/strict";
import { access, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { defaultConfig } from "../src/home/config/schema.ts";
import { homePaths } from "../src/home/paths.ts";
import { isAlive } from "../src/kit/pid.ts";
import type { AddressCheck } from "../src/safety/guarded-proxy.ts";
import { descendantsOf } from "../src/sandbox/processes.ts";
import { launchBrowser } from "../src/tools/browser/launch.ts";
import { browserHolder } from "../src/tools/browser/session.ts";
import { registerProvider } from "../src/tools/toolset/availability.ts";
import {
  missingChromium,
  type Pages,
  refOf,
  type Site,
  type Surfer,
  startRunningBrowser,
  startSite,
  surfer,
} from "./support/engines/chromium.ts";
import { withEngine } from "./support/engines/require.ts";
import { guardRig } from "./support/guard-rig.ts";

const PAGES: Pages = {
  "/": "<title>Start</title><h1>Welcome</h1>",
  "/cookie": (_request, response) => {
    response.writeHead(200, { "content-type": "text/html", "set-cookie": "who=me" });
    response.end("<title>Cookie</title>");
  },
  "/echo": (request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end(`<title>Echo</title><p>cookie: ${request.headers.cookie ?? "none"}</p>`);
  },
  "/never": () => undefined,
  "/loop": "<title>Loop</title><button onclick='for(;;);'>Spin</button>",
  "/to-metadata": (_request, response) =>
    void response.writeHead(302, { location: "http://169.254.169.254/latest" }).end(),
  "/link-to-metadata": '<title>Link</title><a href="http://169.254.169.254/latest">keys</a>',
  "/embeds-metadata": '<title>Embeds</title><h1>Fine</h1><img src="http://169.254.169.254/pixel.png">',
  "/to-private": (_request, response) =>
    void response.writeHead(302, { location: `http://127.0.0.1:${port}/private` }).end(),
  "/private": "<title>Private</title>",
  "/dev": (_request, response) =>
    void response.writeHead(200, { "content-type": "text/html" }).end(`<title>Dev</title><img src="${pixel}">`),
};
let port = "";
let pixel = "";

async function gone(pids: readonly number[]): Promise<void> {
  for (const pid of pids) while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** The main process of the browser that this process started. */
async function chromiumOf(folder: string): Promise<number> {
  for (const pid of await descendantsOf(process.pid)) {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (line.includes(folder) && !line.includes("--type=") && !line.includes("crashpad")) return pid;
  }
  throw new Error("no browser runs");
}

await withEngine("Chromium", missingChromium, () => {
  // Starting a browser is what takes time here: the tests go on with the one that the test before them left.
  describe("trouble around a browser", () => {
    let site: Site;
    let user: Surfer;
    const others: Surfer[] = [];
    const newSurfer = async (...given: Parameters<typeof surfer>) => {
      const one = await surfer(...given);
      others.push(one);
      return one;
    };
    const askedFor = async (path: string) => {
      while (site.asked.at(-1) !== path) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    before(async () => {
      site = await startSite(PAGES);
      port = new URL(site.url).port;
      user = await newSurfer();
    });
    after(async () => {
      await Promise.all(others.map((one) => one.close()));
      await site.close();
    });

    test("addresses of this machine, of a cloud's metadata and of other schemes are not opened", async () => {
      const strict = user.as({ allow_private_urls: false });
      const asked = site.asked.length;
      for (const [url, why] of [
        [site.url, /private|local/],
        ["http://169.254.169.254/latest/meta-data", /metadata|credentials/],
        ["http://metadata.google.internal./x", /metadata|credentials/],
        ["http://[::ffff:169.254.169.254]/", /metadata|credentials/],
        ["http://0x7f000001/", /private|local/],
        ["file:///etc/hostname", /http and https/],
        ["javascript:alert(1)", /http and https/],
        ["http://no-such-host.invalid/", /not known|not found/],
        ["http://", /not a web address/i],
      ] as const) {
        const { success, error } = await strict.call("browser_navigate", { url });
        assert.equal(success, false, url);
        assert.match(error, why, url);
      }
      assert.equal(site.asked.length, asked);
      assert.match((await strict.call("browser_snapshot")).error, /No page is open/, "no browser was started for them");
    });

    test("a server of this machine is opened with a yes, that one alone, and the local network not even then", async (t) => {
      const other = await startSite({ "/pixel": "seen" });
      t.after(() => other.close());
      pixel = `${other.url}/pixel`;
      const { guard, asked, answer } = guardRig();
      const host = site.host.replace("127.0.0.1", "localhost");
      const careful = await newSurfer({ allow_private_urls: false }, { guard });
      const open = (url: string) => careful.call("browser_navigate", { url });
      assert.match((await open(`http://${host}/dev`)).error, /^DENIED: .*open local page: localhost/);
      answer({ choice: "session" });
      const { success, error, title, blocked } = await open(`${host}/dev`);
      assert.deepEqual([success, title], [true, "Dev"], error);
      assert.match(blocked?.join(" ") ?? "", /127\.0\.0\.1 is an address of this machine/);
      assert.equal((await open(`http://${host}/`)).title, "Start");
      assert.deepEqual(
        asked.map(({ command }) => command),
        [`open ${host} in the browser`, `open ${host} in the browser`],
      );
      assert.match((await open("http://192.168.0.1/")).error, /^Blocked: .*local network/);
      assert.deepEqual([asked.length, other.asked], [2, []]);
    });

    test("a redirect, a link and an image that lead to a metadata service end at the door", async () => {
      const redirected = await user.call("browser_navigate", { url: `${site.url}/to-metadata` });
      assert.equal(redirected.success, false);
      assert.match(redirected.error, /169\.254\.169\.254.*(?:metadata|credentials)/);
      const linked = await user.call("browser_navigate", { url: `${site.url}/link-to-metadata` });
      const followed = await user.call("browser_click", { ref: refOf(linked.snapshot, "keys") });
      assert.equal(followed.success, false, JSON.stringify(followed));
      assert.match(followed.error, /169\.254\.169\.254/);
      const embedding = await user.call("browser_navigate", { url: `${site.url}/embeds-metadata` });
      assert.equal(embedding.success, true, embedding.error);
      assert.match(embedding.snapshot, /Fine/);
      assert.match(String(embedding.blocked), /metadata|credentials/);
    });

    test("a page that never comes is given up in time, and the browser goes on", async () => {
      const hasty = user.as({ command_timeout: 1 });
      await user.call("browser_navigate", { url: site.url });
      const waited = await hasty.call("browser_navigate", { url: `${site.url}/never` });
      assert.equal(waited.success, false);
      assert.match(waited.error, /No result within 1 s/);
      assert.equal((await user.call("browser_navigate", { url: site.url })).title, "Start");
    });

    test("an interrupted call ends at once", async () => {
      const stop = new AbortController();
      const calling = user.as({}, { signal: stop.signal }).raw("browser_navigate", { url: `${site.url}/never` });
      await askedFor("/never");
      stop.abort();
      assert.match(String(await calling), /abort/i);
    });

    test("two conversations side by side share nothing", async () => {
      const other = await newSurfer({ record_sessions: true });
      await Promise.all([
        user.call("browser_navigate", { url: `${site.url}/cookie` }),
        other.call("browser_navigate", { url: `${site.url}/` }),
      ]);
      const [mine, theirs] = await Promise.all(
        [user, other].map((one) => one.call("browser_navigate", { url: `${site.url}/echo` })),
      );
      assert.match(mine.snapshot, /who=me/);
      assert.match(theirs.snapshot, /cookie: none/);
    });

    test("the browser of a conversation that ends is gone with its profile; a recording stays where it was asked for", async () => {
      const ended = others.at(-1) ?? user;
      const pid = await chromiumOf(ended.homeDir);
      const family = [pid, ...(await descendantsOf(pid))];
      const profiles = join(ended.homeDir, "cache", "browser");
      assert.equal((await readdir(profiles)).length, 1);
      await ended.ctx.state.of(browserHolder).dispose();
      assert.deepEqual(await readdir(profiles), []);
      await gone(family);
      const [name] = await readdir(join(ended.homeDir, "cache", "recordings"));
      await access(join(ended.homeDir, "cache", "recordings", name ?? ""));
    });

    test("a page in an endless loop costs its browser, not the conversation", async () => {
      const hasty = user.as({ command_timeout: 1 });
      const opened = await user.call("browser_navigate", { url: `${site.url}/loop` });
      const clicked = await hasty.call("browser_click", { ref: refOf(opened.snapshot, "Spin") });
      const looked = clicked.success ? await hasty.call("browser_snapshot") : clicked;
      assert.match(looked.error, /did not answer within 1 s.*closed/);
      const again = await user.call("browser_navigate", { url: site.url });
      assert.equal(again.title, "Start", again.error);
    });

    test("a browser that is killed in mid-call is a result in words, and the next page opens another one", async () => {
      const pid = await chromiumOf(user.homeDir);
      const calling = user.call("browser_navigate", { url: `${site.url}/never` });
      await askedFor("/never");
      process.kill(pid, "SIGKILL");
      const { success, error } = await calling;
      assert.equal(success, false);
      assert.match(error, /ended unexpectedly.*browser_navigate/);
      assert.match((await user.call("browser_snapshot")).error, /No page is open/);
      assert.equal((await user.call("browser_navigate", { url: site.url })).title, "Start");
    });

    test("an idle browser is closed, and nothing is left of it", async () => {
      await user.as({ inactivity_timeout: 0.2 }).call("browser_navigate", { url: site.url });
      const pid = await chromiumOf(user.homeDir).catch(() => 0);
      if (pid !== 0) await gone([pid]);
      while ((await readdir(join(user.homeDir, "cache", "browser"))).length > 0)
        await new Promise((resolve) => setTimeout(resolve, 20));
    });

    test("names are looked up on our side, and a public page cannot redirect into the private network", async () => {
      const homeDir = await mkdtemp(join(tmpdir(), "hermes-browser-"));
      const wanted = new Set<string>();
      const check: AddressCheck = async (url) => {
        const { hostname } = new URL(url);
        wanted.add(hostname);
        return hostname === "public.test"
          ? { allowed: true, addresses: ["127.0.0.1"], isPrivate: true }
          : { allowed: false, reason: "a private address" };
      };
      const refused: string[] = [];
      const { page, close } = await launchBrowser({
        location: "as_set",
        home: homePaths(homeDir, homeDir, "default"),
        config: defaultConfig(),
        env: (name) => (name === "PATH" ? process.env.PATH : undefined),
        notify: () => undefined,
        check,
        onRefused: ({ host }) => refused.push(host),
      });
      const asked = site.asked.length;
      await page.goto(`http://public.test:${port}/`);
      assert.equal(await page.title(), "Start");
      await page.goto(`http://public.test:${port}/to-private`);
      assert.ok(refused.includes(site.host));
      assert.deepEqual(
        site.asked.slice(asked).filter((path) => path === "/private"),
        [],
      );
      assert.deepEqual([...wanted].sort(), ["127.0.0.1", "public.test"], "it asks nobody of its own accord");
      await close();
      await rm(homeDir, { recursive: true, force: true });
    });

    test("a browser that is rented or that a plugin brings is joined and left running; addresses near this machine are opened here", async (t) => {
      const running = await startRunningBrowser();
      t.after(() => running.close());
      let [opened, closed] = [0, 0];
      const withdraw = registerProvider("browser", "rented", async () => ({
        open: async () => ({ cdpUrl: running.cdpUrl, n: opened++, close: () => void closed++ }),
      }));
      t.after(withdraw);
      const renting = await newSurfer({ engine: "rented", auto_local_for_private_urls: false });
      const lent: string[] = [];
      const lender = createServer(async (request, response) => {
        let body = "";
        for await (const chunk of request) body += chunk;
        lent.push(`${request.url} ${request.headers["x-bb-api-key"]} ${body}`);
        response.end(JSON.stringify({ id: "s/1", connectUrl: running.cdpUrl }));
      });
      await new Promise<void>((resolve) => lender.listen(0, "127.0.0.1", resolve));
      t.after(() => void lender.close());
      const variables: Readonly<Record<string, string>> = {
        BROWSERBASE_API_KEY: "bb-key",
        BROWSERBASE_PROJECT_ID: "p1",
        BROWSERBASE_BASE_URL: `http://127.0.0.1:${(lender.address() as AddressInfo).port}`, // it listens on a port
      };
      const cloud = { engine: "browserbase", auto_local_for_private_urls: false };
      const hired = await newSurfer(cloud, { env: (name) => variables[name] });
      assert.equal((await hired.call("browser_navigate", { url: site.url })).title, "Start");
      await hired.ctx.state.of(browserHolder).drop();
      assert.deepEqual(lent, [
        '/v1/sessions bb-key {"projectId":"p1"}',
        '/v1/sessions/s%2F1 bb-key {"projectId":"p1","status":"REQUEST_RELEASE"}',
      ]);
      const keyless = await newSurfer(cloud, { env: () => undefined });
      assert.match(
        (await keyless.call("browser_navigate", { url: site.url })).error,
        /"browserbase".*set BROWSERBASE_API_KEY and BROWSERBASE_PROJECT_ID/,
      );
      const page = await renting.call("browser_navigate", { url: site.url });
      assert.deepEqual([page.title, opened], ["Start", 1], page.error);
      const led = await renting.call("browser_navigate", { url: `${site.url}/embeds-metadata` });
      assert.match(String(led.blocked), /metadata/);
      const near = await renting.as({ auto_local_for_private_urls: true }).call("browser_navigate", { url: site.url });
      assert.deepEqual([near.title, opened, closed], ["Start", 1, 1], near.error);
      assert.ok(await chromiumOf(renting.homeDir), "one of its own");
      assert.ok(isAlive(running.pid));
    });

    test("without a browser the result says what to install", async () => {
      const nowhere = await newSurfer({}, { env: () => "/nowhere" });
      const { success, error } = await nowhere.call("browser_navigate", { url: site.url });
      assert.equal(success, false);
      assert.match(error, /apt install chromium.*browser\.engine.*browser\.cdp_url/s);
      const misnamed = await newSurfer({ engine: "/nowhere/chrome" });
      assert.match(
        (await misnamed.call("browser_navigate", { url: site.url })).error,
        /browser\.engine.*\/nowhere\/chrome/,
      );
      const misbrought = await newSurfer({ engine: "empty", auto_local_for_private_urls: false });
      const withdraw = registerProvider("browser", "empty", async () => ({ open: async () => ({}) }));
      assert.match(
        (await misbrought.call("browser_navigate", { url: site.url })).error,
        /"empty" of browser\.engine.* cannot be had.*no cdpUrl/,
      );
      withdraw();
      const unreachable = await newSurfer({ cdp_url: "http://127.0.0.1:9" });
      assert.match(
        (await unreachable.call("browser_navigate", { url: site.url })).error,
        /No browser answers at.*browser\.cdp_url/,
      );
      const broken = await newSurfer({ engine: "false" });
      assert.match((await broken.call("browser_navigate", { url: site.url })).error, /could not be started/);
      assert.match((await broken.call("browser_click", { ref: "@e1" })).error, /No page is open/);
    });
  });
});
