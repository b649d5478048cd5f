import assert from "node:assert/strict";
import { test } from "node:test";
import { checkStructure } from "./decode.ts";
import type { Tree } from "./yaml-text.ts";

const fine = { name: "a", base_url: "http://a" };
const cases: readonly [name: string, tree: Tree, findings: [severity: string, message: RegExp][]][] = [
  ["nothing", {}, []],
  [
    "custom_providers as a mapping",
    { model: "m", custom_providers: { a: fine } },
    [["error", /is a mapping; write it as a list/]],
  ],
  [
    "an item that is no mapping",
    { model: "m", custom_providers: ["a"] },
    [["warning", /custom_providers\[0\] is not a mapping/]],
  ],
  [
    "an item without base_url",
    { model: "m", custom_providers: [fine, { name: "b" }] },
    [["warning", /\[1\] has no base_url/]],
  ],
  ["an item without name", { model: "m", custom_providers: [{ base_url: "b" }] }, [["warning", /\[0\] has no name/]]],
  ["custom_providers without a model", { custom_providers: [fine] }, [["warning", /but no model/]]],
  ["sound custom_providers", { model: "m", custom_providers: [fine] }, []],
  ["fallback_model as a text", { fallback_model: "x" }, [["error", /must be a mapping .*or a list/]]],
  [
    "a fallback item that is no mapping",
    { fallback_model: ["x"] },
    [["error", /fallback_model\[0\] must be a mapping/]],
  ],
  [
    "a fallback without provider",
    { fallback_model: { model: "m" } },
    [["warning", /has no provider; this fallback is disabled/]],
  ],
  ["a fallback item without model", { fallback_model: [{ provider: "p" }] }, [["warning", /\[0\] has no model/]]],
  ["sound fallbacks", { fallback_model: [{ provider: "p", model: "m" }] }, []],
  [
    "misplaced keys",
    { base_url: "u", api_key: "k", rate_limit_delay: 1, api_mode: "x" },
    [
      ["warning", /^base_url /],
      ["warning", /^api_key /],
      ["warning", /^rate_limit_delay /],
      ["warning", /^api_mode /],
    ],
  ],
];
for (const [name, tree, wanted] of cases) {
  test(`${name}: ${wanted.length} findings`, () => {
    const found = checkStructure(tree);
    assert.deepEqual(
      found.map(({ severity }) => severity),
      wanted.map(([severity]) => severity),
    );
    for (const [index, [, message]] of wanted.entries()) assert.match(found[index]?.message ?? "", message);
  });
}
