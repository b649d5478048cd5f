import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formattedBody } from "./html.ts";

const CASES: readonly (readonly [markdown: string, html: string | null])[] = [
  ["plain words", null],
  ["2 * 3 * 4, snake_case_name and a < b & c", null],
  ["**bold** *it* ***both*** ~~no~~", "<strong>bold</strong> <em>it</em> <em><strong>both</strong></em> <del>no</del>"],
  ["__bold__ _it_ ||hidden||", "<strong>bold</strong> <em>it</em> <span data-mx-spoiler>hidden</span>"],
  ["`a <b> *c*`", "<code>a &lt;b&gt; *c*</code>"],
  ["``a ` b``", "<code>a ` b</code>"],
  ["**not closed", null],
  ["\\*not emphasis\\*", "*not emphasis*"],
  ["one\ntwo", "one<br>\ntwo"],
  ["one\n\ntwo", "<p>one</p>\n<p>two</p>"],
  ["# Head\ntext", "<h1>Head</h1>\n<p>text</p>"],
  ["### Three ###", "<h3>Three</h3>"],
  ["# About C#", "<h1>About C#</h1>"],
  ["#hashtag", null],
  ["``` not `a` fence", "``` not <code>a</code> fence"],
  ["a | b\nno | rule", "a | b<br>\nno | rule"],
  ["a\n\n---\n\nb", "<p>a</p>\n<hr>\n<p>b</p>"],
  ["```ts\nif (a < b) {\n  x();\n}\n```", '<pre><code class="language-ts">if (a &lt; b) {\n  x();\n}\n</code></pre>'],
  ["```\nnever closed", "<pre><code>never closed\n</code></pre>"],
  ["~~~~\n```\n~~~~", "<pre><code>```\n</code></pre>"],
  ["- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"],
  ["- a\n  - b\n- c", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul></li>\n<li>c</li>\n</ul>"],
  ["- a\n- b\n---\nc", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<hr>\n<p>c</p>"],
  ["3. a\n4. b", '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'],
  ["in 1984.\n1984. was a year", "in 1984.<br>\n1984. was a year"],
  ["> a\n> > b", "<blockquote><p>a</p>\n<blockquote><p>b</p></blockquote></blockquote>"],
  [
    "| a | b |\n|---|---|\n| `x|y` | 2 |\n| 3 |",
    "<table>\n<thead>\n<tr><th>a</th><th>b</th></tr>\n</thead>\n<tbody>\n<tr><td><code>x|y</code></td><td>2</td></tr>\n<tr><td>3</td><td></td></tr>\n</tbody>\n</table>",
  ],
  ["[x](https://e.org/a_(b)?c&d)", '<a href="https://e.org/a_(b)?c&amp;d">x</a>'],
  ['[x](https://e.org "title")', '<a href="https://e.org">x</a>'],
  ["[**x**](https://e.org)", '<a href="https://e.org"><strong>x</strong></a>'],
  ["<https://e.org>", '<a href="https://e.org">https://e.org</a>'],
  ["![a cat](https://e.org/c.png)", '<a href="https://e.org/c.png">a cat</a>'],
  ["[click](javascript:alert(1))", "click (javascript:alert(1))"],
];

for (const [markdown, html] of CASES)
  test(`${JSON.stringify(markdown)} becomes ${html === null ? "plain text" : html.split("\n")[0]}`, () =>
    assert.equal(formattedBody(markdown), html));

const ALLOWED =
  /^<\/?(?:p|br|hr|h[1-6]|blockquote|ul|ol(?: start="\d+")?|li|strong|em|del|code(?: class="language-[\w+#.-]+")?|pre|table|thead|tbody|tr|th|td|span(?: data-mx-spoiler)?|a(?: href="[^"<>]*")?)>$/;

const piece = fc.constantFrom(
  ...'* ** _ ~~ || ` ``` ~~~ [ ] ( ) ![ <b> </b> <script> & " # - 1. > | \\ a b https://e.org \n \n\n'.split(" "),
  ..." |---|\n,  - ,<https://e.org>,](javascript:x)".split(","),
);

test("whatever is written, only allowed tags come out, and each of them is closed", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const html = formattedBody(pieces.join("")) ?? "";
      const open: string[] = [];
      for (const [tag] of html.matchAll(/<[^>]*>/g)) {
        assert.match(tag, ALLOWED);
        const name = /\w+/.exec(tag)?.[0] ?? "";
        if (name === "br" || name === "hr") continue;
        if (tag.startsWith("</")) assert.equal(open.pop(), name);
        else open.push(name);
      }
      assert.deepEqual(open, []);
      assert.doesNotMatch(html, /href="javascript/);
    }),
    { numRuns: 500 },
  );
});

test("no word is lost", () => {
  const word = fc.string({ unit: fc.constantFrom(..."abcXYZ"), minLength: 4, maxLength: 6 });
  const line = fc.tuple(fc.constantFrom("", "- ", "> ", "# ", "1. ", "**", "| "), word).map((parts) => parts.join(""));
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 20 }), (lines) => {
      const text = lines.join("\n");
      const html = formattedBody(text) ?? text;
      for (const [found] of text.matchAll(/[a-z]+/gi)) assert.ok(html.includes(found), `${found} in ${html}`);
    }),
  );
});
