import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { isSigned } from "./adapter.ts";

// The example of Twilio's own documentation: address, fields and token with the signature that belongs to them.
const url = "https://mycompany.com/myapp.php?foo=1&bar=2";
const fields = {
  CallSid: "CA1234567890ABCDE",
  Caller: "+14158675309",
  Digits: "1234",
  From: "+14158675309",
  To: "+18005551212",
};
const token = "12345";
const signature = "RSOYDt4T1cUTdK1PDd93/VVr8B8=";

test("the example of Twilio's documentation is signed", () => {
  assert.equal(isSigned(url, new URLSearchParams(fields), signature, token), true);
});

test("fields are sorted, in whatever order they come", () => {
  const reversed = new URLSearchParams(Object.entries(fields).reverse());
  assert.equal(isSigned(url, reversed, signature, token), true);
});

const wrong: readonly (readonly [string, string, Record<string, string>, string, string])[] = [
  ["another field", url, { ...fields, Digits: "1235" }, signature, token],
  ["one field more", url, { ...fields, Extra: "" }, signature, token],
  ["another address", "https://mycompany.com/other.php", fields, signature, token],
  ["another token", url, fields, signature, "12346"],
  ["an empty signature", url, fields, "", token],
  ["a short signature", url, fields, "RSOYDt4T", token],
  ["no base64", url, fields, "!!!", token],
];

for (const [name, address, form, given, secret] of wrong)
  test(`${name} is not signed`, () => {
    assert.equal(isSigned(address, new URLSearchParams(form), given, secret), false);
  });

test("an address is the same with its port and without", () => {
  const sign = (address: string) => createHmac("sha1", token).update(`${address}A1`).digest("base64");
  const form = new URLSearchParams({ A: "1" });
  assert.ok(isSigned("https://a.example/sms", form, sign("https://a.example:443/sms"), token));
  assert.ok(isSigned("https://a.example:8443/sms", form, sign("https://a.example/sms"), token));
  assert.ok(isSigned("https://a.example", form, sign("https://a.example"), token));
});

test("any fields that were signed are accepted, any change of them is not", () => {
  const form = fc.dictionary(fc.string({ minLength: 1 }), fc.string(), { maxKeys: 8 });
  fc.assert(
    fc.property(form, fc.string(), (values, extra) => {
      const sorted = Object.keys(values).sort();
      const text = `https://a.example/x${sorted.map((name) => name + values[name]).join("")}`;
      const given = createHmac("sha1", token).update(text).digest("base64");
      assert.ok(isSigned("https://a.example/x", new URLSearchParams(values), given, token));
      const changed = { ...values, Body: `${values.Body ?? ""}${extra}!` };
      assert.ok(!isSigned("https://a.example/x", new URLSearchParams(changed), given, token));
    }),
  );
});
