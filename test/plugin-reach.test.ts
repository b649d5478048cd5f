// How far plugins and hooks reach: what they hear besides turns and tools, what they may say, and what they bring along.
import assert from "node:assert/strict";
import { chmod, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { AgentEvent } from "../src/agent/events.ts";
import { isRunning } from "./support/running.ts";
import { type Talk, type TalkOptions, talk } from "./support/talk.ts";

const plugin = (name: string, register: string, more = "") => ({
  [`plugins/${name}/plugin.yaml`]: `name: ${name}\nversion: 1.0.0\n${more}`,
  [`plugins/${name}/index.mjs`]: `import { appendFileSync } from "node:fs"; import { join } from "node:path";
export default (ctx) => {
  const listen = (...events) => { for (const event of events) ctx.registerHook(event, (facts) =>
    appendFileSync(join(ctx.hermesHome, "heard.jsonl"), JSON.stringify({ event, facts }) + "\\n")); };
  ${register}
};`,
});

function begin(t: TestContext, register: string, options: TalkOptions & { readonly more?: string } = {}) {
  return talk(t, {
    ...options,
    config: `plugins: { enabled: [t_reach] }\n${options.config ?? ""}`,
    home: { ...plugin("t_reach", register, options.more), ...options.home },
  });
}

async function heard({ homeDir }: Talk) {
  const text = await readFile(join(homeDir, "heard.jsonl"), "utf8").catch(() => "");
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as { event: string; facts: Record<string, unknown> });
}

// biome-ignore lint/suspicious/noExplicitAny: a request body
const lastOf = (body: any, role: string): string =>
  body.messages.findLast((message: { role: string }) => message.role === role)?.content ?? "";
const toolNames = ({ server }: Talk): string[] =>
  server.last.body.tools.map((tool: { function: { name: string } }) => tool.function.name);

test("a request that failed is told with its reason", async (t) => {
  const conversation = await begin(t, `listen("pre_api_request", "post_api_request", "api_request_error");`);
  conversation.server.script({ fault: "status", status: 400, body: { error: { message: "no such thing" } } });
  await conversation.say("go");
  const told = await heard(conversation);
  assert.deepEqual([told[0]?.event, told[1]?.event], ["pre_api_request", "api_request_error"]);
  const facts: Record<string, unknown> = told[1]?.facts ?? {};
  assert.equal(facts.status_code, 400);
  assert.match(String(facts.error_message), /no such thing/);
  assert.equal(facts.session_id, conversation.conversation.agent.sessionId);
  assert.equal(typeof facts.duration_ms, "number");
});

test("what a person is asked about a command, and the answer, are told; the answer is theirs alone", async (t) => {
  const conversation = await begin(
    t,
    `listen("pre_approval_request", "post_approval_response");
     ctx.registerHook("pre_approval_request", () => ({ choice: "always", action: "approve" }));`,
    { request: { interactive: true, yolo: false } },
  );
  conversation.server.script(
    { toolCalls: [{ name: "terminal", arguments: { command: "bash --norc -c 'exit 0'" } }] },
    { text: "ok" },
  );
  for await (const event of conversation.conversation.agent.run({ text: "go" })) {
    if (event.type === "ask") event.request.answer({ choice: "deny" } as never); // the question is an approval
  }
  const told = await heard(conversation);
  assert.deepEqual(
    told.map(({ event }) => event),
    ["pre_approval_request", "post_approval_response"],
  );
  const [before, after] = told.map(({ facts }) => facts);
  assert.equal(before?.command, "bash --norc -c 'exit 0'");
  assert.deepEqual(before?.pattern_keys, [before?.pattern_key]);
  assert.equal(before?.surface, "cli");
  assert.ok(before?.description && before.session_key);
  assert.deepEqual([after?.choice, after?.command], ["deny", "bash --norc -c 'exit 0'"]);
  assert.match(lastOf(conversation.server.last.body, "tool"), /denied|refused|did not/i);
});

test("children are told when they start and stop, with role, summary and status", async (t) => {
  const conversation = await begin(t, `listen("subagent_start", "subagent_stop");`);
  conversation.server.script(
    { toolCalls: [{ name: "delegate_task", arguments: { goal: "count the herons", role: "orchestrator" } }] },
    { text: "three herons" },
    { text: "done" },
  );
  await conversation.say("go");
  await conversation.conversation.close("cli_close");
  const told = await heard(conversation);
  assert.deepEqual(
    told.map(({ event }) => event),
    ["subagent_start", "subagent_stop"],
  );
  const { duration_ms, child_id, cwd, ...facts } = told[1]?.facts ?? {};
  assert.equal(typeof duration_ms, "number");
  assert.deepEqual(facts, {
    parent_session_id: conversation.conversation.agent.sessionId,
    child_role: "orchestrator",
    child_goal: "count the herons",
    child_summary: "three herons",
    child_status: "completed",
  });
});

test("a plugin speaks into a running turn, and beside it as a message of its own", async (t) => {
  const conversation = await begin(
    t,
    `ctx.registerTool({ name: "t_speak", description: "speaks", handler: () => String(ctx.injectMessage("hurry up")) });
     ctx.registerHook("on_session_end", () => { ctx.injectMessage("one more thing"); });`,
  );
  const notices: AgentEvent[] = [];
  const { agent } = conversation.conversation;
  const listening = (async () => {
    for await (const event of agent.notices) notices.push(event);
  })();
  conversation.server.script({ toolCalls: [{ name: "t_speak", arguments: {} }] }, { text: "ok" });
  await conversation.say("go");
  assert.match(lastOf(conversation.server.last.body, "tool"), /^true[\s\S]*hurry up/);
  await conversation.conversation.close("cli_close");
  await listening;
  const said = notices.filter((event) => event.type === "notice" && event.kind === "process");
  assert.deepEqual(
    said.map((event) => event.type === "notice" && event.text),
    ["one more thing"],
  );
});

test("context too long for a message is kept in a file and rides along by its two ends", async (t) => {
  const conversation = await begin(
    t,
    `ctx.registerHook("pre_llm_call", () => ({ context: "BEGIN" + "x".repeat(20_000) + "END" }));`,
  );
  conversation.server.script({ text: "ok" });
  await conversation.say("go");
  const sent = lastOf(conversation.server.last.body, "user");
  assert.ok(sent.length < 2000, `${sent.length}`);
  const [, path = ""] = /the whole text is in (\S+)\]/.exec(sent) ?? [];
  assert.match(sent, /^go\n\nBEGINx+\n\n\[\.\.\. 19008 of 20008 chars left out;[\s\S]*xEND$/);
  assert.equal((await readFile(path, "utf8")).length, 20_008);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test("skills that a plugin registered are opened by its name, from several folders; their neighbours are not", async (t) => {
  const skill = (name: string) => `---\nname: ${name}\ndescription: about ${name}\n---\nThe text of ${name}.\n`;
  const conversation = await begin(t, `ctx.registerSkill("skills/heron"); ctx.registerSkill("more/reed");`, {
    home: {
      "plugins/t_reach/skills/heron/SKILL.md": skill("heron"),
      "plugins/t_reach/skills/secret/SKILL.md": skill("secret"),
      "plugins/t_reach/more/reed/SKILL.md": skill("reed"),
    },
  });
  const view = (name: string) => ({ toolCalls: [{ name: "skill_view", arguments: { name } }] });
  conversation.server.script(view("t_reach:heron"), view("t_reach:reed"), view("t_reach:secret"), { text: "ok" });
  await conversation.say("go");
  const results = conversation.server.last.body.messages
    .filter((message: { role: string }) => message.role === "tool")
    .map(({ content }: { content: string }) => content);
  assert.match(results[0], /The text of heron/);
  assert.match(results[1], /The text of reed/);
  assert.doesNotMatch(results[2], /The text of secret/);
});

test("a plugin that registers by its settings and variables is asked again when they change", async (t) => {
  const conversation = await begin(
    t,
    `const tool = (name) => ctx.registerTool({ name, description: "x", handler: () => "x" });
     if (ctx.env("T_KEY")) tool("t_keyed");
     if (ctx.settings.loud) tool("t_loud");`,
    { more: "requires_env: [T_KEY]\n" },
  );
  const { server, homeDir } = conversation;
  server.otherwise({ text: "ok" });
  await conversation.say("go");
  assert.ok(!toolNames(conversation).some((name) => name.startsWith("t_")));
  await writeFile(join(homeDir, ".env"), "T_KEY=1\n");
  await conversation.begin();
  await conversation.say("go");
  assert.ok(toolNames(conversation).includes("t_keyed") && !toolNames(conversation).includes("t_loud"));
  const config = await readFile(join(homeDir, "config.yaml"), "utf8");
  await writeFile(
    join(homeDir, "config.yaml"),
    config.replace("[t_reach] }", "[t_reach], entries: { t_reach: { loud: true } } }"),
  );
  await conversation.begin();
  await conversation.say("go");
  assert.ok(toolNames(conversation).includes("t_loud"));
});

const hooked = async (t: TestContext, event: string, script: string, options: TalkOptions = {}) => {
  const conversation = await talk(t, {
    ...options,
    config: `hooks:\n  ${event}:\n    - command: ~/hook.sh\n      timeout: 200\n`,
  });
  const path = join(conversation.osHome, "hook.sh");
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return { conversation, path };
};

test("consent that the original wrote holds for the script of that time, and for no later one", async (t) => {
  const { conversation, path } = await hooked(t, "pre_llm_call", `echo '{"context":"from the hook"}'`);
  await utimes(path, 1_760_000_000, 1_760_000_000);
  const approval = {
    event: "pre_llm_call",
    command: "~/hook.sh",
    approved_at: "2025-10-09T09:00:00Z",
    script_mtime_at_approval: new Date(1_760_000_000_000).toISOString().replace(".000", ""),
  };
  const file = join(conversation.homeDir, "shell-hooks-allowlist.json");
  await writeFile(file, JSON.stringify({ approvals: [approval] }));
  conversation.server.script({ text: "1" }, { text: "2" });
  await conversation.say("first");
  assert.equal(lastOf(conversation.server.last.body, "user"), "first\n\nfrom the hook");
  await utimes(path, 1_760_000_100, 1_760_000_100);
  await conversation.say("second");
  assert.equal(lastOf(conversation.server.last.body, "user"), "second");
  assert.deepEqual(
    JSON.parse(await readFile(file, "utf8")),
    { approvals: [approval] },
    "nothing is written by looking",
  );
});

test("an interrupt ends the program of a hook at once, and nobody is warned about it", async (t) => {
  const { conversation } = await hooked(t, "pre_tool_call", `echo $$ > ~/pid; sleep 100`, {
    request: { acceptHooks: true },
  });
  const { agent } = conversation.conversation;
  const pidFile = join(conversation.osHome, "pid");
  conversation.server.script({ toolCalls: [{ name: "terminal", arguments: { command: "touch ran" } }] });
  const events: AgentEvent[] = [];
  const watching = setInterval(async () => {
    if ((await readFile(pidFile, "utf8").catch(() => "")) !== "") agent.interrupt("stop");
  }, 50);
  for await (const event of agent.run({ text: "go" })) events.push(event);
  clearInterval(watching);
  const pid = Number(await readFile(pidFile, "utf8"));
  for (let n = 0; n < 100 && isRunning(pid); n++) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(!isRunning(pid), "the hook lives on");
  assert.deepEqual(
    events.filter((event) => event.type === "status" && event.kind === "warn"),
    [],
  );
  assert.ok(!events.some((event) => event.type === "tool_start"));
});

test("once allows a hook for one turn, session for all turns of this run; only always is written down", async (t) => {
  const { conversation, path } = await hooked(t, "pre_llm_call", `echo '{"context":"from the hook"}'`, {
    request: { interactive: true },
  });
  const { server } = conversation;
  server.otherwise({ text: "ok" });
  const asked: (string | undefined)[] = [];
  const say = async (text: string, choice: string) => {
    for await (const event of conversation.conversation.agent.run({ text })) {
      if (event.type !== "ask" || event.request.question.kind !== "approval") continue;
      asked.push(event.request.question.keptIn);
      event.request.answer({ choice } as never); // the question is an approval
    }
    return lastOf(server.last.body, "user");
  };
  assert.equal(await say("one", "once"), "one\n\nfrom the hook");
  assert.equal(await say("two", "session"), "two\n\nfrom the hook");
  assert.equal(asked.length, 2, "once was for one turn");
  assert.equal(await say("three", "deny"), "three\n\nfrom the hook");
  assert.equal(asked.length, 2, "session is for all turns");
  const file = join(conversation.homeDir, "shell-hooks-allowlist.json");
  await assert.rejects(stat(file), { code: "ENOENT" });
  await writeFile(path, `#!/bin/sh\necho '{"context":"changed"}'\n`);
  assert.equal(await say("four", "deny"), "four");
  assert.equal(await say("five", "always"), "five");
  assert.equal(asked.length, 3, "no is for all turns too");
  await writeFile(path, `#!/bin/sh\necho '{"context":"changed again"}'\n`);
  assert.equal(await say("six", "always"), "six\n\nchanged again");
  assert.deepEqual(asked, Array(4).fill("shell-hooks-allowlist.json"));
  assert.equal(JSON.parse(await readFile(file, "utf8")).approvals.length, 1);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
});
