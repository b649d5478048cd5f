import assert from "node:assert/strict";
import { test } from "node:test";
import { firstWord, joinNames } from "./argv.ts";

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

const first: [string, string[], string | null][] = [
  ["the first word is the sub-command", ["sessions", "list"], "sessions"],
  ["an option's value is not a sub-command", ["-m", "chat"], null],
  ["a name is not a sub-command", ["-c", "my proj", "chat"], "chat"],
  ["options alone name no sub-command", ["--yolo"], null],
];
for (const [name, argv, expected] of first) test(name, () => assert.equal(firstWord(argv), expected));
