import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultConfig } from "../../home/config/schema.ts";
import { registerProvider } from "../toolset/availability.ts";
import { isElsewhere } from "./launch.ts";

const places: readonly (readonly [settings: { engine?: string; cdp_url?: string }, elsewhere: boolean])[] = [
  [{}, false],
  [{ engine: "/usr/bin/chromium" }, false],
  [{ engine: "browserbase" }, true],
  [{ engine: " rented " }, true],
  [{ cdp_url: "http://127.0.0.1:9222" }, false],
  [{ cdp_url: "ws://localhost:9222/devtools/browser/x" }, false],
  [{ cdp_url: "http://[::1]:9222" }, false],
  [{ cdp_url: "http://192.168.1.4:9222" }, true],
  [{ cdp_url: "wss://browsers.test/?token=x" }, true],
  [{ cdp_url: "nonsense" }, false],
];
for (const [settings, elsewhere] of places)
  test(`${JSON.stringify(settings)}: pages are opened ${elsewhere ? "elsewhere" : "here"}`, (t) => {
    t.after(registerProvider("browser", "rented", async () => ({})));
    assert.equal(isElsewhere({ ...defaultConfig().browser, ...settings }), elsewhere);
  });
