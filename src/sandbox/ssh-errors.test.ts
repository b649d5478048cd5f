import assert from "node:assert/strict";
import { test } from "node:test";
import { isTransient } from "./ssh.ts";

const cases: readonly [errors: string, transient: boolean][] = [
  ["", true],
  ["\n", true],
  ["ssh: connect to host h port 22: Connection refused", true],
  ["mux_client_request_session: read from master failed: Broken pipe", true],
  ["kex_exchange_identification: Connection closed by remote host", true],
  ["Permission denied (publickey).", false],
  ["Host key verification failed.", false],
  ["ssh: Could not resolve hostname nowhere", false],
];
for (const [errors, transient] of cases) {
  test(`${JSON.stringify(errors)} is ${transient ? "" : "not "}worth another try`, () => {
    assert.equal(isTransient(errors), transient);
  });
}
