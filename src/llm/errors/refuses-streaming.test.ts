import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelError } from "../wire.ts";
import { refusesStreaming } from "./details.ts";

const cases: readonly [error: ModelError, refuses: boolean][] = [
  [{ status: 400, message: "Streaming is not supported for this model" }, true],
  [{ status: 422, message: "HTTP 422", body: { error: { message: "`stream` unsupported" } } }, true],
  [{ status: 400, message: "Unsupported parameter: stream_options is not supported" }, false],
  [{ status: 400, message: "temperature is not supported" }, false],
  [{ message: "The stream fell silent: timed out after 180 s." }, false],
  [{ status: 500, message: "stream not supported" }, false],
];
for (const [error, refuses] of cases)
  test(`"${error.message}" (${error.status}) ${refuses ? "refuses" : "does not refuse"} streaming`, () =>
    assert.equal(refusesStreaming(error), refuses));
