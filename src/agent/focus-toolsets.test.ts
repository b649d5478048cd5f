import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { tempHome } from "../../test/support/temp-home.ts";
import { openHome } from "../home/open.ts";
import type { SessionStore } from "../sessions/store.ts";
import { focusToolsets } from "./open-tools.ts";

const CODING = "file terminal search todo code_execution skills memory session_search clarify delegation".split(" ");
const FOCUS = "agent:\n  coding_context: focus\n";
const began = (origin: unknown) => ({
  id: "s",
  store: { getValue: async () => origin } as unknown as SessionStore, // all it is asked for
});

const cases: readonly {
  readonly name: string;
  readonly config?: string;
  readonly code?: boolean;
  readonly platform?: string;
  readonly request?: { readonly toolsets?: readonly string[]; readonly start?: { readonly origin: "subagent" } };
  readonly resumed?: ReturnType<typeof began>;
  readonly focused: boolean;
}[] = [
  { name: "in code", focused: true },
  { name: "in code with the usual setting", config: "", focused: false },
  { name: "outside code", code: false, focused: false },
  { name: "in a chat", platform: "telegram", focused: false },
  { name: "in a container", config: `${FOCUS}terminal:\n  backend: docker\n`, focused: false },
  { name: "where the run names toolsets", request: { toolsets: ["web"] }, focused: false },
  { name: "where the settings name toolsets", config: `${FOCUS}toolsets: [web, hermes-cli]\n`, focused: false },
  { name: "where the platform has its own", config: `${FOCUS}platform_toolsets:\n  cli: [web]\n`, focused: false },
  { name: "in a sub-agent", request: { start: { origin: "subagent" } }, focused: false },
  { name: "resumed", code: false, resumed: began({ coding: { active: true, focus: true } }), focused: true },
  { name: "resumed, begun without", resumed: began({ coding: null }), focused: false },
  { name: "resumed, begun nobody knows how", resumed: began(null), focused: true },
];

for (const { name, config = FOCUS, code = true, platform = "cli", request = {}, resumed = null, focused } of cases)
  test(`a conversation ${name} ${focused ? "has the tools of code work" : "has its usual tools"}`, async (t) => {
    const at = await tempHome({ "config.yaml": config });
    t.after(() => at[Symbol.asyncDispose]());
    if (code) await writeFile(join(at.project, "package.json"), "{}");
    const env = { HERMES_HOME: at.dir, HOME: at.osHome };
    const home = await openHome({ argv: [], env, osHome: at.osHome, cwd: at.project });
    t.after(() => home.close());
    const toolsets = await focusToolsets({ home, platform, ...request }, at.project, resumed);
    assert.deepEqual(toolsets, focused ? CODING : undefined);
  });
