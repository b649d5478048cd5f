import assert from "node:assert/strict";
import { test } from "node:test";
import { isDestructiveCommand, isReadOnlyCommand } from "./command-kinds.ts";

const readOnly = [
  "ls",
  "sleep 1",
  "echo hello 'a > b'",
  "cat a | grep b && pwd",
  "ls; pwd;",
  "ls 2>/dev/null",
  "ls 2>&1 | head -3",
  "grep x < file",
  "find . -name '*.ts'",
  "git status",
  "git -C dir log --oneline -5",
  "git diff HEAD~1",
  "git show x",
  "git branch --list",
  "node -v",
  "python3 --version",
  "date",
  "date +%s",
  "echo $(ls) `pwd` $HOME",
  "rg -n pattern src",
  "uname -a && df -h && du -sh .",
];

const notReadOnly = [
  "",
  "rm x",
  "ls > f",
  "ls >> f",
  "cd x",
  "cd x && ls",
  "X=1 ls",
  "X=1",
  "ls || pwd",
  "ls & pwd",
  "(ls)",
  "! ls",
  "if true; then ls; fi",
  "git branch x",
  "git branch",
  "git checkout x",
  "git diff --output=f",
  "git -c core.pager=x log",
  "find . -delete",
  "find . -exec ls {} +",
  "find . -ok rm {} +",
  "find . $ACTION",
  "rg --pre x y",
  "rg --pre=x y",
  "echo $(rm x)",
  "echo `rm x`",
  "cat <(rm x)",
  "ls >(tee x)",
  "echo $" + "{x:=y}",
  "echo $((i++))",
  "date -s 2020-01-01",
  "node script.js",
  "node -v x",
  "env node -v",
  "sudo ls",
  "$CMD x",
  "echo 'unfinished",
  "tee x",
  "sort -o f f",
];

test("what only looks is read-only", () => {
  for (const command of readOnly) assert.equal(isReadOnlyCommand(command), true, command);
});

test("anything that might change something is not read-only", () => {
  for (const command of notReadOnly) assert.equal(isReadOnlyCommand(command), false, command);
});

const destructive = [
  "rm x",
  "rmdir x",
  "cp a b",
  "install a b",
  "mv a b",
  "sed -i s/a/b/ x",
  "sed -i.bak s/a/b/ x",
  "sed --in-place s/a/b/ x",
  "truncate -s 0 x",
  "dd if=a of=b",
  "shred x",
  "git reset HEAD",
  "git -C x clean -n",
  "git checkout main",
  "echo a > b",
  "ls &> b",
  "ls >| b",
  "> b",
  "ls && sudo rm x",
  "bash -c 'rm x'",
  "find . -name x | xargs rm",
  "(echo a) > b",
];

const constructive = [
  "ls",
  "echo a >> b",
  "echo 'rm x'",
  "git commit -m 'rm x'",
  "git status",
  "sed -n p x",
  "ls > /dev/null 2>&1",
  "grep rm x",
  "man cp",
  "cat reset",
];

test("what may overwrite or remove files is destructive", () => {
  for (const command of destructive) assert.equal(isDestructiveCommand(command), true, command);
});

test("what adds or only mentions is not destructive", () => {
  for (const command of constructive) assert.equal(isDestructiveCommand(command), false, command);
});
