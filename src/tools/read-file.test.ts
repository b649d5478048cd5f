import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFile, chmod, mkdir, open, symlink, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { dispatch } from "../../test/support/dispatch.ts";
import { type FileRig, fileRig, parsed } from "../../test/support/file-workspace.ts";
import { configSchema } from "../home/config/schema.ts";
import { localFiles, NotAFileError } from "./files/access.ts";
import { forgetReads, noteToolCall } from "./files/workspace.ts";
import { readFile } from "./read-file.ts";

import { registry } from "./toolset/registry.ts";
import { writeFile as writeTool } from "./write-file.ts";

let rig: FileRig;
before(async () => {
  rig = await fileRig();
});
after(() => rig.close());

const read = async (path: string, more: { offset?: number; limit?: number } = {}, ctx = rig.context()) =>
  parsed(await readFile({ path, ...more }, ctx));
const put = async (name: string, text: string | Uint8Array) => {
  await writeFile(rig.at(name), text);
  return name;
};

test("a file comes as numbered lines with its size and length", async () => {
  await put("a.txt", "one\ntwo\nthree\n");
  assert.deepEqual(await read("a.txt"), {
    content: "1|one\n2|two\n3|three",
    total_lines: 3,
    file_size: 14,
    truncated: false,
  });
});

const contents: [string, string, string, number][] = [
  ["an empty file", "", "", 0],
  ["no final line break", "a\nb", "1|a\n2|b", 2],
  ["empty lines", "\n\nx\n\n", "1|\n2|\n3|x\n4|", 4],
  ["CRLF", "a\r\nb\r\n", "1|a\n2|b", 2],
  ["a byte order mark", "\ufeffa\nb", "1|a\n2|b", 2],
  ["Chinese and emoji", "你好\n😀\n", "1|你好\n2|😀", 2],
  ["bars in the text", "1|x\n", "1|1|x", 1],
];
for (const [name, text, content, lines] of contents) {
  test(`reading: ${name}`, async () => {
    await put("case.txt", text);
    const result = await read("case.txt");
    assert.equal(result.content, content);
    assert.equal(result.total_lines, lines);
  });
}

test("a page ends with where to go on, and the last page does not", async () => {
  await put("pages.txt", Array.from({ length: 1200 }, (_, n) => `line ${n + 1}`).join("\n"));
  const first = await read("pages.txt");
  assert.equal(first.next_offset, 501);
  assert.ok(first.truncated && first.content.endsWith("500|line 500") && first.total_lines === 1200);
  const middle = await read("pages.txt", { offset: 501, limit: 2 });
  assert.equal(middle.content, "501|line 501\n502|line 502");
  const last = await read("pages.txt", { offset: 1200, limit: 9999 });
  assert.deepEqual([last.content, last.truncated, last.next_offset], ["1200|line 1200", false, undefined]);
  const beyond = await read("pages.txt", { offset: 5000 });
  assert.equal(beyond.content, "");
  assert.match(beyond.hint, /ends at line 1200/);
});

test("a long line is cut and says so; a huge one is not held in memory", async () => {
  await put("long.txt", `${"x".repeat(2001)}\n${"y".repeat(2000)}\n${"é".repeat(3000)}\n`);
  const { content } = await read("long.txt");
  const [x, y, e] = content.split("\n");
  assert.equal(x, `1|${"x".repeat(2000)}... [truncated]`);
  assert.equal(y, `2|${"y".repeat(2000)}`);
  assert.equal(e, `3|${"é".repeat(2000)}... [truncated]`);
});

test("a secret at the end of a line that is cut leaves no half of it", async () => {
  const secret = `sk-${"Q7w8E9r0T1y2".repeat(4)}`;
  for (const before of [1955, 1970, 1990, 1995, 1999]) {
    await put("edge.txt", `${"x".repeat(before)} ${secret} ${"y".repeat(3000)}\nnext\n`);
    const [line, next] = (await read("edge.txt")).content.split("\n");
    assert.match(line, /^1\|x+ ?\.\.\. \[truncated\]$/, String(before));
    assert.equal(next, "2|next");
  }
});

test("the settings say how many lines a page may have", async () => {
  await put("lines.txt", "a\nb\nc\nd\n");
  const config = configSchema.parse({ tool_output: { max_lines: 3 } });
  const page = await read("lines.txt", { limit: 100 }, rig.context({ config }));
  assert.deepEqual([page.content, page.next_offset], ["1|a\n2|b\n3|c", 4]);
});

test("beyond the character limit whole lines are kept and next_offset goes on behind them", async () => {
  await put("wide.txt", Array.from({ length: 300 }, () => "z".repeat(1000)).join("\n"));
  const result = await read("wide.txt");
  assert.equal(result.truncated_by, "bytes");
  assert.ok(result.content.length <= 100_000 && result.content.split("\n").every((row: string) => row.length >= 1002));
  assert.equal(result.next_offset, result.content.split("\n").length + 1);
});

test("a file of 110 MB is paged without being loaded, with a hint to page", { timeout: 60_000 }, async () => {
  const file = await open(rig.at("huge.log"), "w");
  const block = Buffer.from("0123456789abcde\n".repeat(65_536));
  for (let n = 0; n < 110; n++) await file.write(block);
  await file.close();
  const before = process.memoryUsage().rss;
  const result = await read("huge.log", { offset: 7_000_000, limit: 2 });
  assert.equal(result.content, "7000000|0123456789abcde\n7000001|0123456789abcde");
  assert.equal(result.total_lines, 110 * 65_536);
  assert.match(result.hint, /Large file/);
  assert.ok(process.memoryUsage().rss - before < 100 * 1024 * 1024);
});

test("a missing file names what is like it", async () => {
  await put("config.json", "{}");
  const result = await read("confg.json");
  assert.equal(result.error, "File not found: confg.json");
  assert.ok(result.similar_files.includes("config.json") && result.similar_files.length <= 5);
});

test("a directory, an image, a binary, a pipe, a socket-like device and a circle are clear errors", async () => {
  await mkdir(rig.at("folder"));
  await put("pic.png", "x");
  await put("lib.so", "x");
  await put("raw", new Uint8Array([0xff, 0xfe, 0x00, 0x41]));
  await put("control", "\x01\x02\x03\x04ab");
  await symlink("circle-b", rig.at("circle-a"));
  await symlink("circle-a", rig.at("circle-b"));
  execFileSync("mkfifo", [rig.at("pipe")]);
  const expected: [string, RegExp][] = [
    ["folder", /is a directory.*search_files/],
    ["pic.png", /is an image/],
    ["lib.so", /binary/],
    ["raw", /binary/],
    ["control", /binary/],
    ["circle-a", /circle/],
    ["pipe", /not a regular file/],
    ["a.txt/x", /not a directory/],
    ["/dev/zero", /device/],
    ["/proc/self/environ", /device/],
  ];
  for (const [path, pattern] of expected) assert.match((await read(path)).error, pattern, path);
  const seeing = rig.context({ toolNames: new Set(["vision_analyze"]) });
  assert.match((await read("pic.png", {}, seeing)).error, /vision_analyze/);
});

test("a link to a device is refused as well", async () => {
  await symlink("/dev/urandom", rig.at("innocent.txt"));
  assert.match((await read("innocent.txt")).error, /device/);
});

test("a file without permission is a clear error", { skip: process.getuid?.() === 0 }, async () => {
  await put("locked.txt", "x");
  await chmod(rig.at("locked.txt"), 0);
  assert.match((await read("locked.txt")).error, /^Permission denied: locked.txt/);
});

test("files of secrets are refused, also through a link", async () => {
  await put(".env", "A=b");
  await symlink(".env", rig.at("settings"));
  for (const path of [".env", "settings"]) assert.match((await read(path)).error, /^Read denied/);
  await put(".env.example", "A=");
  assert.equal((await read(".env.example")).content, "1|A=");
});

test("secrets in other files are replaced by marks, line for line", async () => {
  const key = [
    "-----BEGIN PRIVATE KEY-----",
    ...Array.from({ length: 30 }, () => "M".repeat(64)),
    "-----END PRIVATE KEY-----",
  ];
  await put("notes.md", ["A_TOKEN=abc", ...key, "after"].join("\n"));
  const whole = await read("notes.md");
  assert.match(whole.content, /^1\|A_TOKEN=«redacted»\n2\|«redacted/);
  assert.doesNotMatch(whole.content, /MMMM/);
  assert.ok(whole.content.endsWith("\n34|after"));
  for (const offset of [3, 10, 32]) assert.doesNotMatch((await read("notes.md", { offset, limit: 1 })).content, /MMMM/);
  assert.equal((await read("notes.md", { offset: 34 })).content, "34|after");
});

test("home and absolute paths work", async () => {
  await writeFile(`${rig.userHome}/mine.txt`, "x");
  assert.equal((await read("~/mine.txt")).content, "1|x");
  assert.equal((await read(rig.at("a.txt"), { limit: 1 })).content, "1|one");
});

test("the same page again is not sent again until something happened", async () => {
  const ctx = rig.context();
  await put("again.txt", "x\n");
  assert.equal((await read("again.txt", {}, ctx)).content, "1|x");
  assert.deepEqual(await read("again.txt", {}, ctx), {
    status: "unchanged",
    message: "File unchanged since it was last read; its content is above in this conversation.",
    path: "again.txt",
    dedup: true,
    content_returned: false,
  });
  const third = await read("again.txt", {}, ctx);
  assert.match(third.error, /already returned/);
  assert.match(third._warning, /3rd time/);
  assert.match((await read("again.txt", {}, ctx)).error, /^BLOCKED/);
  noteToolCall(ctx.state, "terminal");
  assert.match((await read("again.txt", {}, ctx)).error, /already returned/);
  forgetReads(ctx.state);
  assert.equal((await read("again.txt", {}, ctx)).content, "1|x");
  await appendFile(rig.at("again.txt"), "y\n");
  assert.equal((await read("again.txt", {}, ctx)).content, "1|x\n2|y");
  await writeTool({ path: "again.txt", content: "z\n" }, ctx);
  assert.equal((await read("again.txt", {}, ctx)).content, "1|z");
});

test("a file that changes between reads is still blocked the fourth time in a row", async () => {
  const ctx = rig.context();
  for (let n = 1; n <= 4; n++) {
    await put("ticking.txt", "x".repeat(n));
    const result = await read("ticking.txt", {}, ctx);
    if (n < 3) assert.equal(result._warning, undefined);
    if (n === 3) assert.ok(result.content && result._warning);
    if (n === 4) assert.match(result.error, /^BLOCKED/);
  }
});

test("another agent's reads do not count", async () => {
  await put("shared.txt", "x");
  assert.equal((await read("shared.txt")).content, "1|x");
  assert.equal((await read("shared.txt")).content, "1|x");
});

test("an aborted read rejects with the abort", async () => {
  const ctx = rig.context({ signal: AbortSignal.abort(new Error("stop")) });
  await put("abort.txt", "x");
  await assert.rejects(readFile({ path: "abort.txt" }, ctx), /stop/);
});

test("a pipe that took a file's place meanwhile is not waited for", { timeout: 5000 }, async () => {
  execFileSync("mkfifo", [rig.at("late-pipe")]);
  await assert.rejects(localFiles.read(rig.at("late-pipe")), NotAFileError);
});

test("the registered tools take arguments as models send them and name what is missing", async () => {
  await put("sent.txt", "1\n2\n3\n");
  const call = async (name: string, args: Record<string, unknown>) =>
    parsed(await dispatch(registry, name, args, rig.context()));
  assert.equal((await call("read_file", { path: "sent.txt", offset: "2", limit: "1" })).content, "2|2");
  assert.match((await call("read_file", {})).error, /path/);
  assert.match((await call("write_file", { path: "x" })).error, /content/);
  assert.equal((await call("write_file", { path: "x", content: "y", cross_profile: null })).bytes_written, 1);
});
