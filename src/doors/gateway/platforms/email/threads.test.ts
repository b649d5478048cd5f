import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { messageIdFor, messageIdsIn, placeOf, replySubject, subjectFrom } from "./threads.ts";

const us = "bot@example.com";

test("every mail of a thread has the id of its first one", () => {
  const first = placeOf("<1@x>", [], us);
  const ours = messageIdFor("key#0", us, first.threadId);
  assert.equal(first.answersUs, false);
  assert.match(first.threadId ?? "", /^[0-9a-f]{20}$/);
  for (const references of [["<1@x>", ours], [ours], ["<0@elsewhere>", ours], ["<1@x>", ours, "<2@x>"]])
    assert.deepEqual(placeOf("<9@x>", references, us), { answersUs: true, threadId: first.threadId });
  assert.deepEqual(placeOf("<9@x>", ["<1@x>"], us), first);
});

test("an answer to a mail without a thread belongs to the chat itself", () => {
  const ours = messageIdFor("job#0", us, undefined);
  assert.deepEqual(placeOf("<9@x>", [ours], us), { answersUs: true });
  assert.equal(placeOf("<9@x>", [ours], "bot@other.example").answersUs, false);
});

test("an id is the same for a repeat, another for everything else, and always well-formed", () => {
  assert.equal(messageIdFor("a", us, undefined), messageIdFor("a", us, undefined));
  assert.notEqual(messageIdFor("a", us, undefined), messageIdFor("b", us, undefined));
  assert.notEqual(messageIdFor("a", us, undefined), messageIdFor("a", "x@example.com", undefined));
  fc.assert(
    fc.property(fc.string(), fc.option(fc.string(), { nil: undefined }), (key, thread) => {
      const id = messageIdFor(key, us, thread);
      assert.deepEqual(messageIdsIn(id), [id]);
    }),
  );
});

test("an answer has one mark of an answer", () => {
  for (const subject of ["Plan", "Re: Plan", "RE: AW: Re[2]: Plan", "Re:Plan", "回复：Plan"])
    assert.equal(replySubject(subject), "Re: Plan", subject);
  assert.equal(replySubject("Fwd: Plan"), "Re: Fwd: Plan");
  assert.equal(replySubject("Regarding: it"), "Re: Regarding: it");
});

test("a mail that answers none is named by its first words", () => {
  assert.equal(subjectFrom("# The **weather**\n\nSunny."), "The weather");
  assert.equal(subjectFrom("---\n\n- `x` is done"), "x is done");
  assert.equal(subjectFrom(""), "Message");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const subject = subjectFrom(text);
      assert.ok(subject !== "" && [...subject].length <= 70 && !/[\r\n]/.test(subject), subject);
    }),
  );
});
