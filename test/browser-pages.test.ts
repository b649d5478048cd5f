// The browser tools against pages of our own, in a real Chromium.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
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
  "/": `<title>Start</title><h1>Welcome</h1><p>Read <a href="/second">the second page</a></p>
    <form onsubmit="event.preventDefault(); out.textContent = 'Hello ' + who.value">
      <label>Name <input id="who"></label><label>Password <input type="password" id="pw"></label>
      <button>Greet</button></form><p id="out"></p>
    <img src="/pic.png" alt="a picture"><button onclick="window.open('/second')">Window</button>
    <iframe srcdoc="<button onclick='this.textContent=&quot;pressed&quot;'>Inside</button>"></iframe>
    <div style="height:4000px"></div><script>console.log("hello from the page"); setTimeout(() => { throw new Error("boom") })</script>`,
  "/second": "<title>Second</title><h1>Second page</h1>",
  "/dialogs": `<title>Dialogs</title><button onclick="out.textContent = confirm('Really?')">Ask</button>
    <button onclick="out.textContent = prompt('Your name?', 'nobody')">Prompt</button><p id="out"></p>`,
  "/long": `<title>Long</title>${Array.from({ length: 600 }, (_, n) => `<p><a href="/${n}">link number ${n}</a></p>`).join("")}`,
  "/file": (_request, response) => {
    response.writeHead(200, {
      "content-disposition": 'attachment; filename="notes.txt"',
      "content-type": "text/plain",
    });
    response.end("downloaded text");
  },
  "/with-file": '<title>F</title><a href="/file">get it</a>',
};

await withEngine("Chromium", missingChromium, () => {
  describe("a page in a real browser", () => {
    let site: Site;
    let user: Surfer;
    before(async () => {
      site = await startSite(PAGES);
      user = await surfer();
    });
    after(async () => {
      await user.close();
      await site.close();
    });

    test("it is opened, read, filled in, clicked and photographed", async () => {
      const opened = await user.call("browser_navigate", { url: site.url });
      assert.equal(opened.success, true, opened.error);
      assert.deepEqual([opened.url, opened.title], [`${site.url}/`, "Start"]);
      assert.match(opened.snapshot, /heading "Welcome" \[level=1\]/);
      assert.match(opened.snapshot, /link "the second page" @e\d+/);
      assert.ok(opened.element_count >= 5);

      const typed = await user.call("browser_type", { ref: refOf(opened.snapshot, 'textbox "Name"'), text: "Ada" });
      assert.deepEqual([typed.success, typed.typed], [true, 3]);
      const clicked = await user.call("browser_click", { ref: refOf(opened.snapshot, 'button "Greet"') });
      assert.equal(clicked.success, true, clicked.error);
      const full = await user.call("browser_snapshot", { full: true });
      assert.match(full.snapshot, /Hello Ada/);
      assert.match(full.snapshot, /-> \/second/);

      const asked: unknown[] = [];
      const blind = user.as({}, { askAuxiliary: async (question) => `seen ${asked.push(question)}` });
      const seen = await blind.call("browser_vision", { question: "What is this?", annotate: true });
      assert.deepEqual([seen.success, seen.analysis], [true, "seen 1"]);
      assert.ok(seen.annotated.length > 3);
      assert.match(JSON.stringify(asked), /data:image\/png;base64,/);
    });

    test("a model that sees gets the screenshot itself, and the file stays", async () => {
      const seeing = user.as({}, { seesImages: true });
      await seeing.call("browser_navigate", { url: site.url });
      const output = await seeing.raw("browser_vision", { question: "q" });
      assert.ok(typeof output !== "string" && output.content[1]?.type === "image_url");
      const { screenshot_path } = JSON.parse(output.text_summary ?? "");
      assert.equal((await readFile(screenshot_path)).subarray(1, 4).toString(), "PNG");
    });

    test("elements inside a frame are reached, and what is typed into a password field is not shown", async () => {
      const opened = await user.call("browser_navigate", { url: site.url });
      await user.call("browser_click", { ref: refOf(opened.snapshot, 'button "Inside"') });
      await user.call("browser_type", { ref: refOf(opened.snapshot, 'textbox "Password"'), text: "open sesame" });
      const { snapshot } = await user.call("browser_snapshot");
      assert.match(snapshot, /button "pressed"/);
      assert.doesNotMatch(snapshot, /sesame/);
    });

    test("links, back, keys, scrolling, images and the console work", async () => {
      const opened = await user.call("browser_navigate", { url: site.url });
      const followed = await user.call("browser_click", { ref: refOf(opened.snapshot, "the second page") });
      assert.equal(followed.title, "Second");
      const returned = await user.call("browser_back");
      assert.equal(returned.title, "Start", returned.error);
      const images = await user.call("browser_get_images");
      assert.deepEqual(images.images[0], { src: `${site.url}/pic.png`, alt: "a picture", width: 0, height: 0 });
      assert.match((await user.call("browser_scroll", { direction: "down" })).position, /^[1-9]\d+ of \d+$/);
      assert.match((await user.call("browser_scroll", { direction: "up" })).position, /^0 of/);
      assert.equal((await user.call("browser_press", { key: "Tab" })).pressed, "Tab");
      assert.match((await user.call("browser_press", { key: "Nonsense" })).error, /Unknown key "Nonsense"/);
      const said = await user.call("browser_console", { clear: true });
      assert.ok(said.console_messages.some(({ text }: { text: string }) => text === "hello from the page"));
      assert.ok(said.js_errors.some((text: string) => /boom/.test(text)));
      assert.equal((await user.call("browser_console")).total_messages, 0);
      assert.deepEqual((await user.call("browser_console", { expression: "({a: 1 + 1})" })).result, { a: 2 });
      assert.match((await user.call("browser_console", { expression: "nope()" })).error, /nope is not defined/);
    });

    test("a ref that is not of the last snapshot is refused in words", async () => {
      const opened = await user.call("browser_navigate", { url: site.url });
      const ref = refOf(opened.snapshot, "the second page");
      await user.call("browser_navigate", { url: `${site.url}/second` });
      for (const wrong of [ref, "@e999", "rubbish"]) {
        const { success, error } = await user.call("browser_click", { ref: wrong });
        assert.equal(success, false);
        assert.match(error, /not an element of the last snapshot.*browser_snapshot/);
      }
    });

    test("a long page is cut at 8000 characters, and all of it lies in a file", async () => {
      const { snapshot, truncated, full_snapshot } = await user.call("browser_navigate", { url: `${site.url}/long` });
      assert.equal(truncated, true);
      assert.ok(snapshot.length < 8200);
      assert.match(snapshot, /\[cut after \d+ of \d+ characters/);
      assert.match(await readFile(full_snapshot, "utf8"), /link number 599/);
    });

    test("a dialog stops everything else until it is answered", async () => {
      const opened = await user.call("browser_navigate", { url: `${site.url}/dialogs` });
      const asked = await user.call("browser_click", { ref: refOf(opened.snapshot, "Ask") });
      assert.deepEqual(asked.dialog, { type: "confirm", message: "Really?" });
      assert.match((await user.call("browser_snapshot")).error, /waits for an answer.*Really\?.*browser_dialog/);
      const answered = await user.call("browser_dialog", { action: "accept" });
      assert.equal(answered.success, true, answered.error);
      assert.match((await user.call("browser_snapshot")).snapshot, /- true/);
      await user.call("browser_click", { ref: refOf((await user.call("browser_snapshot")).snapshot, "Prompt") });
      await user.call("browser_dialog", { action: "accept", prompt_text: "Ada" });
      assert.match((await user.call("browser_snapshot")).snapshot, /- Ada/);
      assert.match((await user.call("browser_dialog", { action: "accept" })).error, /No dialog is open/);
    });

    test("dialogs are answered without the model where the settings say so", async () => {
      const quick = await surfer({ dialog_policy: "auto_dismiss" });
      const opened = await quick.call("browser_navigate", { url: `${site.url}/dialogs` });
      await quick.call("browser_click", { ref: refOf(opened.snapshot, "Ask") });
      assert.match((await quick.call("browser_snapshot")).snapshot, /- false/);
      await quick.close();
    });

    test("a new window comes to the front, and a download lands in the home", async () => {
      const opened = await user.call("browser_navigate", { url: site.url });
      await user.call("browser_click", { ref: refOf(opened.snapshot, "Window") });
      let inFront = await user.call("browser_snapshot");
      for (let tries = 0; inFront.title !== "Second" && tries < 200; tries++)
        inFront = await user.call("browser_snapshot");
      assert.equal(inFront.title, "Second");
      const files = await user.call("browser_navigate", { url: `${site.url}/with-file` });
      let { notes = [] } = await user.call("browser_click", { ref: refOf(files.snapshot, "get it") });
      for (let tries = 0; notes.length === 0 && tries < 200; tries++) {
        ({ notes = [] } = await user.call("browser_console", {
          expression: "new Promise((done) => setTimeout(done, 100))",
        }));
      }
      const path = /to (\/.*notes\.txt)$/.exec(notes.at(-1))?.[1];
      assert.equal(await readFile(path ?? "", "utf8"), "downloaded text", String(notes));
    });

    test("DevTools commands reach the page, and nothing beyond it", async () => {
      await user.call("browser_navigate", { url: site.url });
      const { result } = await user.call("browser_cdp", {
        method: "Runtime.evaluate",
        params: { expression: "6 * 7" },
      });
      assert.equal(result.result.value, 42);
      assert.match((await user.call("browser_cdp", { method: "Page.nothing" })).error, /wasn't found|not found/);
      for (const [method, params] of [
        ["Page.navigate", { url: "file:///etc/hostname" }],
        ["DOM.setFileInputFiles", { files: ["/etc/hostname"] }],
        ["Target.createBrowserContext", {}],
        ["Browser.close", {}],
      ] as const) {
        const refused = await user.call("browser_cdp", { method, params });
        assert.match(refused.error, /not sent/, method);
      }
      assert.equal((await user.call("browser_snapshot")).title, "Start");
    });

    test("keys of the user are neither typed nor sent in an address", async () => {
      const careful = user.as({}, { redact: (text) => text.replaceAll("sk-very-secret", "***") });
      const opened = await careful.call("browser_navigate", { url: site.url });
      const ref = refOf(opened.snapshot, 'textbox "Name"');
      assert.match((await careful.call("browser_type", { ref, text: "my sk-very-secret" })).error, /one of your keys/);
      const sent = await careful.call("browser_navigate", { url: `${site.url}/?k=sk-very%2Dsecret` });
      assert.match(sent.error, /one of your keys/);
      const run = await careful.call("browser_console", { expression: "fetch('/?k=sk-very-secret')" });
      assert.match(run.error, /one of your keys/);
      // What looks like a variable stays what it is.
      await careful.call("browser_type", { ref, text: "$HOME %PATH%" });
      assert.match((await careful.call("browser_snapshot")).snapshot, /\$HOME %PATH%/);
    });
  });
});
