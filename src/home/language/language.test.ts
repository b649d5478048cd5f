import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, test } from "node:test";
import { installRoot } from "../paths.ts";
import { CHINESE } from "./chinese.ts";
import { catalogueOf, languageOf, useLanguage } from "./languages.ts";
import { said, t } from "./words.ts";

afterEach(() => useLanguage("en"));

describe("the name of a language", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["zh", "zh"],
    [" ZH_CN.UTF-8 ", "zh"],
    ["Chinese", "zh"],
    ["zh-Hans", "zh"],
    ["zh_TW", "zh-hant"],
    ["zh-HK", "zh-hant"],
    ["zh-hant-tw", "zh-hant"],
    ["jp", "ja"],
    ["pt_BR", "pt"],
    ["de_AT@euro", "de"],
    ["fr-CA", "fr"],
    ["tlh", "en"],
    ["", "en"],
  ];
  for (const [name, language] of cases) test(`${name} is ${language}`, () => assert.equal(languageOf(name), language));
});

describe("a text", () => {
  test("is translated with its places filled, and stays English where nobody translated it", async () => {
    await useLanguage("zh_CN");
    assert.equal(t("saved in {place}", { place: "config.yaml" }), "保存在 config.yaml");
    assert.equal(t("nobody translated {this}", { this: "one" }), "nobody translated one");
    assert.equal(said("Skin: ares. Saved as display.skin."), "皮肤：ares。已保存为 display.skin。");
    assert.equal(said("Title: {title} $& {"), "标题：{title} $& {");
    assert.equal(said("Session:  1\n  Running:  no\n"), "会话：  1\n  运行中：no\n");
    assert.equal(said("17 tools"), "17 个工具");
    assert.equal(said("these tools"), "these tools");
    // A mark in front of a sentence, and words of ours inside of one.
    assert.equal(said("  ✓ built-in memory only\nhermes: the prompt is empty."), "  ✓ 仅内置记忆\nhermes: 提示为空。");
    assert.equal(said("This folder (~/just now): trusted."), "此目录（~/just now）：已信任。");
  });

  test("is English by default, a missing value never throws", () => {
    assert.equal(t("Tip: {tip}", { tip: "x" }), "Tip: x");
    assert.equal(t("Tip: {tip}", {} as { tip: string }), "Tip: {tip}");
    assert.equal(said("Goodbye."), "Goodbye.");
  });
});

const places = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort();

test("translations have the places of the English text, and no language has a text of its own", async () => {
  for (const language of ["zh", "zh-hant", "ja", "de", "es", "fr", "ko", "ru", "pt", "it", "tr", "uk"] as const) {
    const catalogue = await catalogueOf(language);
    assert.ok(Object.keys(catalogue).length >= 30, language);
    for (const [text, translation] of Object.entries(catalogue)) {
      assert.deepEqual(places(translation), places(text), `${language}: ${text}`);
      assert.ok(Object.hasOwn(CHINESE, text), `${language}: ${text}`);
      assert.notEqual(translation.trim(), "", `${language}: ${text}`);
    }
  }
});

test("every text of the catalogue is one that the program says", () => {
  const root = join(installRoot(), "src");
  const files = globSync("**/*.ts", { cwd: root }).filter((name) => !/home.language|[.]test[.]ts$/.test(name));
  const source = new Source(
    files.map((name) => readFileSync(join(root, name), "utf8").replaceAll('\\"', '"')).join("\n"),
  );
  const unknown = Object.keys(CHINESE).filter((text) => !text.split(/\{\w+\}/).some((part) => isIn(part, source)));
  assertFew(unknown, Object.keys(CHINESE).length);
});

/** A text that was reworded is English until its translation follows; that may be so for a few, and for a while. */
function assertFew(texts: readonly string[], of: number): void {
  assert.ok(texts.length <= of / 10, `${texts.length} of ${of}:\n${texts.join("\n")}`);
}

/** Some texts are put together at run time: three words in a row have to be there. */
function isIn(part: string, source: Source): boolean {
  if (part.trim() !== "" && source.includes(part.trim())) return true;
  const words = part.trim().split(/\s+/);
  const runs = words.length <= 3 ? [words] : words.slice(0, -2).map((_, at) => words.slice(at, at + 3));
  return runs.some((run) => source.includes(run.join(" ").replace(/^[^\p{L}/]+|[^\p{L}\p{N}]+$/gu, "")));
}

/** Millions of letters that thousands of texts are looked up in: where each word stands is found once. */
class Source {
  readonly #text: string;
  readonly #places = new Map<string, number[]>();

  constructor(text: string) {
    this.#text = text;
    for (const { 0: word, index } of text.matchAll(/\S+/g)) {
      const places = this.#places.get(word);
      if (places) places.push(index);
      else this.#places.set(word, [index]);
    }
  }

  includes(text: string): boolean {
    // A word between two others stands in the source as it stands here; the rarest of them says where to look.
    const between = [...text.matchAll(/(?<=\S\s+)\S+(?=\s+\S)/g)].map(({ 0: word, index }) => ({
      places: this.#places.get(word) ?? [],
      index,
    }));
    const rarest = between.sort((a, b) => a.places.length - b.places.length)[0];
    if (!rarest) return this.#text.includes(text);
    return rarest.places.some((place) => this.#text.startsWith(text, place - rarest.index));
  }
}

test("what users see most is said in Chinese: commands, keys and tips", async () => {
  const { builtinCommands } = await import("../../commands/builtin.ts");
  const { shownKeys } = await import("../../doors/terminal/keys.ts");
  const texts = [
    ...builtinCommands()
      .all()
      .map(({ description }) => description),
    ...shownKeys().flatMap(({ task, help }) => [task, help]),
  ];
  assertFew(
    texts.filter((text) => !Object.hasOwn(CHINESE, text)),
    texts.length,
  );
});

test("sentences of others are not taken for one of ours with places at both ends", async () => {
  await useLanguage("zh");
  for (const text of [
    "Answer a question from several sources, with citations",
    "CSV, TSV or JSON lines: what is in it, questions, sums",
    "the build needs a key",
  ])
    assert.equal(said(text), text);
  assert.equal(said("19 tools in this conversation"), "本次对话中有 19 个工具");
  await useLanguage("en");
});
