import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { classifyApiError, type FailureReason } from "../../llm/errors/classify.ts";
import { explainError } from "../../llm/errors/explain.ts";
import { createRedactor } from "../../safety/redact.ts";
import { composeAnswer, footerLine, isSilence, masked, mayBecomeSilence, plainFailure, splitFor } from "./answer.ts";
import type { PlatformEntry, ReceivedFile } from "./contract.ts";
import { type Payload, textOf } from "./delivery.ts";
import { GatewaySettings } from "./settings.ts";
import { splitMessage } from "./split.ts";

const entry: PlatformEntry = {
  ...{ name: "pigeon", label: "Pigeon", maxLength: 500, lengthUnit: "utf16", variables: [], guide: "", options: [] },
  ...{ repeatIsSafe: false, canEdit: true, sendsAlone: false },
  identity: () => "token",
  parseTarget: () => null,
  open: () => Promise.reject(new Error("not opened here")),
};

async function world(t: TestContext, config = "") {
  const temp = await tempHome(config === "" ? {} : { "config.yaml": config });
  const redactorFor = createRedactor;
  const env = { HERMES_HOME: temp.dir };
  const home = await openHome({ argv: [], env, osHome: temp.osHome, cwd: temp.project, redactorFor });
  const settings = await GatewaySettings.open(home);
  t.after(async () => {
    await home.close();
    await temp[Symbol.asyncDispose]();
  });
  const compose = (text: string, more: Partial<Parameters<typeof composeAnswer>[1]> = {}) =>
    composeAnswer(text, { home, settings, entry, origin: "chat", ...more });
  const file = async (...parts: string[]) => {
    const path = join(temp.osHome, ...parts);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, "x");
    return path;
  };
  return { temp, home, compose, file };
}

const textsOf = (payloads: readonly Payload[]) =>
  payloads.flatMap((payload) => ("text" in payload ? [payload.text] : []));
const filesOf = (payloads: readonly Payload[]) =>
  payloads.flatMap((payload) => (payload.type === "file" ? [payload.file] : []));

// [reply, silent in a chat, silent where nobody asked]
const SILENCES: readonly (readonly [string, boolean, boolean])[] = [
  ["[SILENT]", true, true],
  ["silent", true, true],
  ["  **NO_REPLY**\n", true, true],
  ["`no reply`.", true, true],
  ["(NO_REPLY)", true, true],
  ["...", false, false],
  ["", false, false],
  ["SILENT night", false, false],
  ["I will stay SILENT", false, false],
  ["NO_REPLY is a marker", false, false],
  ["[SILENT] nothing new today", false, true],
  ["Checked all.\nNO_REPLY", false, true],
  ["SILENT\nno news", false, true],
  ["a\nSILENT\nb", false, false],
  [`[SILENT]${"!".repeat(60)}`, false, true],
  ["NOREPLY", false, false],
  ["no  reply", false, false],
];

test("a reply is silence only when it says so and nothing else", () => {
  for (const [text, chat, unattended] of SILENCES)
    assert.deepEqual([isSilence(text, "chat"), isSilence(text, "unattended")], [chat, unattended], text);
});

test("nothing of a reply that becomes silence may be shown before", () => {
  for (const [text, chat] of SILENCES)
    if (chat)
      for (let end = 0; end <= text.length; end++) assert.ok(mayBecomeSilence(text.slice(0, end)), text.slice(0, end));
  assert.equal(mayBecomeSilence("Silently"), false);
  assert.equal(mayBecomeSilence("No, r"), false);
});

test("silence sends nothing and takes away what was streamed; a failure is never silent", async (t) => {
  const { compose } = await world(t);
  assert.deepEqual(await compose("NO_REPLY", { streamed: ["m1"] }), { payloads: [], notes: [], unused: ["m1"] });
  assert.deepEqual(textsOf((await compose("SILENT", { failed: true })).payloads), ["SILENT"]);
});

const AUTH = /refused the key/;
const POLICY = /because of its rules/;
const RATE = /limiting requests/;
const OTHER = /error at the provider/;
const SETTINGS = /check its settings/;

// [text, what is said instead; null: it stays]
const ERRORS: readonly (readonly [string, RegExp | null])[] = [
  ["API call failed: 401 Unauthorized", AUTH],
  ["⚠️ API failed after 3 tries: connection reset", OTHER],
  ["❌ Provider authentication failed: key expired", AUTH],
  ["Non-retryable error (HTTP 400): content policy violation", POLICY],
  ["Rate limited after 3 retries: HTTP 429", RATE],
  ["⏱️ Rate limited after 12 retries", RATE],
  ["Error code: 500 - {'error': 'x'}", OTHER],
  ["error code: 403", AUTH],
  ["HTTP 401: bad key", AUTH],
  ["HTTP 429 rate limit exceeded", RATE],
  ["HTTP 503 Service Unavailable", OTHER],
  ["Incorrect API key provided: sk-...", AUTH],
  ["** Invalid API key", AUTH],
  ["HTTP 404 means that a page is missing.", null],
  ["HTTP 500 errors come from the server.", null],
  ["The server answered with HTTP 401, so check the key.", null],
  ["Your API call failed because the body was empty.", null],
  ["Rate limited after a while, it went on.", null],
  [`API call failed: ${"x".repeat(400)}`, null],
  ["API call failed:\n1\n2\n3\n4\n5", null],
  ["HTTPS is safer.", null],
];

test("a provider's bare error becomes a plain sentence of its kind; an answer that mentions one does not", () => {
  for (const [text, said] of ERRORS) {
    if (said === null) assert.equal(plainFailure(text), text);
    else assert.match(plainFailure(text), said, text);
  }
});

const REASONS: Readonly<Record<FailureReason, RegExp>> = {
  ...{ auth: AUTH, key_host_mismatch: AUTH, content_policy_blocked: POLICY },
  ...{ rate_limit: RATE, upstream_rate_limit: RATE, overloaded: RATE },
  ...{ billing: /no credit left/, budget_exceeded: /spending limit/, image_too_large: /smaller one/ },
  ...{ context_overflow: /too long/, long_context_tier: /too long/, payload_too_large: /too long/ },
  ...{ model_not_found: SETTINGS, provider_policy_blocked: SETTINGS, oauth_long_context_beta_forbidden: SETTINGS },
  ...{ llama_cpp_grammar_pattern: SETTINGS, multimodal_tool_content_unsupported: SETTINGS },
  ...{ ssl_cert_verification: SETTINGS, format_error: SETTINGS },
  ...{
    thinking_signature: OTHER,
    invalid_encrypted_content: OTHER,
    server_error: OTHER,
    timeout: OTHER,
    unknown: OTHER,
  },
};

test("a chat reads of every kind of failure without keys, hosts, files and what the server wrote", async (t) => {
  const { compose, home } = await world(t);
  const target = { provider: "openrouter", model: "maker/m1", baseUrl: "https://llm.example.org/v1" };
  for (const [reason, said] of Object.entries(REASONS) as [FailureReason, RegExp][]) {
    const classified = { ...classifyApiError({ message: "SERVER SAID see config.yaml" }), reason };
    const { text } = explainError(classified, target);
    const { payloads, notes } = await compose(text, { failed: true, failure: { reason } });
    const [shown = ""] = textsOf(payloads);
    assert.match(shown, said, reason);
    assert.doesNotMatch(shown, /example|openrouter|maker|_KEY|\.env|\.yaml|\.log|SERVER|hermes/i, reason);
    assert.ok(notes[0]?.includes(home.redact(text)), reason);
  }
  const { payloads } = await compose("x", { failed: true, failure: { reason: "format_error", takenBack: true } });
  assert.match(textsOf(payloads)[0] ?? "", /settings\.\nYour message was removed from the conversation/);
});

test("the raw error goes to the log, masked", async (t) => {
  const { compose } = await world(t);
  const { payloads, notes } = await compose("Incorrect API key provided: sk-proj-abcdefghijklmnopqrstuvwxyz123456");
  assert.match(textsOf(payloads)[0] ?? "", AUTH);
  assert.match(notes[0] ?? "", /Incorrect API key provided: sk-pro\.\.\./);
});

test("secrets are masked in what goes out; phone numbers are not secrets", async (t) => {
  const { compose, home } = await world(t);
  const text =
    "key ghp_abcdefghijklmnopqrstuvwxyz0123456789, call +4915112345678, Bearer abc123def456ghi, Bearer authentication";
  const [said = ""] = textsOf((await compose(text)).payloads);
  assert.equal(said, "key ghp_ab...6789, call +4915112345678, Bearer ***, Bearer authentication");
  assert.equal(masked("no secret", home.redact), "no secret");
});

test("what a stream has written gets the first parts, the rest is new, and only the end makes a sound", async (t) => {
  const { compose } = await world(t);
  const text = "Some words that are long enough. ".repeat(40).trim();
  const parts = splitMessage(text, splitFor(entry));
  const { payloads, unused } = await compose(text, { streamed: ["m1", "m2"] });
  assert.ok(parts.length > 2);
  assert.deepEqual(
    payloads,
    parts.map((part, index) => {
      const important = index === parts.length - 1 ? { important: true } : {};
      const shape = index < 2 ? { type: "edit", text: part, messageId: `m${index + 1}` } : { type: "text", text: part };
      return { ...shape, ...important };
    }),
  );
  assert.deepEqual(unused, []);
  assert.deepEqual((await compose("short", { streamed: ["m1", "m2"] })).unused, ["m2"]);
});

test("over the limit of parts the first one goes with the whole text in a file; without files all parts go", async (t) => {
  const { compose } = await world(t, "gateway:\n  max_parts: 3\n");
  const text = Array.from({ length: 60 }, (_, line) => `Line ${line} of a text that is much too long.`).join("\n");
  const { payloads, unused } = await compose(text, { streamed: ["m1", "m2"] });
  assert.deepEqual(
    payloads.map(({ type }) => type),
    ["edit", "file"],
  );
  const [first = ""] = textsOf(payloads);
  assert.ok(first.length <= 500 && first.startsWith("Line 0") && first.endsWith("is in the file below)"), first);
  assert.doesNotMatch(first, /\(1\/\d+\)/);
  const [file] = filesOf(payloads);
  assert.deepEqual([file?.kind, file?.name], ["document", "answer.md"]);
  assert.equal(await readFile(file?.path ?? "", "utf8"), text);
  assert.deepEqual(unused, ["m2"]);
  const all = await compose(text, { sendsFiles: false });
  assert.ok(all.payloads.length > 3 && all.payloads.every(({ type }) => type === "text"));
});

test("files follow the text by their kind, each once; the spoken answer comes before it", async (t) => {
  const { compose, file } = await world(t);
  const [pdf, png, mp3, mp4] = [
    await file("project", "a.pdf"),
    await file("project", "b.png"),
    await file("project", "c.mp3"),
    await file("project", "d.mp4"),
  ];
  const voice = await file("project", "said.ogg");
  const text = `Here:\nMEDIA:${pdf}\nMEDIA:${mp4}\n\nand ${png} too`;
  const { payloads } = await compose(text, { mediaFromTools: [png, pdf], asVoice: voice });
  assert.deepEqual(
    payloads.map((payload) =>
      payload.type === "file" ? `${payload.file.kind} ${payload.file.name}` : textOf(payload),
    ),
    ["voice said.ogg", `Here:\n\nand ${png} too`, "image b.png", "video d.mp4", "document a.pdf"],
  );
  const sound = await compose(`MEDIA:${mp3}\n[[audio_as_voice]]`, { asVoice: voice });
  assert.deepEqual(
    filesOf(sound.payloads).map(({ kind, path }) => [kind, path]),
    [["voice", mp3]],
    "the agent has made a sound of its own",
  );
});

test("a file that may not be sent is named in a word, and the others go", async (t) => {
  const { compose, file, temp } = await world(t);
  const fine = await file("project", "a.png");
  const key = await file(".ssh", "id.txt");
  const { payloads, notes } = await compose(`See\nMEDIA:${key}\nMEDIA:${fine}\nMEDIA:${temp.project}/none.pdf`);
  assert.deepEqual(textsOf(payloads), [
    "See\n(not sent: id.txt: it is in a protected place)\n(not sent: none.pdf: not found)",
  ]);
  assert.deepEqual(
    filesOf(payloads).map(({ path }) => path),
    [fine],
  );
  assert.equal(notes.length, 2);
  const looked = await compose(`I looked at ${key}`);
  assert.deepEqual(
    [looked.payloads.length, textsOf(looked.payloads)],
    [1, [`I looked at ${key}`]],
    "nobody ordered it",
  );
});

test("pictures by address are fetched and leave the text; a link that fails stays", async (t) => {
  const { compose, file } = await world(t);
  const path = await file(".hermes", "cache", "images", "x.png");
  const download = async (url: string): Promise<ReceivedFile> => {
    if (url.includes("gone")) throw new Error("the server answered 404");
    return { path, mediaType: url.includes("page") ? "text/html" : "image/png", size: 1 };
  };
  const text = "A ![a](https://x.org/a.png)\n\n![b](https://x.org/gone.png)\n![c](https://x.org/page.png) end";
  const { payloads, notes } = await compose(text, { download });
  assert.deepEqual(textsOf(payloads), ["A\n\n![b](https://x.org/gone.png)\n![c](https://x.org/page.png) end"]);
  assert.deepEqual(
    filesOf(payloads).map((one) => [one.kind, one.path]),
    [["image", path]],
  );
  assert.match(notes.join(), /404/);
  assert.deepEqual(textsOf((await compose(text)).payloads), [text], "without a way to fetch them");
});

test("a picture whose address holds a key is not fetched, and the key is masked", async (t) => {
  const { compose } = await world(t);
  const asked: string[] = [];
  const download = async (url: string): Promise<ReceivedFile> => {
    asked.push(url);
    throw new Error("the server answered 404");
  };
  const key = `sk-${"ab1".repeat(12)}`;
  const { payloads, notes } = await compose(`see ![x](https://x.org/${key}/a.png)`, { download });
  assert.deepEqual(asked, []);
  assert.match(notes.join(), /holds a key or password/);
  assert.ok(!textsOf(payloads).join().includes(key));
});

test("an answer of nothing but files has no text, and an empty one says so", async (t) => {
  const { compose, file } = await world(t);
  const png = await file("project", "a.png");
  assert.deepEqual(
    (await compose(`MEDIA:${png}`)).payloads.map(({ type }) => type),
    ["file"],
  );
  assert.match(textsOf((await compose(" \n")).payloads)[0] ?? "", /gave no answer/);
  assert.deepEqual((await compose("", { origin: "unattended" })).payloads, []);
});

test("reasoning stands above an answer and facts below it, where the settings say so", async (t) => {
  const { compose, temp } = await world(
    t,
    "display:\n  platforms:\n    pigeon: { show_reasoning: true }\n  runtime_footer: { enabled: true, fields: [model, cwd, nonsense, context_pct] }\n",
  );
  const reasoning = Array.from({ length: 17 }, (_, line) => `thought ${line}`).join("\n");
  const footer = { model: "vendor/heron-2", contextUsed: 456, contextLength: 1000, cwd: temp.project };
  const [text = ""] = textsOf((await compose("Answer.", { reasoning, footer })).payloads);
  assert.match(text, /^💭 Reasoning:\n> thought 0\n[\s\S]*> thought 14\n> \.\.\. \(2 more lines\)\n\nAnswer\.\n\n/);
  assert.ok(text.endsWith("\n\nheron-2 · ~/project · 46%"), text);
  const plain = await world(t, "display: { show_reasoning: false }\n");
  assert.deepEqual(textsOf((await plain.compose("Answer.", { reasoning, footer })).payloads), ["Answer."]);
  assert.equal(footerLine(["model", "context_pct", "cwd", "toString"], { cwd: "/srv" }, "/home/u"), "/srv");
});

test("whatever is said, the parts are those of the splitter and each fits", async (t) => {
  const { compose } = await world(t);
  const word = fc.constantFrom("word", "`code`", "\n", "\n\n", "```\n", "ünïcode", "😀", "x".repeat(80), "**bold**");
  await fc.assert(
    fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 200 }), async (words) => {
      const text = words.join(" ").trim();
      const { payloads } = await compose(text);
      const texts = textsOf(payloads);
      if (isSilence(text, "chat") || text === "") return;
      const parts = splitMessage(text, splitFor(entry));
      if (parts.length <= 10) assert.deepEqual(texts, parts);
      assert.ok(texts.every((part) => part.length <= entry.maxLength));
    }),
    { numRuns: 100 },
  );
});

test("several pictures are albums of ten where the platform has them; what moves and other files come by themselves", async (t) => {
  const { compose, file } = await world(t);
  const names = [...Array.from({ length: 12 }, (_, at) => `p${at}.png`), "m.gif", "z.pdf"];
  const paths = await Promise.all(names.map((name) => file("pictures", name)));
  const shown = async (sendsAlbums: boolean, some: readonly string[]) =>
    (await compose("Here.", { mediaFromTools: some, sendsAlbums })).payloads.map((payload) =>
      payload.type === "album" ? payload.files.length : payload.type === "file" ? payload.file.name : payload.text,
    );
  assert.deepEqual(await shown(true, paths), ["Here.", 10, 2, "m.gif", "z.pdf"]);
  assert.deepEqual(await shown(true, paths.slice(0, 11)), ["Here.", 10, "p10.png"]);
  assert.deepEqual(await shown(true, paths.slice(11)), ["Here.", "p11.png", "m.gif", "z.pdf"]);
  assert.deepEqual(await shown(false, paths.slice(10)), ["Here.", "p10.png", "p11.png", "m.gif", "z.pdf"]);
});
