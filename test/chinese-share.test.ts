// How much of what users read is there in Chinese (`display.language: zh`). A text counts when it is translated with its places filled.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Command } from "commander";
import { dangerWords } from "../src/doors/approval-words.ts";
import { commandTree } from "../src/doors/cli/program.ts";
import type { CliContext } from "../src/doors/cli-context.ts";
import { catalogueOf, useLanguage } from "../src/home/language/languages.ts";
import { said } from "../src/home/language/words.ts";
import { RULES } from "../src/safety/danger/table.ts";
import { sourceTexts } from "./support/texts.ts";

describe("with display.language zh", () => {
  before(async () => {
    sentences = Object.keys(await catalogueOf("zh"));
    await useLanguage("zh");
  });
  after(() => useLanguage("en"));

  test("the help of every command is in Chinese: each command, option and argument", async () => {
    const texts = helpOf(await commandTree({} as CliContext)); // nothing is run
    assert.ok(texts.length > 300, `${texts.length} texts`);
    assert.deepEqual(untranslated(texts), []);
  });

  for (const [what, share, patterns] of [
    ["answers of slash commands", 0.95, ["src/commands/*.ts"]],
    ["texts of the screen and of setup", 0.95, ["src/doors/*.ts", "src/doors/terminal/*.ts"]],
    ["texts of sub-commands", 0.65, ["src/doors/cli/*.ts"]],
  ] as const) {
    test(`at least ${share * 100} % of the ${what} are in Chinese`, () => {
      const texts = sourceTexts(...patterns)
        .filter(({ file }) => !NOT_FOR_READERS.test(file))
        .map(({ text }) => text)
        .filter((text) => !FOR_LOG_AND_MODEL.test(text));
      const missing = untranslated(texts);
      const reached = 1 - missing.length / texts.length;
      assert.ok(texts.length > 200, `${texts.length} texts`);
      assert.ok(reached >= share, `${Math.round(reached * 100)} %; without a translation:\n${missing.join("\n")}`);
    });
  }
});

test("every kind of danger that a question names has its Chinese words", async () => {
  await useLanguage("zh");
  const names = /^(?:SQL DROP|SQL TRUNCATE|find -delete)$/; // the command itself
  const missing = RULES.map(({ rule }) => rule.key).filter((key) => dangerWords(key) === key && !names.test(key));
  assert.deepEqual(missing, []);
  assert.equal(dangerWords("recursive delete + outside sandbox: rm"), "递归删除 + 沙箱外：rm");
  await useLanguage("en");
});

/** Words of programming languages, scripts for other programs. */
const NOT_FOR_READERS = /code-colours|clipboard/;
/** Lines of the log, and why a turn was stopped as the model reads it. */
const FOR_LOG_AND_MODEL =
  /^(?:a command was typed|the user sent a|the screen (?:was closed|crashed)|the terminal could not be reset|the hint \{1\} could|no newer version could|what \/\{1\} may|plugin "\{1\}": |slash command name used)/;

let sentences: readonly string[] = [];

/** Names of programs and keys are among them, so all is never reached. */
function untranslated(texts: readonly string[]): readonly string[] {
  return texts.filter((text) => !linesOf(text).some((line) => said(line) !== line) && !isPart(text));
}

const linesOf = (text: string) =>
  text
    .replace(/\{\d+\}/g, "3")
    .split("\n")
    .map((line) => line.trim());

/** Sentences are put together from parts (", called {1}", "more line"); the catalogue has them whole. */
function isPart(text: string): boolean {
  if (text.replace(/\{\d+\}|\W/g, "").length < 5) return false;
  const pattern = text
    .trim()
    .split(/\{\d+\}/)
    .map((literal) => literal.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join("[^.]{0,60}?");
  const part = new RegExp(/^\p{L}/u.test(text) ? `(?<!\\p{L})${pattern}` : pattern, "u");
  return sentences.some((sentence) => part.test(sentence));
}

function helpOf(command: Command): readonly string[] {
  const own = [
    command.summary(),
    command.description(),
    ...command.options.filter((option) => !option.hidden).map(({ description }) => description),
    ...command.registeredArguments.map(({ description }) => description),
  ];
  return [...new Set([...own.filter((text) => text !== ""), ...command.commands.flatMap(helpOf)])];
}
