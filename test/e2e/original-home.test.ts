// A home of the Python original: opened as it is, gone on with, and left readable for the original.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import {
  insertAsOriginal,
  makeOriginalDatabase,
  ORIGINAL_VERSIONS,
  searchAsOriginal,
} from "../support/original-database.ts";
import { runHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { validateChat } from "../support/wire-validators.ts";

describe("a home of the original", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  for (const version of ORIGINAL_VERSIONS) {
    test(`${version}: listed, searched, continued, and still the original's`, async () => {
      await using home = await tempHome({ "config.yaml": `_config_version: 24\n${modelConfig(server)}` });
      makeOriginalDatabase(home.at("state.db"), version);

      const list = await runHermes(["sessions", "list", "--json"], { home });
      assert.equal(list.code, 0, list.stderr);
      assert.match(list.stdout, /old talk #2/);

      for (const word of oneOf(["walrus", "服务端", "youer"], `a word in ${version}`)) {
        const search = await runHermes(["sessions", "search", word, "--json"], { home });
        assert.equal(search.code, 0, search.stderr);
        assert.match(search.stdout, /20250101_100000_aaaaaa/, `${version} finds ${word}`);
      }

      server.script({ text: "Behind the second iceberg." });
      const answer = await runHermes(["--resume", "old talk", "-z", "and where is it now?"], { home });
      assert.equal(answer.stdout, "Behind the second iceberg.\n", answer.stderr);
      validateChat(server.last.raw);

      const db = new DatabaseSync(home.at("state.db"), { timeout: 10_000 });
      try {
        assert.deepEqual({ ...db.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
        insertAsOriginal(db, {
          session: "20250101_110000_bbbbbb",
          role: "user",
          content: "the original says narwhal",
          at: 9e9,
        });
        assert.equal(searchAsOriginal(db, "messages_fts", "narwhal").length, 1, "the original finds its own new row");
        assert.equal(searchAsOriginal(db, "messages_fts", "iceberg").length, 1, "the original finds ours");
      } finally {
        db.close();
      }
    });
  }
});
