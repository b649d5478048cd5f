// What every environment owes, whatever it is made of. Each implementation runs this suite over its own factory.
import assert from "node:assert/strict";
import { after, before, test as nodeTest } from "node:test";
import type { Environment, ExecuteOptions } from "../../src/sandbox/environment.ts";
import { cleared } from "./cleared.ts";
import { sampleOf } from "./sample.ts";

export interface ConformanceSubject {
  readonly environment: Environment;
  /** A directory inside the environment that exists, is writable and is its starting directory. */
  readonly directory: string;
  release(): Promise<void>;
}

/** With `part` one of so many of its tests is drawn: for what is slow to start, on the same code as the others. */
export function environmentConformance(kind: string, open: () => Promise<ConformanceSubject>, { part = 1 } = {}): void {
  const test = (name: string, body: () => Promise<void>) => {
    if (part === 1 || sampleOf([name], part, name).length > 0) nodeTest(name, body);
  };
  let subject: ConformanceSubject;
  before(async () => {
    subject = await open();
  });
  after(() => subject.release());

  const run = (command: string, options: Partial<ExecuteOptions> = {}) =>
    subject.environment.execute(cleared(command), {
      timeoutMs: 30_000,
      signal: new AbortController().signal,
      ...options,
    });

  test(`${kind}: output, error output and exit code come back in order`, async () => {
    const result = await run("echo one; echo two >&2; echo three > /dev/stdout; exit 7");
    assert.equal(result.output, "one\ntwo\nthree\n");
    assert.equal(result.exitCode, 7);
    assert.deepEqual([result.timedOut, result.interrupted, result.omittedChars], [false, false, 0]);
  });

  test(`${kind}: output without a newline at its end stays so`, async () => {
    assert.equal((await run("printf x")).output, "x");
    assert.equal((await run("true")).output, "");
    assert.equal((await run("printf '\\n\\n'")).output, "\n\n");
  });

  test(`${kind}: exports, functions, aliases and the directory live on`, async () => {
    await run(
      "export CARRIED=\"a 'b'\n\\$c\"; greet() { echo \"hi $1\"; }; alias shout='echo LOUD'; mkdir -p sub; cd sub",
    );
    const result = await run('printf "%s|" "$CARRIED"; greet you; shout; pwd');
    assert.equal(result.output, `a 'b'\n$c|hi you\nLOUD\n${subject.directory}/sub\n`);
    assert.equal(subject.environment.cwd, `${subject.directory}/sub`);
    await run("unset CARRIED; unset -f greet; unalias shout; cd ..");
    assert.equal((await run('echo "[$CARRIED]"')).output, "[]\n");
    assert.equal(subject.environment.cwd, subject.directory);
  });

  test(`${kind}: state also survives a command that ends its shell`, async () => {
    assert.equal((await run("export LEFT=1; cd /; exit 3")).exitCode, 3);
    assert.equal((await run("echo $LEFT; pwd")).output, "1\n/\n");
    subject.environment.setCwd(subject.directory);
  });

  test(`${kind}: strictness of one command does not leak into the next`, async () => {
    assert.equal((await run("set -eu; false; echo never")).output, "");
    assert.equal((await run('false; echo "still here$UNSET_NAME"')).output, "still here\n");
  });

  test(`${kind}: a directory for one call does not move the session`, async () => {
    const result = await run("pwd", { cwd: "/", keepCwd: true });
    assert.equal(result.output, "/\n");
    assert.equal(subject.environment.cwd, subject.directory);
  });

  test(`${kind}: input arrives byte for byte and nothing of it runs`, async () => {
    const stdin = "EOF\n__END__\n'\"`touch marker`$(touch marker)\ntouch marker\n\\ ünïcödé 漢字\n";
    assert.equal((await run("cat", { stdin })).output, stdin);
    assert.equal((await run("test -e marker && echo ran")).output, "");
    assert.equal((await run("cat")).output, "", "no input means end of file at once");
    for (const word of ["none", "open", ""]) assert.equal((await run("cat", { stdin: word })).output, word);
  });

  test(`${kind}: a command longer than an argument may be runs all the same`, async () => {
    const word = "x".repeat(300_000);
    assert.equal((await run(`echo ${word} | wc -c`)).output.trim(), "300001");
  });

  test(`${kind}: broken text is replaced, split characters are not`, async () => {
    assert.equal((await run("printf '\\xff\\xe6\\xbc'; sleep 0.05; printf '\\xa2ok'")).output, "\ufffd漢ok");
  });

  test(`${kind}: output is seen while it comes, without our own marks`, async () => {
    await run("mkfifo go");
    const pieces: string[] = [];
    const first = Promise.withResolvers<void>();
    const running = run("echo first; read -r line < go; echo second", {
      onOutput: (text) => {
        pieces.push(text);
        first.resolve();
      },
    });
    await first.promise;
    await run("echo now > go");
    const result = await running;
    assert.equal(pieces.join(""), "first\nsecond\n");
    assert.equal(result.output, "first\nsecond\n");
  });

  test(`${kind}: a timeout ends the whole group and keeps what was printed`, async () => {
    const result = await run("echo before; (sleep 300 & echo $! > child.pid; wait); echo after", { timeoutMs: 400 });
    assert.deepEqual([result.exitCode, result.timedOut, result.interrupted], [124, true, false]);
    assert.match(result.output, /^before\n/);
    assert.doesNotMatch(result.output, /after/);
    assert.equal(
      (await run("while kill -0 $(cat child.pid 2>/dev/null) 2>/dev/null; do sleep 0.02; done; echo gone")).output,
      "gone\n",
    );
  });

  test(`${kind}: a command that ignores the polite signal is killed`, async () => {
    const stubborn = "trap '' TERM; echo $$ > stubborn.pid; while true; do sleep 0.2; done";
    const result = await run(stubborn, { timeoutMs: 300 });
    assert.equal(result.exitCode, 124);
    const gone = await run(
      "while kill -0 $(cat stubborn.pid 2>/dev/null) 2>/dev/null; do sleep 0.05; done; echo gone",
      {
        timeoutMs: 5000,
      },
    );
    assert.equal(gone.output, "gone\n");
  });

  test(`${kind}: an abort interrupts`, async () => {
    const abort = new AbortController();
    const running = run("echo up; sleep 300", { signal: abort.signal, onOutput: () => abort.abort() });
    const result = await running;
    assert.deepEqual([result.exitCode, result.timedOut, result.interrupted], [130, false, true]);
    assert.equal((await run("echo never", { signal: abort.signal })).output, "");
  });

  test(`${kind}: a grandchild that keeps the output open does not hold the call`, async () => {
    const result = await run("sleep 20 & echo $! > held.pid; echo done", { timeoutMs: 15_000 });
    assert.equal(result.output, "done\n");
    assert.equal(result.timedOut, false);
    await run("kill $(cat held.pid)");
  });

  test(`${kind}: endless output is kept within bounds, beginning and end`, async () => {
    const result = await run("echo begin; head -c 30000000 /dev/zero | tr '\\0' a; echo; echo end");
    assert.match(result.output, /^begin\na/);
    assert.match(result.output, /a\nend\n$/);
    assert.ok(result.output.length < 6_000_000);
    assert.equal(result.output.length + result.omittedChars, 30_000_000 + "begin\n\nend\n".length);
    assert.ok(result.headChars > 0 && result.headChars < result.output.length);
  });

  test(`${kind}: a directory that is gone is replaced by its nearest ancestor, with a note`, async () => {
    const result = await run("pwd", { cwd: `${subject.directory}/no/such/place`, keepCwd: true });
    assert.equal(result.output, `${subject.directory}\n`);
    assert.match(result.note ?? "", /no\/such\/place does not exist/);
  });

  test(`${kind}: our own scripts see no aliases and leave nothing behind`, async () => {
    await run("alias cat='echo tampered'");
    assert.equal((await run("cat; export PROBE=1; cd /", { stdin: "x", stateless: true })).output, "x");
    assert.equal((await run('echo "[$PROBE]"; pwd')).output, `[]\n${subject.directory}\n`);
    await run("unalias cat");
  });

  test(`${kind}: two commands run at once`, async () => {
    const both = Promise.all([
      run("echo a > one; until test -e two; do sleep 0.02; done; echo saw two"),
      run("echo b > two; until test -e one; do sleep 0.02; done; echo saw one"),
    ]);
    assert.deepEqual(
      (await both).map((result) => result.output),
      ["saw two\n", "saw one\n"],
    );
    await run("rm -f one two");
  });

  test(`${kind}: a background child talks, listens and ends`, async () => {
    await run("export SEEN_BY_CHILD=yes");
    const child = await subject.environment.spawn(
      cleared("echo $SEEN_BY_CHILD; while read -r x; do echo got $x; done; exit 5"),
      {},
    );
    let output = "";
    child.onOutput((text) => {
      output += text;
    });
    assert.equal(await child.write("ä\n"), 3);
    child.closeInput();
    assert.equal(await child.exited, 5);
    assert.equal(output, "yes\ngot ä\n");
    await assert.rejects(child.write("late"));
  });

  test(`${kind}: a background child is killed with its family`, async () => {
    const child = await subject.environment.spawn(cleared("sleep 300 & echo $!; wait"), {});
    const grandchild = await new Promise<string>((resolve) => {
      child.onOutput(resolve);
    });
    await child.kill();
    // Asked first, and killed where that took too long.
    assert.ok([-15, -9].includes((await child.exited) ?? 0));
    assert.equal(
      (await run(`while kill -0 ${grandchild.trim()} 2>/dev/null; do sleep 0.02; done; echo gone`)).output,
      "gone\n",
    );
  });
}

/** What a command in a pseudo-terminal prints that reads one line; it is given "hello". */
export async function sayHello(environment: Environment, command: string) {
  const child = await environment.spawn(cleared(command), { pty: true });
  let output = "";
  child.onOutput((text) => {
    output += text;
  });
  await child.write("hello\n");
  assert.equal(await child.exited, 0);
  assert.match(output, /got hello/);
  return { output, note: child.note };
}
