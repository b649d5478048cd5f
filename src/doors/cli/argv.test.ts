import assert from "node:assert/strict";
import { test } from "node:test";
import { commandIndex, helpAsOption, joinNames, joinPrompt, strayProfile } from "./argv.ts";

const subcommands = new Set(["chat", "sessions", "config"]);

const joined: [string, string[], string[]][] = [
  ["words after -c are one name until the next option", ["-c", "my", "proj", "-w"], ["-c", "my proj", "-w"]],
  ["a sub-command ends the name", ["--resume", "a", "b", "chat"], ["--resume", "a b", "chat"]],
  ["the first word is the name even if it is a sub-command", ["-c", "chat", "sessions"], ["-c", "chat", "sessions"]],
  ["an option right after -c means no name", ["-c", "-w"], ["-c", "-w"]],
  ["values of other options are left alone", ["-q", "x", "-c", "a", "b"], ["-q", "x", "-c", "a b"]],
  ["nothing after -- is touched", ["--", "-c", "a", "b"], ["--", "-c", "a", "b"]],
];
for (const [name, argv, expected] of joined) {
  test(name, () => assert.deepEqual(joinNames(argv, subcommands), expected));
}

const first: [string, string[], number][] = [
  ["the first word is the sub-command", ["sessions", "list"], 0],
  ["an option's value is not a sub-command", ["-m", "chat"], -1],
  ["an option's value is not taken for the same word behind it", ["-m", "chat", "--yolo", "chat"], 3],
  ["a name is not a sub-command", ["-c", "my proj", "chat"], 2],
  ["options alone name no sub-command", ["--yolo"], -1],
];
for (const [name, argv, expected] of first) test(name, () => assert.equal(commandIndex(argv), expected));

const helps: [string, string[], string[]][] = [
  ["help is --help", ["help"], ["--help"]],
  ["help of a sub-command is its --help", ["help", "sessions", "list"], ["sessions", "list", "--help"]],
  ["a prompt called help is a prompt", ["-z", "help"], ["-z", "help"]],
];
for (const [name, argv, expected] of helps) test(name, () => assert.deepEqual(helpAsOption(argv), expected));

const stray: [string, string[], string | null][] = [
  ["a profile that is no name is told", ["-p", "a b", "sessions"], "a b"],
  ["also when it is joined", ["--yolo", "--profile=a b"], "a b"],
  ["-p without a value is left to the parser", ["-p"], null],
  ["-p is an option behind -z too", ["-z", "-p", "a b"], "a b"],
  ["-p of a sub-command is the sub-command's", ["x", "-p", "a b"], null],
];
for (const [name, argv, expected] of stray) test(name, () => assert.equal(strayProfile(argv), expected));

const prompts: [string, string[], string[]][] = [
  ["a prompt behind its option stays there", ["-z", "hi", "--resume", "a", "b"], ["-z", "hi", "--resume", "a", "b"]],
  ["an option behind -z is an option", ["-z", "--resume", "ID", "hi"], ["--oneshot=hi", "--resume", "ID"]],
  [
    "the same goes for -q and for joined values",
    ["chat", "-q", "--model=x", "hi"],
    ["chat", "--query=hi", "--model=x"],
  ],
  ["a prompt may be named like a command", ["-z", "--yolo", "sessions"], ["--oneshot=sessions", "--yolo"]],
  ["- is the prompt from stdin", ["-z", "--yolo", "-"], ["--oneshot=-", "--yolo"]],
  ["behind -- a prompt may look like an option", ["-z", "--yolo", "--", "--x"], ["--oneshot=--x", "--yolo"]],
  ["a sentence that begins with a dash is a prompt", ["-z", "--resume: what is it?"], ["-z", "--resume: what is it?"]],
  ["a negative number is a prompt", ["-z", "-5"], ["-z", "-5"]],
  ["an empty prompt is one", ["-z", "", "--yolo"], ["-z", "", "--yolo"]],
  ["a question for help is answered", ["-z", "--help"], ["--help"]],
  ["other commands read their own -z", ["other", "-z", "--yolo"], ["other", "-z", "--yolo"]],
];
for (const [name, argv, expected] of prompts) test(name, () => assert.deepEqual(joinPrompt(argv), expected));

const promptless: [string[], RegExp][] = [
  [["-z"], /^-z needs a prompt: hermes -z PROMPT/],
  [["-z", "--resume", "ID"], /^-z needs a prompt/],
  [["-z", "-c", "title", "--yolo"], /^-z needs a prompt/],
  [["chat", "-q", "--quiet"], /^-q needs a prompt/],
  [
    ["-z", "--resume", "my", "talk", "hi"],
    /^-z takes one prompt, but there are several candidates: "talk", "hi"\. Quote the prompt/,
  ],
  [["-z", "hi", "-m", "--yolo"], /^-m needs a value, but "--yolo" is an option\.$/],
];
for (const [argv, message] of promptless) {
  test(`${argv.join(" ")} is a usage error`, () => assert.throws(() => joinPrompt(argv), { message, exitCode: 2 }));
}
