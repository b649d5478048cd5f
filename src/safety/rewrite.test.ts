import assert from "node:assert/strict";
import { test } from "node:test";
import { rewriteCompoundBackground, rewriteSudo } from "./rewrite.ts";

const background: readonly (readonly [string, string])[] = [
  ["A && B &", "A && { B & }"],
  ["A || B &", "A || { B & }"],
  ["A && B && C | D &", "A && B && { C | D & }"],
  ["A && B & C", "A && { B & }; C"],
  ["A && B &\nC", "A && { B & }\nC"],
  ["A && B & # later", "A && { B & } # later"],
  ["A && B >x 2>&1 &", "A && { B >x 2>&1 & }"],
  ["A &&\n  B &", "A &&\n  { B & }"],
  ["A && B & C && D &", "A && { B & }; C && { D & }"],
  ["a; b &", "a; b &"],
  ["b &", "b &"],
  ["(a && b) &", "(a && b) &"],
  ["(a && b &)", "(a && b &)"],
  ["echo 'a && b &'", "echo 'a && b &'"],
  ["a && b &> x", "a && b &> x"],
  ["a && b 2>&1", "a && b 2>&1"],
  ["a && b |& c", "a && b |& c"],
  ["a && b \\&", "a && b \\&"],
  ["a && 'b &", "a && 'b &"],
];

test("only the last part of a list goes to the background", () => {
  for (const [before, after] of background) assert.equal(rewriteCompoundBackground(before), after);
});

const sudo: readonly (readonly [string, string, number])[] = [
  ["sudo ls", "sudo -S -p '' ls", 1],
  ["  sudo -u x ls", "  sudo -S -p '' -u x ls", 1],
  ["a && sudo b; X=1 sudo c", "a && sudo -S -p '' b; X=1 sudo -S -p '' c", 2],
  ["cat f | sudo tee g", "cat f | sudo -S -p '' tee g", 1],
  ["echo $(sudo id)", "echo $(sudo -S -p '' id)", 1],
  ['echo "$(sudo id)"', "echo \"$(sudo -S -p '' id)\"", 1],
  ["(sudo a)", "(sudo -S -p '' a)", 1],
  ["if true; then sudo a; fi", "if true; then sudo -S -p '' a; fi", 1],
  ["env A=1 sudo b", "env A=1 sudo -S -p '' b", 1],
  ["echo sudo", "echo sudo", 0],
  ["visudo", "visudo", 0],
  ["sudoedit x", "sudoedit x", 0],
  ["'sudo' x", "'sudo' x", 0],
  ["echo 'sudo x'", "echo 'sudo x'", 0],
  ["# sudo x", "# sudo x", 0],
  ["ls # sudo x", "ls # sudo x", 0],
  ["cat <<E\nsudo x\nE", "cat <<E\nsudo x\nE", 0],
];

test("every sudo the shell would run reads its password from input, and no other word does", () => {
  for (const [before, after, count] of sudo) assert.deepEqual(rewriteSudo(before, true), { command: after, count });
});

test("without a password sudo is left alone", () => {
  assert.deepEqual(rewriteSudo("sudo ls", false), { command: "sudo ls", count: 0 });
});
