import assert from "node:assert/strict";
import { test } from "node:test";
import { commandIndex, helpAsOption, joinNames, strayProfile } from "./argv.ts";

const subcommands = new Set(["chat", "sessions", "config"]);

const joined: [string, string[], string[]][] = [
  ["words after -c are one name until the next option", ["-c", "my", "proj", "-w"], ["-c", "my proj", "-w"]],
  ["a sub-command ends the name", ["--resume", "a", "b", "chat"], ["--resume", "a b", "chat"]],
  ["the first word is the name even if it is a sub-command", ["-c", "chat", "sessions"], ["-c", "chat", "sessions"]],
  ["an option right after -c means no name", ["-c", "-w"], ["-c", "-w"]],
  ["values of other options are left alone", ["-q", "-c", "x"], ["-q", "-c", "x"]],
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
  ["-p as an option's value is a value", ["-z", "-p", "a b"], null],
  ["-p of a sub-command is the sub-command's", ["x", "-p", "a b"], null],
];
for (const [name, argv, expected] of stray) test(name, () => assert.equal(strayProfile(argv), expected));
