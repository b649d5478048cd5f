import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../../test/support/session-store.ts";
import { classifyApiError } from "../llm/errors/classify.ts";
import type { ModelError } from "../llm/wire.ts";
import { retryDelayMs } from "./recovery.ts";

const clock = { ...manualClock(), random: () => 0 };
const delays = (error: ModelError) => {
  const failure = { error, classified: classifyApiError(error), worthRetrying: true, worthMoving: true };
  return [1, 2, 3, 9].map((attempt) => retryDelayMs(failure, attempt, clock) / 1000);
};

const pauses: readonly [what: string, error: ModelError, seconds: readonly number[]][] = [
  ["a server error", { status: 500, message: "x" }, [2, 4, 8, 60]],
  ["an answer that holds nothing", { message: "no choices", code: "bad_answer" }, [5, 10, 20, 120]],
  ["a stream that ended at once", { message: "ended", code: "empty_stream" }, [5, 10, 20, 120]],
  ["what a limit asks for", { status: 429, message: "x", headers: { "retry-after": "7" } }, [7, 7, 7, 7]],
  [
    "more than anybody waits for",
    { status: 429, message: "x", headers: { "retry-after": "900" } },
    [120, 120, 120, 120],
  ],
  ["a wish that is no limit's", { status: 500, message: "x", headers: { "retry-after": "900" } }, [2, 4, 8, 60]],
  ["a wish nobody can read", { status: 429, message: "x", headers: { "retry-after": "soon" } }, [2, 4, 8, 60]],
];
for (const [what, error, seconds] of pauses) {
  test(`the pauses after ${what}: ${seconds.join(", ")} s`, () => assert.deepEqual(delays(error), seconds));
}
