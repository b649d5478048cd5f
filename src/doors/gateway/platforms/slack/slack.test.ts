import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { judgeCall } from "../../../../../test/support/platforms/slack-rules.ts";
import { CallFailedError } from "../../web-calls.ts";
import { SlackError } from "./client.ts";
import { entry } from "./entry.ts";
import { mentions, readChange, readCommand, readMessage, readPress, toPlainText, typeOf } from "./inbound.ts";
import { ReadUpTo } from "./missed.ts";
import { choiceOf, questionBlocks, slackCommands } from "./questions.ts";
import { connectFailure, sendFailure } from "./web.ts";

const options = (set: Readonly<Record<string, unknown>>) => (key: string) => set[key];
const TOKENS = { token: "xoxb-1", app_token: "xapp-1" };

for (const [text, expected] of [
  ["C0123ABCD", { chatId: "C0123ABCD" }],
  ["G0123ABCDE", { chatId: "G0123ABCDE" }],
  ["D0123ABCD:1700000000.000100", { chatId: "D0123ABCD", threadId: "1700000000.000100" }],
  ["U0123ABCD", { chatId: "U0123ABCD" }],
  ["U0123ABCD:1700000000.000100", null],
  ["C0123", null],
  ["c0123abcd", null],
  ["#general", null],
  ["C0123ABCD:x", null],
] as const)
  test(`the target ${text} is ${expected === null ? "none of Slack" : "one of Slack"}`, () => {
    assert.deepEqual(entry.parseTarget(text), expected);
  });

for (const [name, set, problem] of [
  ["both tokens", TOKENS, null],
  ["no app token", { token: "xoxb-1" }, /SLACK_APP_TOKEN is not set/],
  ["tokens in each other's place", { token: "xapp-1", app_token: "xoxb-1" }, /SLACK_BOT_TOKEN is not a bot token/],
  ["two bot tokens as app token", { token: "xoxb-1", app_token: "xoxb-1" }, /SLACK_APP_TOKEN is not an app-level/],
  ["several workspaces", { ...TOKENS, token: "xoxb-1, xoxb-2" }, null],
  ["http on loopback", { ...TOKENS, api_url: "http://127.0.0.1:9/api/" }, null],
  ["http in a private network", { ...TOKENS, api_url: "http://172.20.1.2/api/" }, null],
  ["http in the open", { ...TOKENS, api_url: "http://slack.example.com/api/" }, /only for this machine/],
  ["http to what only looks private", { ...TOKENS, api_url: "http://10.evil.example/" }, /only for this machine/],
  ["no address", { ...TOKENS, api_url: "slack" }, /SLACK_API_URL must be an address/],
] as const)
  test(`the check of the settings with ${name} ${problem === null ? "passes" : "says what is wrong"}`, () => {
    const said = entry.check?.(options(set)) ?? null;
    if (problem === null) assert.equal(said, null);
    else assert.match(said ?? "", problem);
  });

for (const [raw, plain] of [
  ["<@UBOT> hi", "hi"],
  ["hi <@U1> and <@U2>", "hi @Ann and @U2"],
  ["<#C1|general> <#C2> <#C3|>", "#general #dev #C3"],
  ["<!here> <!channel> <!subteam^S1|@team>", "@here @channel @team"],
  ["<https://a.b/c?d=1&amp;e=2>", "https://a.b/c?d=1&e=2"],
  ["<https://a.b|a.b> <https://a.b|the page>", "a.b (https://a.b) the page (https://a.b)"],
  ["<mailto:a@b.c|a@b.c>", "a@b.c"],
  ["1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"],
  ["&lt;@UBOT&gt;", "<@UBOT>"],
  ["<!date^1|tomorrow>", "tomorrow"],
] as const)
  test(`"${raw}" is read as "${plain}"`, () => {
    const names = new Map([
      ["U1", "Ann"],
      ["C2", "dev"],
    ]);
    assert.equal(toPlainText(raw, "UBOT", names), plain);
  });

test("only our own id is a mention of us", () => {
  assert.equal(mentions("<@UBOT> x", "UBOT"), true);
  assert.equal(mentions("<@UBOT|hermes> x", "UBOT"), true);
  assert.equal(mentions("<@UBOTTLE> x", "UBOT"), false);
  assert.equal(mentions("x", undefined), false);
});

test("what happened in a channel is no message; what somebody wrote is one", () => {
  const base = { channel: "C1", ts: "1.1", user: "U1", text: "x" };
  for (const subtype of ["channel_join", "channel_topic", "message_changed", "pinned_item", "huddle_thread"])
    assert.equal(readMessage({ ...base, subtype }), null, subtype);
  for (const subtype of [undefined, "file_share", "thread_broadcast", "me_message"])
    assert.equal(readMessage({ ...base, subtype })?.text, "x", String(subtype));
  assert.equal(readMessage({}), null);
  assert.equal(readMessage(null), null);
});

test("what others said is kept apart from who passed it on", () => {
  const shared = { is_share: true, author_name: "Bob", text: "look" };
  const read = readMessage({ channel: "C1", ts: "1.1", text: "this", attachments: [shared, { title: "a preview" }] });
  assert.deepEqual([read?.text, read?.shared], ["this", ["Bob: look"]]);
});

test("a preview below a link changes nothing; other words, a deletion and a stone in a thread do", () => {
  const event = (message: object, previous: object) => ({
    ...{ subtype: "message_changed", channel: "C1", message: { ts: "1.1", user: "U1", ...message } },
    previous_message: { ts: "1.1", ...previous },
  });
  assert.equal(readChange(event({ text: "a", attachments: [{ title: "t" }] }, { text: "a" })), null);
  const edited = readChange(event({ text: "b" }, { text: "a" }));
  assert.equal(edited?.type === "edited" && edited.message.text, "b");
  const gone = { type: "deleted", channel: "C1", ts: "1.1" };
  assert.deepEqual(readChange(event({ subtype: "tombstone" }, { text: "a" })), gone);
  assert.deepEqual(readChange({ subtype: "message_deleted", channel: "C1", deleted_ts: "1.1" }), gone);
});

for (const [command, text, expected] of [
  ["/hermes", "model gpt-5", "/model gpt-5"],
  ["/hermes", "/model", "/model"],
  ["/hermes", "  ", "/help"],
  ["/new", "now", "/new now"],
  ["/new", "", "/new"],
  ["/hermes", "queue a &lt; b", "/queue a < b"],
] as const)
  test(`${command} with "${text}" is ${expected}`, () => {
    const read = readCommand({ command, text, channel_id: "C1", user_id: "U1", trigger_id: "1.2" });
    assert.equal(read?.text, expected);
  });

test("a file says what kind of message it came with", () => {
  const file = (mediaType: string) => [{ path: "/x", mediaType, size: 1 }];
  assert.equal(typeOf("", file("image/png"), false), "photo");
  assert.equal(typeOf("", file("audio/mp4"), true), "voice");
  assert.equal(typeOf("", file("video/mp4"), true), "voice");
  assert.equal(typeOf("", file("audio/mpeg"), false), "audio");
  assert.equal(typeOf("", file("application/pdf"), false), "document");
  assert.equal(typeOf("/new", [], false), "command");
  assert.equal(typeOf("/etc/passwd", [], false), "text");
});

test("buttons carry the names that apps of Slack know", () => {
  const ids = (...choices: readonly string[]) =>
    questionBlocks("?", { id: "q", buttons: choices.map((choice) => ({ label: choice, choice })) }).flatMap((block) =>
      block.type === "actions" ? block.elements.map((one) => one.action_id) : [],
    );
  const approval = ["hermes_approve_once", "hermes_approve_session", "hermes_approve_always", "hermes_deny"];
  assert.deepEqual(ids("once", "session", "always", "deny"), approval);
  assert.deepEqual(ids("once", "always", "cancel"), [
    "hermes_confirm_once",
    "hermes_confirm_always",
    "hermes_confirm_cancel",
  ]);
  assert.deepEqual(ids("0", "1"), ["hermes_choice_0", "hermes_choice_1"]);
});

test("for every question the blocks are ones that Slack takes, and a press gives the choice back", () => {
  const button = fc.record({
    label: fc.string({ minLength: 1, maxLength: 200 }),
    choice: fc.string({ maxLength: 20 }),
  });
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, maxLength: 9000 }),
      fc.array(button, { minLength: 1, maxLength: 60 }),
      (text, some) => {
        const buttons = some.filter(({ choice }, at) => some.findIndex((one) => one.choice === choice) === at);
        const blocks = questionBlocks(text, { id: "q1", buttons });
        const args = { channel: "C1", text: "x", blocks: JSON.stringify(blocks) };
        assert.equal(judgeCall("chat.postMessage", args), null);
        const elements = blocks.flatMap((block) => (block.type === "actions" ? block.elements : []));
        for (const [at, one] of elements.entries())
          assert.deepEqual(choiceOf(one.action_id, one.value), { id: "q1", choice: buttons[at]?.choice });
      },
    ),
    { numRuns: 50 },
  );
});

test("a button of somebody else is none of ours", () => {
  assert.equal(choiceOf("other_app", '["q","once"]'), null);
  assert.equal(choiceOf("hermes_deny", "not json"), null);
  assert.equal(choiceOf("hermes_deny", "{}"), null);
  assert.equal(readPress({ type: "view_submission" }), null);
});

test("the menu begins with /hermes, leaves Slack its own words and ends at 50", () => {
  const names = [
    "new",
    "status",
    "search",
    "topic",
    "new",
    "My Skill",
    "model",
    ...Array.from({ length: 80 }, (_, at) => `c${at}`),
  ];
  const menu = slackCommands(names.map((name) => ({ name, description: `does ${name}` })));
  assert.deepEqual(
    menu.slice(0, 4).map(({ command }) => command),
    ["/hermes", "/new", "/model", "/c0"],
  );
  assert.equal(menu.length, 50);
  assert.deepEqual(slackCommands([{ name: "hermes", description: "x" }]).length, 1);
});

const platform = (error: string) => new SlackError(200, error);
const network = (code: string, kind: CallFailedError["kind"]) =>
  new CallFailedError(kind, "slack.com", Object.assign(new Error("x"), { code }));
for (const [name, error, failed] of [
  ["a rate limit", new SlackError(429, null, 7), "rate_limited"],
  ["a rate limit in words", platform("ratelimited"), "rate_limited"],
  ["no channel", platform("channel_not_found"), "refused"],
  ["an archived channel", platform("is_archived"), "refused"],
  ["a channel without us", platform("not_in_channel"), "refused"],
  ["a thread that is gone", platform("thread_not_found"), "thread_gone"],
  ["blocks that are refused", platform("invalid_blocks"), "format"],
  ["a text that is too long", platform("msg_too_long"), "format"],
  ["a token that was revoked", platform("token_revoked"), "unreachable"],
  ["an error inside Slack", platform("internal_error"), "unknown"],
  ["a page of a proxy", new SlackError(200, null), "unknown"],
  ["a name nobody knows", platform("some_new_refusal"), "refused"],
  ["a bad front", new SlackError(502, null), "unreachable"],
  ["a front that waited in vain", new SlackError(504, null), "unknown"],
  ["no connection", network("ECONNREFUSED", "unreachable"), "unreachable"],
  ["a connection that broke", network("ECONNRESET", "unknown"), "unknown"],
  ["a fault of our own", new TypeError("x"), "unknown"],
] as const)
  test(`${name} counts as ${failed}`, () => {
    const outcome = sendFailure(error);
    assert.equal("failed" in outcome && outcome.failed, failed);
  });

test("a rate limit says how long it lasts", () => {
  const outcome = sendFailure(new SlackError(429, null, 7));
  assert.equal("failed" in outcome && outcome.retryAfter, 7);
});

test("a token that is refused is not tried again; a network that is down is", () => {
  assert.equal(connectFailure(platform("invalid_auth"), "SLACK_APP_TOKEN").retryable, false);
  assert.match(connectFailure(platform("invalid_auth"), "SLACK_APP_TOKEN").message, /SLACK_APP_TOKEN/);
  assert.equal(connectFailure(network("ECONNREFUSED", "unreachable"), "x").retryable, true);
});

test("the reading stands before what is not stored yet, and ends at the newest", () => {
  const upTo = new ReadUpTo("1700000000.000100");
  upTo.begin("a", "1700000001.000000");
  upTo.begin("b", "1700000002.000000");
  assert.equal(upTo.with("b", "1700000002.000000"), "1700000000.999999");
  upTo.done("b", "1700000002.000000");
  assert.equal(upTo.moment, "1700000000.999999");
  assert.equal(upTo.with("a", "1700000001.000000"), "1700000002.000000");
  upTo.done("a", "1700000001.000000");
  assert.equal(upTo.moment, "1700000002.000000");
});

test("for every order of storing, nothing that is not stored lies before the reading", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 20 }), (steps) => {
      const upTo = new ReadUpTo("1700000000.000000");
      const open = new Map<string, string>();
      for (const [at, step] of steps.entries()) {
        const ts = `17000000${String(step).padStart(2, "0")}.000000`;
        const [first] = open;
        if (step % 3 === 0 && first) {
          const [id, reached] = [first[0], upTo.with(...first)];
          for (const [other, otherTs] of open) assert.ok(other === id || reached < otherTs);
          upTo.done(...first);
          open.delete(id);
        } else {
          upTo.begin(`m${at}`, ts);
          open.set(`m${at}`, ts);
        }
        for (const pending of open.values()) assert.ok(upTo.moment < pending);
      }
    }),
  );
});
