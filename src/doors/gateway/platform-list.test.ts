import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { repository } from "../../../test/support/run-hermes.ts";
import { recordedLog } from "../../../test/support/session-store.ts";
import { tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { systemClock } from "../../kit/clock.ts";
import { allPlatforms } from "./platform-list.ts";

test("what a plugin's platform calls a secret reaches no command, whatever its name", async (t) => {
  const temp = await tempHome({ "config.yaml": "plugins: {enabled: [paper]}\n" });
  t.after(() => temp[Symbol.asyncDispose]());
  await cp(join(repository, "docs", "example-platform"), temp.at("plugins", "paper"), { recursive: true });
  const code = temp.at("plugins", "paper", "index.mjs");
  const written = await readFile(code, "utf8");
  await writeFile(
    code,
    written.replace('{ name: "PAPER_URL",', '{ name: "PAPER_SIGNET", secret: true, about: "" }, $&'),
  );
  const env = { HERMES_HOME: temp.dir, PAPER_SIGNET: "a-signet-0123", PAPER_URL: "http://127.0.0.1:9" };
  const home = await openHome({ argv: [], env, osHome: temp.osHome, cwd: temp.project });
  t.after(() => home.close());
  assert.equal(home.environment().PAPER_SIGNET, "a-signet-0123");
  const found = await allPlatforms({ home, clock: systemClock, cwd: temp.project }, recordedLog());
  assert.ok(found.some(({ name }) => name === "paper"));
  assert.equal(home.environment().PAPER_SIGNET, undefined);
  assert.ok(home.withheld().includes("PAPER_SIGNET"));
  assert.equal(home.environment().PAPER_URL, "http://127.0.0.1:9");
});
