import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { unicodeText } from "../../../test/support/unicode-text.ts";
import { makeSnippet } from "./snippet.ts";

test("a short text is shown whole with its hits marked, whatever their case", () => {
  assert.equal(
    makeSnippet("Deploy the 服务, then deploy", ["deploy", "服务"]),
    ">>>Deploy<<< the >>>服务<<<, then >>>deploy<<<",
  );
});

test("a long text is cut to 120 characters from 40 before the hit", () => {
  const snippet = makeSnippet(`${"前".repeat(100)}命中${"后".repeat(200)}`, ["命中"]);
  assert.equal(snippet, `...${"前".repeat(40)}>>>命中<<<${"后".repeat(78)}...`);
});

test("a snippet never cuts a character in half", () => {
  fc.assert(
    fc.property(unicodeText(), unicodeText(), (before, after) => {
      assert.ok(makeSnippet(`${before.repeat(20)}𠀀针${after.repeat(20)}`, ["针"]).isWellFormed());
    }),
  );
});
