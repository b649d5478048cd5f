// No way of writing a command makes it less dangerous than it is. The seeds are data; nothing here reaches a shell.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { fewer } from "../../test/support/sample.ts";
import { classifyCommand } from "./verdict.ts";

const directory = join(import.meta.dirname, "..", "..", "test", "fixtures", "commands");
const options = { home: "/home/me/.hermes", osHome: "/home/me", sudoPasswordSet: false, denyGlobs: [] };

/** Commands that are a program and plain words, so that every wrapping below is valid shell. */
const seeds = readdirSync(directory)
  .flatMap((name) => readFileSync(join(directory, name), "utf8").split("\n"))
  .filter((line) => line !== "")
  .map((line): { command: string; verdict: string } => JSON.parse(line))
  // `coproc` is a reserved word: quoted, it is the name of a program that does not exist.
  .filter(({ command }) => !command.startsWith("coproc") && /^[\w./-]+(?: [\w./=:+,-]+)+$|^\w+$/.test(command));
const blocked = seeds.filter(({ verdict }) => verdict === "block").map(({ command }) => command);
const asked = seeds.filter(({ verdict }) => verdict === "ask").map(({ command }) => command);

type Wrap = (command: string) => string;

const single: Wrap = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const backtick: Wrap = (text) => `\`${text.replace(/[\\`]/g, "\\$&")}\``;

/** An end line that does not occur in what it holds: every wrapping is longer than the one inside. */
const heredoc = (inside: string, write: (end: string) => string) => write(`E${inside.length}`);

const wraps: readonly Wrap[] = [
  (command) => `  \t${command}  `,
  (command) => `\n\n${command}\n`,
  (command) => `${command} # done`,
  (command) => `# first\n${command}`,
  (command) => `ls; ${command}`,
  (command) => `true && ${command}\n`,
  (command) => `false || ${command}`,
  (command) => `echo 'a;b' "c|d" \\; ; ${command}`,
  (command) => `(${command}\n)`,
  (command) => `{ ${command}\n}`,
  (command) => `if true; then ${command}\nfi`,
  (command) => `for i in 1 2; do ${command}\ndone`,
  (command) => `case x in\n x) ${command}\n;; esac`,
  (command) => `f() { ${command}\n}; f`,
  (command) => `echo $(${command}\n)`,
  (command) => `echo "$(${command}\n)"`,
  (command) => `echo ${backtick(command)}`,
  (command) => `X=$(${command}\n) ls`,
  (command) => `cat <(${command}\n)`,
  (command) => heredoc(command, (end) => `cat <<${end}\n$(${command}\n)\n${end}`),
  (command) => heredoc(command, (end) => `bash <<'${end}'\n${command}\n${end}`),
  (command) => heredoc(command, (end) => `cat <<'${end}' > notes\nsome 'text\n${end}\n${command}`),
  (command) => `sh -c ${single(command)}`,
  (command) => `bash -lc ${single(command)}`,
  (command) => `/usr/bin/env bash -c ${single(command)}`,
  (command) => `eval ${single(command)}`,
  (command) => `printf ${single(command.replace(/[\\%]/g, "$&$&"))} | sh`,
  (command) => `bash <<< ${single(command)}`,
  (command) => `sh -s <<<${single(command)}`,
  (command) => `echo ${single(command)} | bash -s`,
  (command) => `! { ${command}\n}`,
  (command) => `{ ${command}\n} & wait`,
  (command) => `while :; do ${command}\nbreak; done`,
  (command) => `until { ${command}\n}; do sleep 1; done`,
  (command) => `[[ -n x ]] && { ${command}\n}`,
  (command) => `trap ${single(command)} EXIT`,
  (command) => `find . -name x -exec sh -c ${single(command)} \\;`,
  (command) => `xargs -I% sh -c ${single(command)} < list`,
  (command) => `su -c ${single(command)}`,
  (command) => `LINE=${single(command)}; eval "$LINE"`,
  (command) => `LINE=${single(command)}\nsh -c "$LINE"`,
  (command) => `export LINE=${single(command)} && bash -c "$LINE"`,
  (command) => `LINE=${single(command)}; bash <<< "$LINE"`,
];

/** Ways to write the words of a command so that the line must be followed to see them. `before` stands in front of the program. */
type Carry = (words: readonly string[], before: string) => string;

const carries: readonly Carry[] = [
  (words, before) => `${before}${words.join(" ")}`,
  ([program = "", ...rest], before) => `P=${single(program)}; ${before}$P ${rest.join(" ")}`,
  ([program = "", ...rest], before) => `P=${single(program)}\n${before}"\${P}" ${rest.join(" ")}`,
  (words, before) =>
    `${words.map((word, index) => `W${index}=${single(word)}`).join("; ")}; ${before}${words.map((_, index) => `$W${index}`).join(" ")}`,
  (words, before) =>
    `${words.map((word, index) => `W${index}=${single(word)}`).join(" ")}\n${before}${words.map((_, index) => `"\${W${index}}"`).join(" ")}`,
  (words, before) => `ALL=${single(words.join(" "))}; ${before}$ALL`,
  ([program = "", ...rest], before) => `${before}\${NOT_SET_HERE:-${program}} ${rest.join(" ")}`,
  ([program = "", ...rest], before) =>
    `HALF=${single(program.slice(1))}; ${before}${program[0]}$HALF ${rest.join(" ")}`,
  (words, before) =>
    words.length > 1 && !words.join("").includes(",") ? `${before}{${words.join(",")}}` : `${before}${words.join(" ")}`,
];

const prefixes: readonly string[] = [
  "sudo ",
  "sudo -n -u root ",
  "env A=1 B='x y' ",
  "A=1 ",
  "nohup ",
  "exec ",
  "time ",
  "setsid ",
  "nice -n 5 ",
  "timeout -k 1 10 ",
  "command ",
  "stdbuf -oL ",
  ">/dev/null 2>&1 ",
  "command -p ",
  "builtin command ",
  "exec -a name ",
  "env -i PATH=/bin ",
  "env -u HOME ",
  "nice ",
  "ionice -c 3 ",
  "A=$(date) B=`pwd` ",
  "2>errors </dev/null ",
  "\\\n",
];

/** One word in another spelling of the same word. */
const spellWord = (word: string) =>
  fc
    .array(fc.constantFrom("plain", "single", "double", "escaped", "ansi", "empty"), {
      minLength: word.length,
      maxLength: word.length,
    })
    .map((styles) =>
      [...word]
        .map((char, index) => {
          const style = styles[index];
          if (style === "single") return `'${char}'`;
          if (style === "double") return `"${char}"`;
          if (style === "escaped") return `\\${char}`;
          if (style === "ansi") return `$'\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}'`;
          return style === "empty" ? `''${char}` : char;
        })
        .join(""),
    );

const spellings = (command: string) => {
  const words = command.split(" ");
  return fc
    .tuple(
      fc.tuple(...words.map((word) => fc.oneof(fc.constant(word), spellWord(word)))),
      fc.array(fc.constantFrom(" ", "  ", "\t", " \\\n ", "$IFS ", "$" + "{IFS}"), {
        minLength: words.length,
        maxLength: words.length,
      }),
    )
    .map(([spelt, gaps]) => spelt.map((word, index) => (index === 0 ? word : `${gaps[index]}${word}`)).join(""));
};

const disguises = (commands: readonly string[]) =>
  fc
    .constantFrom(...commands)
    .chain((command) => fc.tuple(fc.constant(command), fc.oneof(spellings(command), fc.constantFrom(...carries))))
    .chain(([command, spelt]) =>
      fc
        .tuple(
          fc.array(fc.constantFrom(...prefixes), { maxLength: 2 }),
          fc.array(fc.constantFrom(...wraps), { maxLength: 3 }),
        )
        .map(([before, around]) => ({
          command,
          disguised: around.reduce(
            (text, wrap) => wrap(text),
            typeof spelt === "string" ? before.join("") + spelt : spelt(command.split(" "), before.join("")),
          ),
        })),
    );

test("there are seeds enough for the laws below", () => {
  assert.ok(blocked.length > 40 && asked.length > 100, `${blocked.length} blocked, ${asked.length} asked about`);
});

test("a blocked command stays blocked however it is quoted, spaced, prefixed and wrapped", () => {
  fc.assert(
    fc.property(disguises(blocked), ({ disguised }) => {
      assert.equal(classifyCommand(disguised, options).verdict, "block", JSON.stringify(disguised));
    }),
    { numRuns: fewer(1500, 4) },
  );
});

test("a command that is asked about is never let through by quoting, spacing, prefixing or wrapping", () => {
  fc.assert(
    fc.property(disguises(asked), ({ disguised }) => {
      assert.notEqual(classifyCommand(disguised, options).verdict, "allow", JSON.stringify(disguised));
    }),
    { numRuns: fewer(1500, 4) },
  );
});

test("program names match in any case", () => {
  for (const command of blocked) {
    const [program = "", ...rest] = command.split(" ");
    const shouted = [program.toUpperCase(), ...rest].join(" ");
    assert.equal(classifyCommand(shouted, options).verdict, "block", shouted);
  }
});

test("full-width letters and colour codes hide nothing", () => {
  const wide = (text: string) =>
    text.replace(/[!-~]/g, (char) => String.fromCodePoint((char.codePointAt(0) ?? 0) + 0xfee0));
  for (const command of blocked) {
    assert.equal(classifyCommand(wide(command), options).verdict, "block", command);
    assert.equal(classifyCommand(`\x1b[1m${command}\x1b[0m`, options).verdict, "block", command);
    assert.equal(classifyCommand([...command].join("\x1b[0m"), options).verdict, "block", command);
  }
});

test("whatever is thrown at it, there is a verdict", () => {
  const pieces = fc.constantFrom(
    ..."'\"`$(){}[]<>|&;#\\\n\t !*?~=-/a1".split(""),
    "$(",
    "<<E",
    "$" + "{",
    "$'",
    "rm",
    "\nE\n",
    "case x in ",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 60 }), (parts) => {
      assert.match(classifyCommand(parts.join(""), options).verdict, /^(?:allow|ask|block)$/);
    }),
    { numRuns: fewer(1500, 4) },
  );
});
