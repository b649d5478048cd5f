import assert from "node:assert/strict";
import { test } from "node:test";
import type { PrefixReport } from "../gate.ts";
import type { Usage } from "../usage.ts";
import { CacheShare } from "./create-gate.ts";

const usage = (promptTokens: number, cacheReadTokens: number | null) => ({ promptTokens, cacheReadTokens }) as Usage;
const same: PrefixReport = { bytes: 50_000, commonBytes: 40_000 };
const broken: PrefixReport = { ...same, commonBytes: 12, brokeOwner: "memory", brokeOffset: 12 };

const cases: readonly (readonly [
  name: string,
  calls: readonly (readonly [Usage, PrefixReport])[],
  told: RegExp | null,
])[] = [
  ["one low request is nothing", [[usage(9_000, 0), same]], null],
  [
    "two in a row are told, with what differs",
    [
      [usage(9_000, 0), same],
      [usage(9_000, 0), broken],
    ],
    /in memory, at byte 12/,
  ],
  [
    "two alike requests blame the provider",
    [
      [usage(9_000, 0), same],
      [usage(9_000, 1_799), same],
    ],
    /does not cache them/,
  ],
  [
    "a good one between starts afresh",
    [
      [usage(9_000, 0), same],
      [usage(9_000, 8_000), same],
      [usage(9_000, 0), same],
    ],
    null,
  ],
  [
    "small prompts do not count",
    [
      [usage(8_000, 0), same],
      [usage(8_000, 0), same],
    ],
    null,
  ],
  [
    "what is not reported does not count",
    [
      [usage(9_000, null), same],
      [usage(9_000, null), same],
    ],
    null,
  ],
  [
    "a first request does not count",
    [
      [usage(9_000, 0), { commonBytes: 0 }],
      [usage(9_000, 0), same],
    ],
    null,
  ],
];
for (const [name, calls, told] of cases)
  test(name, () => {
    const share = new CacheShare();
    const said = calls.map(([used, report]) => share.note("s", used, report));
    if (told === null)
      return assert.deepEqual(
        said,
        said.map(() => null),
      );
    assert.match(said.at(-1) ?? "", told);
    assert.equal(share.note("s", usage(9_000, 0), same), null, "once per session");
  });
