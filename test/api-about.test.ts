// What the API server says of itself, in the shapes that front ends read, and the examples of its guide as they are typed.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { type ApiRig, apiRig, KEY } from "./support/api-rig.ts";
import { repository } from "./support/run-hermes.ts";

const run = promisify(execFile);

let rig: ApiRig;
before(async () => {
  rig = await apiRig({ extra: { model_routes: { quick: "other-model" } } });
  rig.model.clear().otherwise({ text: "done" });
});
after(() => rig[Symbol.asyncDispose]());

const get = async (path: string) => (await rig.call("GET", path)).json;

describe("what the server says of itself", () => {
  test("its models are the agent and the aliases", async () => {
    const { object, data } = await get("/v1/models");
    assert.equal(object, "list");
    for (const [at, id] of ["hermes-agent", "quick"].entries()) {
      const { created, ...model } = data[at];
      assert.ok(Number.isInteger(created));
      assert.deepEqual(model, {
        ...{ id, object: "model", owned_by: "hermes", permission: [], root: id, parent: null },
      });
    }
  });

  test("its abilities name every address it has, and each of them answers", async () => {
    const { auth, runtime, features, endpoints, ...rest } = await get("/v1/capabilities");
    const about = { object: "hermes.api_server.capabilities", platform: "hermes-agent", model: "hermes-agent" };
    assert.deepEqual(rest, about);
    assert.deepEqual(auth, { type: "bearer", required: true });
    assert.deepEqual([runtime.mode, runtime.tool_execution, runtime.split_runtime], ["server_agent", "server", false]);
    const { cors, session_continuity_header, session_key_header, ...able } = features;
    assert.deepEqual(
      [cors, session_continuity_header, session_key_header],
      [false, "X-Hermes-Session-Id", "X-Hermes-Session-Key"],
    );
    assert.ok(Object.keys(able).length >= 17 && Object.values(able).every((one) => one === true), JSON.stringify(able));

    const named = Object.values(endpoints as Record<string, { method: string; path: string }>).map(
      ({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, ":id")}`,
    );
    const folder = join(repository, "src", "doors", "api");
    const sources = await Promise.all(
      (await readdir(folder))
        .filter((file) => !file.includes(".test."))
        .map((file) => readFile(join(folder, file), "utf8")),
    );
    const known = sources.flatMap((source) =>
      [...source.matchAll(/(?:method: |route\()"([A-Z]+)",\s*(?:path: )?"(\/[^"]+)"/g)].map(([, ...line]) =>
        line.join(" "),
      ),
    );
    assert.deepEqual([...new Set(named)].sort(), known.filter((line) => line !== "GET /v1/health").sort());
    for (const line of named) {
      const [method = "", path = ""] = line.split(" ");
      const { status, json } = await rig.call(
        method,
        path.replace(":id", "0123456789ab"),
        method === "POST" ? {} : undefined,
      );
      assert.ok(json.error?.code !== "not_found" && status !== 405, line);
    }
  });

  test("skills and toolsets are lists; its health says what runs, and tells nobody without a key", async () => {
    const toolsets = await get("/v1/toolsets");
    assert.deepEqual([toolsets.object, toolsets.platform], ["list", "api_server"]);
    const terminal = toolsets.data.find(({ name }: { name: string }) => name === "terminal");
    assert.deepEqual(Object.keys(terminal).sort(), ["configured", "description", "enabled", "label", "name", "tools"]);
    assert.ok(terminal.enabled && terminal.configured && terminal.tools.includes("terminal"));
    assert.equal((await get("/v1/skills")).object, "list");
    const { status, platform, gateway_state, active_agents } = await get("/health/detailed");
    assert.deepEqual([status, platform, gateway_state, active_agents], ["ok", "hermes-agent", "running", 0]);
    assert.equal((await rig.call("GET", "/health/detailed", undefined, { authorization: "" })).status, 401);
  });
});

test("the examples of the guide work as they are typed", async () => {
  const guide = await readFile(join(repository, "docs", "guide", "api.md"), "utf8");
  const blocks = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block.replaceAll("\\\n", " "));
  const typed = blocks.flatMap((block) => block.split("\n")).filter((line) => /^(?:curl|\w+=)/.test(line));
  assert.ok(typed.length >= 7, typed.join("\n"));
  let before = `KEY=${KEY}\n`;
  const printed: string[] = [];
  for (const line of typed.slice(1)) {
    const own = line
      .replaceAll("http://127.0.0.1:8642", rig.url)
      .replaceAll("run_...", /run_[0-9a-f]{32}/.exec(printed.join())?.[0] ?? "");
    if (/^\w+=/.test(own)) before += `${own}\n`;
    else
      printed.push((await run("bash", ["-c", `${before}${own}`], { cwd: rig.home.project, timeout: 60_000 })).stdout);
  }
  const [chat = "", started = "", events = "", answered = "", stopped = ""] = printed.map((text) => text.trimEnd());
  assert.equal(JSON.parse(chat).choices[0].message.content, "done");
  assert.equal(JSON.parse(started).status, "started");
  assert.match(events, /"event":"run\.completed".*"output":"done"/);
  assert.equal(JSON.parse(answered).error.code, "approval_not_active");
  assert.equal(JSON.parse(stopped).status, "completed");
});
