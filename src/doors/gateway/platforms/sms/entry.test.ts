import assert from "node:assert/strict";
import { test } from "node:test";
import { entry } from "./entry.ts";

const option = (values: Readonly<Record<string, string>>) => (key: string, variable?: string) =>
  values[variable ?? ""] ?? values[key];

const set = {
  TWILIO_ACCOUNT_SID: "AC1",
  TWILIO_AUTH_TOKEN: "t",
  TWILIO_PHONE_NUMBER: "+15550001111",
  SMS_WEBHOOK_URL: "https://example.com/sms",
};

test("it is set up by account, token and number, and told apart without the token", () => {
  assert.equal(entry.identity(option(set)), "AC1:+15550001111");
  for (const name of ["TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_PHONE_NUMBER"])
    assert.equal(entry.identity(option({ ...set, [name]: "" })), null, name);
});

const problems: readonly (readonly [string, Record<string, string>, RegExp | null])[] = [
  ["everything", {}, null],
  ["no public address", { SMS_WEBHOOK_URL: "" }, /SMS_WEBHOOK_URL is not set/],
  ["an address that is none", { SMS_WEBHOOK_URL: "example.com/sms" }, /must be an address/],
  ["another scheme", { SMS_WEBHOOK_URL: "ftp://example.com" }, /must be an address/],
  ["Twilio without TLS", { TWILIO_API_URL: "http://api.example.com" }, /TWILIO_API_URL must be/],
  ["Twilio on loopback", { TWILIO_API_URL: "http://127.0.0.1:1" }, null],
];

for (const [name, change, problem] of problems)
  test(`${name}: ${problem ? "refused" : "accepted"}`, () => {
    const found = entry.check?.(option({ ...set, ...change })) ?? null;
    if (problem === null) assert.equal(found, null);
    else assert.match(found ?? "", problem);
  });

const targets: readonly (readonly [string, string | null])[] = [
  ["+15551234567", "+15551234567"],
  ["1 (555) 123-4567", "+15551234567"],
  ["123456", null],
  ["+1234567890123456", null],
  ["mona", null],
];

for (const [text, chatId] of targets)
  test(`the target ${text} is ${chatId ?? "no number"}`, () => {
    assert.equal(entry.parseTarget(text)?.chatId ?? null, chatId);
  });
