// What goes wrong around a browser: forbidden places, pages that hang, a browser that dies, none at all.
import assert from "node:assert/strict";
import { access, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { defaultConfig } from "../src/home/config/schema.ts";
import { homePaths } from "../src/home/paths.ts";
import { descendantsOf, isAlive } from "../src/sandbox/process-tree.ts";
import type { AddressCheck } from "../src/tools/browser/address-check.ts";
import { launchBrowser } from "../src/tools/browser/launch.ts";
import {
  missingChromium,
  type Pages,
  refOf,
  type Site,
  type Surfer,
  startSite,
  surfer,
} from "./support/engines/chromium.ts";
import { withEngine } from "./support/engines/require.ts";

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
};
let port = "";

/** The main process of the browser that this process started. */
async function chromiumOf(folder: string): Promise<number> {
  for (const pid of await descendantsOf(process.pid)) {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (line.includes(folder) && !line.includes("--type=") && !line.includes("crashpad")) return pid;
  }
  throw new Error("no browser runs");
}

await withEngine("Chromium", missingChromium, () => {
  describe("trouble around a browser", () => {
    let site: Site;
    const users: Surfer[] = [];
    const newSurfer = async (...given: Parameters<typeof surfer>) => {
      const user = await surfer(...given);
      users.push(user);
      return user;
    };
    before(async () => {
      site = await startSite(PAGES);
      port = new URL(site.url).port;
    });
    after(async () => {
      await Promise.all(users.map((user) => user.close()));
      await site.close();
    });

    test("addresses of this machine, of a cloud's metadata and of other schemes are not opened", async () => {
      const user = await newSurfer({ allow_private_urls: false });
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
        const { success, error } = await user.call("browser_navigate", { url });
        assert.equal(success, false, url);
        assert.match(error, why, url);
      }
      assert.equal(site.asked.length, asked);
    });

    test("a redirect, a link and an image that lead to a metadata service end at the door", async () => {
      const user = await newSurfer();
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

    test("names are looked up on our side, and a public page cannot redirect into the private network", async () => {
      const homeDir = await mkdtemp(join(tmpdir(), "hermes-browser-"));
      const check: AddressCheck = async (url) =>
        new URL(url).hostname === "public.test"
          ? { allowed: true, addresses: ["127.0.0.1"], isPrivate: true }
          : { allowed: false, reason: "a private address" };
      const refused: string[] = [];
      const { page, close } = await launchBrowser({
        home: homePaths(homeDir, homeDir, "default"),
        config: defaultConfig(),
        env: (name) => (name === "PATH" ? process.env.PATH : undefined),
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
      await close();
      await rm(homeDir, { recursive: true, force: true });
    });

    test("a page that never comes is given up in time, and the browser goes on", async () => {
      const user = await newSurfer({ command_timeout: 2 });
      await user.call("browser_navigate", { url: site.url });
      const waited = await user.call("browser_navigate", { url: `${site.url}/never` });
      assert.equal(waited.success, false);
      assert.match(waited.error, /No result within 2 s/);
      assert.equal((await user.call("browser_navigate", { url: site.url })).title, "Start");
    });

    test("a page in an endless loop costs its browser, not the conversation", async () => {
      const user = await newSurfer({ command_timeout: 3 });
      const opened = await user.call("browser_navigate", { url: `${site.url}/loop` });
      const clicked = await user.call("browser_click", { ref: refOf(opened.snapshot, "Spin") });
      const looked = clicked.success ? await user.call("browser_snapshot") : clicked;
      assert.match(looked.error, /did not answer within 3 s.*closed/);
      const again = await user.call("browser_navigate", { url: site.url });
      assert.equal(again.title, "Start", again.error);
    });

    test("two conversations side by side share nothing", async () => {
      const [one, two] = [await newSurfer(), await newSurfer()];
      await Promise.all([
        one.call("browser_navigate", { url: `${site.url}/cookie` }),
        two.call("browser_navigate", { url: `${site.url}/` }),
      ]);
      const [mine, theirs] = await Promise.all(
        [one, two].map((user) => user.call("browser_navigate", { url: `${site.url}/echo` })),
      );
      assert.match(mine.snapshot, /who=me/);
      assert.match(theirs.snapshot, /cookie: none/);
    });

    test("a browser that is killed in mid-call is a result in words, and the next page opens another one", async () => {
      const user = await newSurfer();
      await user.call("browser_navigate", { url: site.url });
      const pid = await chromiumOf(user.homeDir);
      const calling = user.call("browser_navigate", { url: `${site.url}/never` });
      while (site.asked.at(-1) !== "/never") await new Promise((resolve) => setTimeout(resolve, 10));
      process.kill(pid, "SIGKILL");
      const { success, error } = await calling;
      assert.equal(success, false);
      assert.match(error, /ended unexpectedly.*browser_navigate/);
      assert.match((await user.call("browser_snapshot")).error, /No page is open/);
      assert.equal((await user.call("browser_navigate", { url: site.url })).title, "Start");
    });

    test("an interrupted call ends at once", async () => {
      const stop = new AbortController();
      const user = await newSurfer({}, { signal: stop.signal });
      const calling = user.raw("browser_navigate", { url: `${site.url}/never` });
      while (site.asked.at(-1) !== "/never") await new Promise((resolve) => setTimeout(resolve, 10));
      stop.abort();
      assert.match(String(await calling), /abort/i);
    });

    test("an idle browser is closed, and so is one whose conversation ends; nothing is left of them", async () => {
      const idle = await newSurfer({ inactivity_timeout: 0.2 });
      await idle.call("browser_navigate", { url: site.url });
      const [first] = [await chromiumOf(idle.homeDir).catch(() => 0)];
      while (first !== 0 && isAlive(first)) await new Promise((resolve) => setTimeout(resolve, 20));
      const ended = await newSurfer();
      await ended.call("browser_navigate", { url: site.url });
      const pid = await chromiumOf(ended.homeDir);
      const family = [pid, ...(await descendantsOf(pid))];
      const profiles = join(ended.homeDir, "cache", "browser");
      assert.equal((await readdir(profiles)).length, 1);
      await ended.ctx.state.of((await import("../src/tools/browser/session.ts")).browserHolder).dispose();
      assert.deepEqual(await readdir(profiles), []);
      for (const member of family) while (isAlive(member)) await new Promise((resolve) => setTimeout(resolve, 20));
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
      const unreachable = await newSurfer({ cdp_url: "http://127.0.0.1:9" });
      assert.match(
        (await unreachable.call("browser_navigate", { url: site.url })).error,
        /No browser answers at.*browser\.cdp_url/,
      );
      const broken = await newSurfer({ engine: "false" });
      assert.match((await broken.call("browser_navigate", { url: site.url })).error, /could not be started/);
      assert.match((await broken.call("browser_click", { ref: "@e1" })).error, /No page is open/);
    });

    test("a recording is kept where it was asked for", async () => {
      const user = await newSurfer({ record_sessions: true });
      await user.call("browser_navigate", { url: site.url });
      const { browserHolder } = await import("../src/tools/browser/session.ts");
      await user.ctx.state.of(browserHolder).dispose();
      const [name] = await readdir(join(user.homeDir, "cache", "recordings"));
      await access(join(user.homeDir, "cache", "recordings", name ?? ""));
    });
  });
});
