import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sampleOf } from "../../test/support/sample.ts";
import { RULES } from "./danger/table.ts";
import { HARDLINE } from "./hardline.ts";
import { type ClassifyOptions, classifyCommand } from "./verdict.ts";

interface Case {
  readonly command: string;
  readonly verdict: "allow" | "ask" | "block";
  readonly category: string | null;
}

const directory = join(import.meta.dirname, "..", "..", "test", "fixtures", "commands");
const options: ClassifyOptions = {
  home: "/home/me/.hermes",
  osHome: "/home/me",
  sudoPasswordSet: false,
  denyGlobs: [],
};

const files = readdirSync(directory).map((name) => ({
  name,
  cases: readFileSync(join(directory, name), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Case => JSON.parse(line)),
}));
const cases = files.flatMap((file) => file.cases);

for (const file of files) {
  test(`every command of ${file.name} gets its verdict and category`, () => {
    const wrong = file.cases.flatMap(({ command, verdict, category }) => {
      const got = classifyCommand(command, options);
      if (got.verdict === verdict && got.category === category) return [];
      return [`${JSON.stringify(command)}: wanted ${verdict} (${category}), got ${got.verdict} (${got.category})`];
    });
    assert.deepEqual(wrong, []);
  });
}

test("every key of both tables has a command that reaches it", () => {
  const reached = new Set(cases.map(({ category }) => category));
  const unreachable = ["fork bomb"];
  const keys = [...HARDLINE, ...RULES.map(({ rule }) => rule)].map(({ key }) => key);
  const missing = keys.filter((key) => !reached.has(key) && !unreachable.includes(key));
  assert.deepEqual(missing, []);
  assert.ok(cases.length >= 300);
});

test("a sudo that reads its password is only asked about when a password is stored", () => {
  const verdict = classifyCommand("sudo -S ls", { ...options, sudoPasswordSet: true });
  assert.equal(verdict.category, "sudo with privilege flag (stdin/askpass/shell/list)");
  assert.equal(verdict.verdict, "ask");
});

test("a glob of the user blocks in any case, in payloads and behind quotes", () => {
  const denying = { ...options, denyGlobs: ["Terraform destroy*", "*~/.hermes/secret*"] };
  for (const command of [
    "terraform destroy -auto-approve",
    "ls && TERRAFORM destroy",
    "bash -c 'terraform destroy'",
    "terra''form destroy",
    "cat /home/me/.hermes/secret.txt",
  ]) {
    const verdict = classifyCommand(command, denying);
    assert.equal(verdict.verdict, "block", command);
    assert.equal(verdict.hardline, false);
    assert.match(verdict.reason, /approvals\.deny/);
  }
  assert.equal(classifyCommand("terraform plan", denying).verdict, "allow");
});

test("a command too long, too dense or too nested to read is refused for good", () => {
  const huge = [
    `${"echo x;".repeat(20_000)}`,
    "a".repeat(4097),
    ";".repeat(25_000),
    `${"$(".repeat(500)}ls${")".repeat(500)}`,
    `${"eval ".repeat(200)}ls`,
  ];
  for (const command of huge) {
    const verdict = classifyCommand(command, options);
    assert.equal(verdict.category, "command parser limit exceeded");
    assert.equal(verdict.hardline, true);
  }
});

test("a long hostile command is judged without effort that grows with its square", { timeout: 60_000 }, () => {
  const pieces = ["((", "$((", "$(", "{", "f() {", "a=$a$a;", "chmod +x a;", "curl -o a b;", "cat <<E\n$(ls)\nE\n"];
  pieces.push(
    "env ",
    "sudo ",
    "foo 'rm x';",
    "foo rm ",
    "x=(a b c);$" + "{x[1]};",
    "mkfifo q; sh < q;",
    "x=aaaa;$" + "{x%b};",
  );
  for (const piece of sampleOf(pieces, 4, "pieces")) {
    // A quadratic step would need minutes for one of these.
    const verdict = classifyCommand(`${piece.repeat(Math.floor(100_000 / piece.length))}\nls`, options);
    assert.notEqual(verdict.category, "");
  }
  const statements = ["alter table x ", "update a set b ", "rm -rf x;", "-v ", "deleteMany( ", "[$(", "w ", "\t "];
  const scripts = [":", '"\\', "/", "\n", " r", "system (", "\\a", "s/a/b/e;"];
  for (const program of ["foo", "psql -c", "docker run", "mongosh --eval"])
    for (const piece of sampleOf(statements, 4, program))
      classifyCommand(`${program} '${piece.repeat(Math.floor(40_000 / piece.length))}'; ls`, options);
  for (const program of ["make --eval", "awk", "sed", "mysql -e", "vim -c", "gdb -ex", "expect -c"])
    for (const piece of sampleOf(scripts, 4, program))
      classifyCommand(`${program} '${piece.repeat(Math.floor(40_000 / piece.length))}'; ls`, options);
  classifyCommand(`f() { ${"echo a; ".repeat(4000)} }; ${"f x; ".repeat(2000)}`, options);
  classifyCommand("echo 'bash x.sh; bash y.sh' > x.sh; echo 'bash x.sh' > y.sh; bash x.sh; ".repeat(200), options);
});

test("a relative name counts by where the command begins", () => {
  const at = (cwd: string, command: string) => classifyCommand(command, { ...options, cwd }).category;
  assert.equal(at("/", "rm -rf *"), "recursive delete of root filesystem");
  assert.equal(at("/", "rm -rf ./*"), "recursive delete of root filesystem");
  assert.equal(at("/etc", "sudo rm -rf ."), "recursive delete of system directory");
  assert.equal(at("/home/me", "rm -rf *"), "recursive delete of home directory");
  assert.equal(at("/home/me/project", "rm -rf .."), "recursive delete of home directory");
  assert.equal(at("/home/me/project", "rm -rf *"), "recursive delete");
  assert.equal(at("/", "cd /tmp/x && rm -rf *"), "delete in root path");
  assert.equal(at("/home/me/.hermes", "echo x > auth.json"), "overwrite system file via redirection");
  assert.equal(
    at("/home/me/.ssh", "cp x authorized_keys"),
    "copy/move file into sensitive credential/SSH/shell-rc path",
  );
  assert.equal(at("/home/me/.hermes", "rm state.db"), "change the agent's own guards");
  for (const cwd of ["/srv/project", "/home/me/project", "/root/project", "/private/tmp/x", "/private/var/folders/x"])
    for (const command of ["rm file.txt", "echo x > out.txt", "cp a b", "cat notes", "tar xf a.tgz -C out"])
      assert.equal(at(cwd, command), null, `${cwd}: ${command}`);
});
