import assert from "node:assert/strict";
import test from "node:test";
import { CallFailedError } from "../../web-calls.ts";
import { entry } from "./entry.ts";
import {
  connectFailure,
  RefusedError,
  readChannel,
  readPost,
  readPosts,
  sendFailure,
  typeOf,
  withoutMention,
} from "./posts.ts";

const ID = "abcdefghijklmnopqrstuvwxyz";

for (const [text, expected] of [
  [ID, { chatId: ID }],
  [`${ID}:${ID}`, { chatId: ID, threadId: ID }],
  ["abc", null],
  [ID.toUpperCase(), null],
  ["town-square", null],
] as const)
  test(`the target ${text} is ${expected === null ? "none" : "one"} of Mattermost`, () => {
    assert.deepEqual(entry.parseTarget(text), expected);
  });

for (const [url, problem] of [
  ["https://chat.example.com", null],
  ["http://127.0.0.1:8065", null],
  ["http://mattermost:8065", null],
  ["http://chat.example.com", /only for this machine/],
  ["", /MATTERMOST_URL is not set/],
  ["chat.example.com", /must be an address/],
] as const)
  test(`the address "${url}" is ${problem === null ? "taken" : "refused with a reason"}`, () => {
    const said = entry.check?.((key) => (key === "url" ? url : undefined)) ?? null;
    if (problem === null) assert.equal(said, null);
    else assert.match(said ?? "", problem);
  });

for (const [text, rest] of [
  ["@hermes hi", "hi"],
  ["hi @Hermes.", "hi ."],
  ["hi (@hermes), there", "hi (), there"],
  ["@hermes", ""],
  ["@hermes-two hi", null],
  ["@hermes.two hi", null],
  ["mail me@hermes", null],
  ["hermes", null],
] as const)
  test(`"${text}" is ${rest === null ? "no" : "a"} mention of hermes`, () =>
    assert.equal(withoutMention(text, "hermes"), rest));

test("a name may have a dot in it", () => {
  assert.equal(withoutMention("@h.bot. hi", "h.bot"), ". hi");
  assert.equal(withoutMention("@hxbot hi", "h.bot"), null);
});

test("a post is read from an event, where it is JSON inside of JSON, and from a list", () => {
  const raw = { id: "p1", channel_id: "c1", user_id: "u1", message: "hi", root_id: "", create_at: 5, props: null };
  const post = readPost(JSON.stringify(raw));
  assert.equal(post?.text, "hi");
  assert.equal(post?.root, undefined);
  assert.equal(post?.isBot, false);
  const later = { ...raw, id: "p2", create_at: 4, props: { from_webhook: "true" }, type: "system_join_channel" };
  const [first, second] = readPosts({ order: ["p1", "p2"], posts: { p1: raw, p2: later } });
  assert.deepEqual([first?.id, first?.isBot, first?.isSystem, second?.id], ["p2", true, true, "p1"]);
  assert.equal(readPost("not json"), null);
  assert.deepEqual(readPosts(null), []);
});

test("a direct chat is told by its letter, and its two people by its name", () => {
  const { type, members } = readChannel({ id: "c", type: "D", name: "u1__u2" });
  assert.deepEqual([type, members], ["dm", ["u1", "u2"]]);
  assert.equal(readChannel({ type: "O" }).type, "channel");
  assert.equal(readChannel({ type: "P" }).type, "group");
  assert.equal(readChannel({ type: "G" }).type, "group");
});

test("a file says what kind of message it came with", () => {
  const file = (mediaType: string) => [{ path: "/x", mediaType, size: 1 }];
  assert.equal(typeOf("", file("image/png")), "photo");
  assert.equal(typeOf("", file("audio/ogg")), "audio");
  assert.equal(typeOf("", file("application/pdf")), "document");
  assert.equal(typeOf("/new", []), "command");
  assert.equal(typeOf("/etc/passwd", []), "text");
});

const refused = (status: number, id = "", headers = {}) => {
  const reply = { status, headers: new Map(Object.entries<string>(headers)), text: "", json: { id, message: "no" } };
  return new RefusedError(reply, 0);
};
for (const [name, error, failed] of [
  ["a rate limit", refused(429), "rate_limited"],
  ["a thread that is gone", refused(400, "api.post.create_post.root_id.app_error"), "thread_gone"],
  ["a channel without us", refused(403, "api.context.permissions.app_error"), "refused"],
  ["an archived channel", refused(400, "api.post.create_post.can_not_post_to_deleted.error"), "refused"],
  ["a session that ended", refused(401), "unreachable"],
  ["a bad front", refused(502), "unreachable"],
  ["a first try that is still being stored", refused(500, "api.post.deduplicate_create_post.pending"), "unknown"],
  ["no connection", new CallFailedError("unreachable", "x"), "unreachable"],
  ["no answer", new CallFailedError("unknown", "x"), "unknown"],
] as const)
  test(`${name} counts as ${failed}`, () => {
    const outcome = sendFailure(error);
    assert.equal("failed" in outcome && outcome.failed, failed);
  });

test("a rate limit says how long it lasts, in either of two headers", () => {
  for (const headers of [{ "retry-after": "7" }, { "x-ratelimit-reset": "7" }]) {
    const outcome = sendFailure(refused(429, "", headers));
    assert.equal("failed" in outcome && outcome.retryAfter, 7);
  }
});

test("a token that is refused is not tried again; a server that is down is", () => {
  assert.equal(connectFailure(refused(401)).retryable, false);
  assert.match(connectFailure(refused(401)).message, /MATTERMOST_TOKEN/);
  assert.match(connectFailure(refused(404)).message, /MATTERMOST_URL/);
  assert.equal(connectFailure(new CallFailedError("unreachable", "x")).retryable, true);
});
