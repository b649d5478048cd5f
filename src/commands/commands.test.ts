import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { modelConfig } from "../../test/support/temp-home.ts";

const QUICK = `quick_commands:
  greet: {type: exec, command: "echo hello $((1+1))"}
  fail: {type: exec, command: "echo oops >&2; exit 3"}
  fresh: {type: alias, target: /new now}
  loop: {type: alias, target: /loop}
  ask: {type: alias, target: /queue what about}
  broken: {type: nonsense}
  help: {type: exec, command: "echo not me"}
`;

test("a new conversation is confirmed, unless told otherwise or nothing is lost", async (t) => {
  const rig = await commandRig(t);
  await rig.type("/new");
  assert.equal(rig.text(), "switched to new");
  await rig.chat("hello");
  await rig.type("/new");
  assert.equal(rig.text(), "asked: Start a new conversation?\nNothing changed.");
  await rig.type("/new not now please");
  assert.match(rig.text(), /^asked/);
  rig.answers.push("once");
  await rig.type("/reset My Session");
  assert.match(rig.text(), /switched to new \(My Session\)/);
  await rig.chat("hello");
  await rig.type("/new NOW Other");
  assert.equal(rig.text(), "switched to new (Other)");
  await rig.chat("hello");
  rig.answers.push("always");
  await rig.type("/clear");
  assert.match(rig.text(), /asked[\s\S]*cleared[\s\S]*switched to new/);
  await rig.chat("hello");
  await rig.type("/new");
  assert.equal(rig.text(), "switched to new", "always means always");
});

test("what was said is taken back, sent again, branched and resumed", async (t) => {
  const rig = await commandRig(t);
  await rig.type("/undo");
  await rig.type("/retry");
  assert.equal(rig.text(), "Nothing to undo yet.\nNothing to resend yet.");
  await rig.chat("first");
  await rig.chat("second");
  await rig.type("/title Talk");
  rig.text();
  rig.answers.push("once");
  await rig.type("/undo");
  assert.match(rig.text(), /Undid 1 message[\s\S]*input: second/);
  assert.equal((await rig.ctx.store.load(rig.ctx.conversation.agent.sessionId)).length, 2);
  await rig.type("/retry");
  assert.equal(rig.text(), "taken back: 1\nsubmitted: first");
  await rig.chat("again");
  await rig.type("/undo x");
  assert.match(rig.text(), /takes a number of messages, not "x"/);

  const parent = rig.ctx.conversation.agent.sessionId;
  await rig.type("/branch");
  assert.match(rig.text(), /This is a branch of Talk, called Talk #2/);
  const branch = await rig.ctx.store.get(rig.ctx.conversation.agent.sessionId);
  assert.equal(branch?.parentSessionId, parent);
  assert.equal((await rig.ctx.store.get(parent))?.endReason, "branched");
  await rig.chat("in the branch");
  await rig.type("/resume Talk");
  assert.match(rig.text(), /That is the current conversation|switched to/);
  await rig.type("/resume nowhere");
  assert.match(rig.text(), /No conversation has the id or title "nowhere"/);
});

test("a branch from a conversation that another process is at work on ends before its turn, and goes on", async (t) => {
  const rig = await commandRig(t);
  await rig.chat("first");
  const { store } = rig.ctx;
  const parent = rig.ctx.conversation.agent.sessionId;
  const answer = await store.takeLane(parent, "elsewhere:7:x");
  assert.ok(answer.type === "taken");
  await store.append(parent, [{ role: "user", content: "theirs, not answered yet" }], { lease: answer.lease });
  await rig.type("/branch aside");
  assert.match(rig.text(), /called aside\.\nIt ends before the turn that process 7 on elsewhere is still running\.$/);
  await rig.chat("mine");
  const rows = await store.load(rig.ctx.conversation.agent.sessionId);
  assert.deepEqual(
    rows.map(({ role }) => role),
    ["user", "assistant", "user", "assistant"],
  );
  assert.ok(!JSON.stringify(rows).includes("theirs"));
});

test("numbers refer to the last list", async (t) => {
  const rig = await commandRig(t);
  for (const title of ["One", "Two"]) {
    await rig.chat("hello");
    await rig.type(`/title ${title}`);
    await rig.type("/new now");
  }
  rig.text();
  rig.ctx.lastListed = (await rig.ctx.store.list({ orderByLastActive: true, minMessageCount: 1 })).toSorted((a, b) =>
    String(a.title) < String(b.title) ? -1 : 1,
  );
  await rig.type("/resume 1");
  assert.equal(await rig.ctx.conversation.title(), "One");
});

test("texts reach the agent the way that was asked for", async (t) => {
  const rig = await commandRig(t);
  await rig.type("/queue later");
  await rig.type("/q");
  await rig.type("/steer left");
  assert.equal(rig.text(), "queued: later\nThe queue is empty. /queue <prompt> adds a message.\nsubmitted: left");
  rig.busy = true;
  await rig.type("/steer while it is compressed");
  assert.equal(rig.text(), "queued: while it is compressed", "no turn runs that could carry it, and it is not lost");
  rig.busy = false;
  await rig.type("/stop");
  assert.equal(rig.text(), "Nothing is running.");
});

test("a running turn keeps out what would change it", async (t) => {
  const rig = await commandRig(t);
  rig.busy = true;
  for (const command of ["/model x", "/undo", "/retry", "/branch", "/resume x", "/clear", "/reload"]) {
    await rig.type(command);
    assert.match(rig.text(), /cannot run during a turn/, command);
  }
  for (const command of ["/status", "/help", "/usage", "/title", "/verbose", "/busy", "/profile", "/version"]) {
    await rig.type(command);
    assert.doesNotMatch(rig.text(), /has to wait/, command);
  }
});

test("a running turn is interrupted after the yes, and by nothing else", async (t) => {
  const rig = await commandRig(t);
  await rig.chat("hello");
  rig.busy = true;
  for (const command of ["/new", "/reset Other", "/quit --delete"]) {
    await rig.type(command);
    assert.match(rig.text(), /^asked: .*\nNothing changed\.$/, command);
  }
  await rig.type("/quit soon");
  assert.equal(rig.text(), 'warning: /quit only takes --delete, not "soon".');
  assert.equal(rig.busy, true, "the work went on");
  rig.answers.push("once");
  await rig.type("/quit --delete");
  assert.equal(rig.text(), "asked: Delete this conversation and quit?\ninterrupted\nquit and delete");
  rig.busy = true;
  await rig.type("/quit");
  assert.equal(rig.text(), "interrupted\nquit");
  rig.busy = true;
  rig.answers.push("once");
  await rig.type("/new");
  assert.equal(rig.text(), "asked: Start a new conversation?\ninterrupted\nswitched to new");
  rig.busy = true;
  await rig.type("/new");
  assert.match(rig.text(), /^asked/, "a first turn that runs is work too");
  await rig.type("/new now");
  assert.equal(rig.text(), "interrupted\nswitched to new");
});

test("a turn that begins while a question is open keeps out what would change it", async (t) => {
  const rig = await commandRig(t);
  await rig.chat("hello");
  const { confirm } = rig.ctx;
  rig.ctx.confirm = async (title, detail) => {
    rig.busy = true;
    return confirm(title, detail);
  };
  rig.answers.push("once");
  await rig.type("/clear");
  assert.match(rig.text(), /^asked: Clear the screen.*\nwarning: \/clear cannot run during/);
});

test("settings are shown and changed", async (t) => {
  const rig = await commandRig(t);
  const display = () => rig.ctx.home.config().display;
  await rig.type("/verbose");
  await rig.type("/verbose new");
  assert.equal(rig.text(), "Tool feed: verbose\nTool feed: new");
  await rig.type("/busy steer");
  assert.equal(display().busy_input_mode, "steer");
  await rig.type("/busy sideways");
  assert.match(rig.text(), /takes interrupt, queue, steer, not "sideways"/);
  await rig.type("/reasoning show");
  assert.equal(display().show_reasoning, true);
  await rig.type("/reasoning high");
  assert.deepEqual(rig.ctx.conversation.agent.model.reasoning, { enabled: true, effort: "high" });
  rig.text();
  await rig.type("/reasoning");
  assert.equal(rig.text(), "Reasoning: high; shown.");
  await rig.type("/yolo");
  assert.equal(rig.ctx.conversation.yolo, true);
  rig.text();
  await rig.type("/approvals");
  await rig.type("/approvals sometimes");
  assert.match(rig.text(), /^Approvals: manual: Hermes asks you .*\n.*takes manual, smart or off, not "sometimes"/);
  await rig.type("/approvals smart");
  assert.equal(rig.ctx.home.config().approvals.mode, "smart");
  assert.match(rig.text(), /^Approvals: smart: .* Saved as approvals\.mode\.$/);
  await rig.type("/config");
  assert.match(rig.text(), /config\.yaml[\s\S]*busy_input_mode: steer/);
});

test("a model that cannot be had leaves the old one", async (t) => {
  const rig = await commandRig(t);
  await rig.type("/model x --provider nowhere");
  assert.match(rig.text(), /warning: .*Still using demo/s);
  await rig.type("/model gpt-5");
  assert.match(
    rig.text(),
    /warning: The model gpt-5 cannot be used: no model provider is configured.*Still using demo/s,
  );
  await rig.type("/model demo");
  assert.match(rig.text(), /^Now using demo \(demo\), /);
});

test("a provider before the model's name is the provider's, never part of the name; a tag is", async (t) => {
  const [first, second] = [await ModelServer.start(), await ModelServer.start()];
  t.after(() => Promise.all([first.close(), second.close()]));
  first.models = ["my-model", "qwen:0.5b", "other"];
  second.models = ["big", "small", "vendor/big"];
  const box = `providers:\n  box: {base_url: "${second.url}", api_key: box-key-1234567890}\n`;
  const rig = await commandRig(t, { "config.yaml": modelConfig(first) + box });
  const address = new URL(first.url).host;
  const cases: [typed: string, model: string, place: string, baseUrl: string][] = [
    ["local:my-model", "my-model", address, first.url],
    ["qwen:0.5b", "qwen:0.5b", address, first.url],
    ["box:big", "big", "box", second.url],
    ["local:small", "small", "box", second.url],
    ["custom:other", "other", address, first.url],
    ["custom:box:vendor/big", "vendor/big", "box", second.url],
  ];
  for (const [typed, model, place, baseUrl] of cases) {
    await rig.type(`/model ${typed}`);
    assert.ok(rig.text().startsWith(`Now using ${model} (${place}), `), typed);
    assert.equal(rig.ctx.conversation.target.baseUrl, baseUrl, typed);
  }
  await rig.type("/model openrouter:x");
  assert.match(rig.text(), /No API key for provider openrouter.*Still using vendor\/big/s);
  second.otherwise(() => ({ text: "Big answered." }));
  await rig.chat("hello");
  assert.equal(second.requests.at(-1)?.body.model, "vendor/big");
  assert.equal(first.requests.length, 0);
});

test("toolsets are listed and switched for the next conversation", async (t) => {
  const rig = await commandRig(t);
  await rig.type("/tools");
  assert.match(rig.text(), /tools in this conversation[\s\S]*terminal {2,}process, terminal/);
  await rig.type("/tools disable todo");
  assert.match(rig.text(), /todo disabled\. .*\/new/);
  await rig.type("/toolsets");
  assert.match(rig.text(), /✗ todo/);
  await rig.type("/tools enable nothing-like-this");
  assert.match(rig.text(), /Unknown toolset/);
  await rig.type("/tools frobnicate");
  assert.match(rig.text(), /takes list, switch, enable or disable/);
  rig.picks.push("todo", "terminal", "todo", null);
  await rig.type("/tools switch");
  assert.match(rig.text(), /✗ todo[\s\S]*✓ todo[\s\S]*\ntodo off, terminal off\. .*\/new/);
  await rig.type("/toolsets");
  assert.match(rig.text(), /✗ terminal[\s\S]*✗ todo/);
});

test("the conversation is shown, saved, copied and summed up", async (t) => {
  const rig = await commandRig(t);
  for (const command of ["/history", "/save", "/copy", "/usage"]) await rig.type(command);
  assert.equal(rig.text(), "No messages yet.\nNo messages yet.\nNo answer to copy yet.\nNo requests sent yet.");
  const answer = await rig.chat("list the files here");
  await rig.type("/history");
  assert.match(rig.text(), /^1\. You: list the files here\n/);
  await rig.type("/copy");
  assert.equal(rig.text(), `copied: ${answer}\nCopied ${[...answer].length} characters somehow.`);
  await rig.type("/status");
  assert.match(
    rig.text(),
    /Session recap — [\s\S]*Recent: 1 user turn\(s\)[\s\S]*Tools used: terminal×1[\s\S]*Last ask: list the files/,
  );
  await rig.type("/usage");
  assert.match(rig.text(), /API calls: +2[\s\S]*main +2/);
  await rig.type("/save");
  const folder = join(rig.ctx.home.paths.sessionsDir, "saved");
  const [file] = await readdir(folder);
  const saved = JSON.parse(await readFile(join(folder, file ?? ""), "utf8"));
  assert.equal(saved.messages[0].content, "list the files here");
  assert.deepEqual(Object.keys(saved), ["model", "session_id", "session_start", "messages"]);
});

test("the user's own commands run, stand for others, and never hide a built-in one", async (t) => {
  const rig = await commandRig(t, { "config.yaml": QUICK });
  const cases: [string, RegExp][] = [
    ["/greet", /^hello 2$/],
    ["/fail", /^oops$/],
    ["/fresh", /^switched to new$/],
    ["/loop", /is an alias of itself/],
    ["/ask this", /^queued: what about this$/],
    ["/broken", /quick_commands\.broken in config\.yaml needs/],
    ["/help", /^the help\n\n\d+ skill commands\n/],
    ["/gre", /^hello 2$/],
  ];
  for (const [typed, expected] of cases) {
    await rig.type(typed);
    assert.match(rig.text(), expected, typed);
  }
});

test("what is no command goes to the model; what looks like one does not", async (t) => {
  const rig = await commandRig(t);
  for (const text of ["hello", "/usr/bin/env is what?", "//x", "say /help"])
    assert.equal(await rig.type(text), false, text);
  assert.equal(await rig.type("/hlep"), true);
  assert.match(rig.text(), /Unknown command \/hlep\. Did you mean \/help/);
  assert.equal(await rig.type("/re"), true);
  assert.match(rig.text(), /\/re could be \/reset, \/retry/);
});

test("leaving can delete the conversation, after a question", async (t) => {
  const rig = await commandRig(t);
  await rig.chat("hello");
  await rig.type("/quit --delete");
  assert.match(rig.text(), /asked: Delete this conversation and quit\?\nNothing changed\./);
  await rig.type("/quit --delete --yes");
  await rig.type("/exit");
  await rig.type("/quit soon");
  assert.match(rig.text(), /^quit and delete\nquit\nwarning: \/quit only takes --delete/);
});

test("a skill's name is a command: what was typed is kept, the model gets the skill", async (t) => {
  const rig = await commandRig(t);
  await rig.type("/plan a new shed");
  const said = rig.text();
  assert.match(said, /^queued as \/plan a new shed: /);
  assert.match(said, /The user invoked the "plan" skill/);
  await rig.type("/skill code-review the last commit");
  assert.match(rig.text(), /^queued as \/code-review the last commit: /);
  await rig.type("/skill nonsense");
  assert.match(rig.text(), /nonsense/);
  await rig.type("/skill");
  assert.match(rig.text(), /needs a name/);
});

test("/details says what is shown of calls and thinking, for all or one of them", async (t) => {
  const rig = await commandRig(t);
  const display = () => rig.ctx.home.config().display;
  await rig.type("/details expanded");
  await rig.type("/details thinking hidden");
  assert.deepEqual([display().details_mode, display().sections.thinking], ["expanded", "hidden"]);
  await rig.type("/details cycle");
  await rig.type("/details thinking reset");
  assert.deepEqual([display().details_mode, display().sections.thinking], ["hidden", "auto"]);
  rig.text();
  await rig.type("/details tools sideways");
  assert.match(rig.text(), /takes hidden, collapsed, expanded or reset/);
  await rig.type("/todo");
  assert.equal(rig.text(), "The task list is shown.");
});

test("/image attaches and sends what follows the path; /paste asks for the clipboard", async (t) => {
  const rig = await commandRig(t);
  for (const line of ["/image pic.png", "/image pic.png what is this?", "/image", "/paste"]) await rig.type(line);
  assert.equal(
    rig.text(),
    [
      "attached: pic.png",
      "attached: pic.png what is this?",
      "submitted: what is this?",
      "warning: /image needs a path: /image pic.png [text]. /paste attaches the clipboard.",
      "pasted",
    ].join("\n"),
  );
});
