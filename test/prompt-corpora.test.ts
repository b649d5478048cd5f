// Whole documents through the doors by which they reach a prompt. The texts of test/corpora are data: they are read and scanned, nothing
// else ever happens to them.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { readContextFiles } from "../src/prompt/files/context-files.ts";
import { readSoul } from "../src/prompt/files/soul.ts";
import { SubdirectoryHints } from "../src/prompt/hints.ts";
import { THREAT_PATTERNS } from "../src/safety/threats/patterns.ts";
import { codePointName, scanForThreats } from "../src/safety/threats/scan.ts";
import { localFiles } from "../src/tools/files/access.ts";
import { memoryHome } from "./support/memory.ts";
import { sampleOf } from "./support/sample.ts";
import { tempTree } from "./support/temp-tree.ts";

const HEAD = "# Project Context\n\nThe following project context files have been loaded and should be followed:\n\n";
const rules = {
  files: localFiles,
  isDenied: async () => false,
  scan: (text: string) => scanForThreats(text, "context"),
  limit: 20_000,
};

interface Document {
  readonly name: string;
  readonly text: string;
}

async function corpus(folder: string): Promise<readonly Document[]> {
  const place = new URL(`corpora/${folder}/`, import.meta.url);
  const names = (await readdir(place)).sort();
  return Promise.all(
    names.map(async (name) => ({ name, text: await readFile(new URL(encodeURIComponent(name), place), "utf8") })),
  );
}

/** Everywhere a project may put words for an agent. */
const PLACES = [".hermes.md", "HERMES.md", "AGENTS.md", "CLAUDE.md", ".cursorrules", ".cursor/rules/style.mdc"];
const HINT_NAMES = ["AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules"];

async function project(t: TestContext) {
  const tree = await tempTree(t);
  return {
    /** What becomes of a document that lies in the project under this name. */
    async read(place: string, text: string) {
      await mkdir(dirname(tree.at(place)), { recursive: true });
      await writeFile(tree.at(place), text);
      const reading = await readContextFiles({ ...rules, cwd: tree.root });
      await rm(tree.at(place));
      return reading;
    },
    /** What a tool result that touches its folder says of it. */
    async readHint(name: string, text: string) {
      await mkdir(tree.at("sub"), { recursive: true });
      await writeFile(tree.at(`sub/${name}`), text);
      const warnings: string[] = [];
      const places = { cwd: tree.root, userHome: "/nobody", hermesHome: "/nobody/.hermes" };
      const hints = new SubdirectoryHints({ ...rules, ...places, onWarning: (warning) => void warnings.push(warning) });
      const hint = await hints.check("read_file", { path: "sub/x" });
      await rm(tree.at(`sub/${name}`));
      return { hint: hint ?? "", warnings };
    },
    async readSoul(text: string) {
      await writeFile(tree.at("SOUL.md"), text);
      return readSoul({ ...rules, path: tree.at("SOUL.md") });
    },
  };
}

describe("documents that mean no harm", () => {
  test("load whole, and the few with one weak sign are pointed out", async (t) => {
    const documents = await corpus("benign");
    assert.ok(documents.length >= 60);
    const { read } = await project(t);
    const flagged: string[] = [];
    for (const { name, text } of documents) {
      const reading = await read("AGENTS.md", text);
      const [report] = reading.reports;
      assert.equal(reading.text, `${HEAD}## AGENTS.md\n\n${text.trim()}`, `${name}: ${reading.warnings.join()}`);
      assert.ok(report?.status === "loaded" || report?.status === "flagged", `${name}: ${report?.status}`);
      assert.equal(reading.warnings.length, report.status === "flagged" ? 1 : 0, name);
      if (report.status === "flagged") flagged.push(name);
    }
    assert.deepEqual(flagged, ["network-runbook.md", "one-weak-word-heartbeat.md", "one-weak-word-must-report.md"]);
  });

  test("load from every other place as well", async (t) => {
    const { read, readSoul: soul } = await project(t);
    for (const [index, { name, text }] of (await corpus("benign")).entries()) {
      const place = PLACES[index % PLACES.length] ?? "AGENTS.md";
      const { reports } = await read(place, text);
      assert.ok(["loaded", "flagged"].includes(reports[0]?.status ?? ""), `${name} as ${place}`);
      assert.equal((await soul(text)).blockedMarker, null, name);
    }
  });

  test("are told whole when work reaches the sub-directory they lie in", async (t) => {
    const { readHint } = await project(t);
    const flagged: string[] = [];
    for (const [index, { name, text }] of (await corpus("benign")).entries()) {
      const file = HINT_NAMES[index % HINT_NAMES.length] ?? "AGENTS.md";
      const { hint, warnings } = await readHint(file, text);
      assert.equal(hint, `\n\n[Subdirectory context discovered: sub/${file}]\n${text.trim()}`, name);
      if (warnings.length > 0) flagged.push(name);
    }
    assert.deepEqual(flagged, ["network-runbook.md", "one-weak-word-heartbeat.md", "one-weak-word-must-report.md"]);
  });

  test("are withheld only for the very words of an attack, with line, words and the way to trust them", async (t) => {
    const documents = await corpus("alarming");
    assert.ok(documents.length <= 12, "a document belongs here only if it carries the words of an attack itself");
    const { read } = await project(t);
    for (const { name, text } of documents) {
      const { text: prompt, reports, warnings } = await read("AGENTS.md", text);
      const [finding] = reports[0]?.findings ?? [];
      assert.ok(finding, name);
      assert.equal(reports[0]?.status, "blocked", name);
      assert.match(
        prompt,
        /\n\n\[BLOCKED: AGENTS\.md contained potential prompt injection \(.+\)\. Content not loaded\.\]$/,
      );
      assert.equal(warnings.length, 1);
      assert.ok(warnings[0]?.includes(`line ${finding.line}: ${finding.id} "${finding.excerpt}"`), name);
      assert.match(warnings[0] ?? "", /if it is fine, run: hermes prompt trust \S+AGENTS\.md$/);
      const quoted = text.split("\n")[finding.line - 1] ?? "";
      assert.ok([...quoted].length >= finding.column, `${name}: line ${finding.line} is not where it stands`);
    }
  });
});

describe("attacks", () => {
  const idOf = (name: string) => name.slice(0, name.indexOf("--"));

  test("of every family are at hand, in the scope they belong to", async () => {
    const context = new Set((await corpus("attacks/context")).map(({ name }) => idOf(name)));
    const memory = new Set((await corpus("attacks/memory")).map(({ name }) => idOf(name)));
    for (const { id, scope } of THREAT_PATTERNS)
      assert.ok((scope === "strict" ? memory : context).has(id), `no attack for ${id}`);
    for (const { id, strict } of THREAT_PATTERNS) assert.ok(!strict || memory.has(id), `no broad form of ${id}`);
    for (const codePoint of [0x200b, 0x202e, 0x2066, 0xfeff, 0xe0069])
      assert.ok(context.has(`invisible_unicode_${codePointName(codePoint)}`));
  });

  test("do not reach the prompt from any place a project may put them", async (t) => {
    const documents = await corpus("attacks/context");
    assert.ok(documents.length >= 80);
    const { read } = await project(t);
    for (const { name, text } of sampleOf(documents, 3, "places"))
      for (const place of PLACES) {
        // Front matter of these never reaches the prompt, so whoever hides there hides from the model too.
        if (name === "sys_prompt_override--yaml.md" && /hermes|mdc/i.test(place)) continue;
        const { text: prompt, reports, warnings } = await read(place, text);
        const what = `${name} as ${place}: ${JSON.stringify(reports[0]?.findings)}`;
        assert.equal(reports[0]?.status, "blocked", what);
        assert.ok(
          reports[0]?.findings.some(({ id }) => id === idOf(name)),
          what,
        );
        assert.equal(warnings.length, 1, what);
        assert.deepEqual(leaked(text, prompt), [], what);
      }
  });

  test("do not reach the conversation from a sub-directory", async (t) => {
    const { readHint } = await project(t);
    for (const { name, text } of sampleOf(await corpus("attacks/context"), 3, "sub-directories"))
      for (const file of HINT_NAMES) {
        const { hint, warnings } = await readHint(file, text);
        const [, ids = ""] =
          /^\n\n\[Subdirectory context discovered: sub\/(?:.+)\]\n\[BLOCKED: sub\/(?:.+) contained potential prompt injection \((.+)\)\. Content not loaded\.\]$/.exec(
            hint,
          ) ?? [];
        assert.ok(ids.split(", ").includes(idOf(name)), `${name} as sub/${file}: ${hint.slice(0, 300)}`);
        assert.equal(warnings.length, 1, name);
        assert.deepEqual(leaked(text, hint), [], name);
      }
  });

  test("in SOUL.md leave the built-in identity and a note", async (t) => {
    const { readSoul: soul } = await project(t);
    for (const { name, text } of await corpus("attacks/context")) {
      const reading = await soul(text);
      assert.equal(reading.text, null, name);
      // Headings and comments alone are an old template, and not used at all.
      if (reading.report?.reason?.startsWith("only headings and comments")) continue;
      assert.match(reading.blockedMarker ?? "", /^\[BLOCKED: SOUL\.md contained potential prompt injection \(/, name);
      assert.equal(reading.warnings.length, 1, name);
    }
  });

  test("are not written into memory, and do not come out of a file that another program wrote", async (t) => {
    const [memory, context] = [await corpus("attacks/memory"), await corpus("attacks/context")];
    const small = context.filter(({ text }) => text.length < 1000);
    for (const { name, text } of sampleOf([...memory, ...small], 3, "memory")) {
      const { open } = await memoryHome(t, { files: { "MEMORY.md": text } });
      const opened = await open();
      const added = await opened.write(
        { action: "add", target: "user", content: text.trim() },
        { origin: "foreground" },
      );
      assert.equal(added.success, false, name);
      assert.match(JSON.stringify(added), /Blocked: content /, name);
      const { memoryText } = opened.snapshot();
      assert.match(memoryText ?? "", /\[BLOCKED: MEMORY\.md entry contained threat pattern\(s\): /, name);
      assert.deepEqual(leaked(text, memoryText ?? ""), [], name);
    }
  });
});

/** Lines of the document that are found in the prompt; headings and very short ones say nothing. */
function leaked(text: string, prompt: string): readonly string[] {
  return text.split("\n").filter((line) => line.trim().length > 12 && prompt.includes(line.trim()));
}
