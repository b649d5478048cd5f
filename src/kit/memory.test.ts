import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const memory = fileURLToPath(new URL("memory.ts", import.meta.url));

/** In a process of its own: V8's flags stay. */
function run(code: string): unknown {
  const script = `import { restAwhile, working } from ${JSON.stringify(memory)};
    import { getHeapStatistics } from "node:v8";
    const used = () => getHeapStatistics().used_heap_size;
    const wait = (ms) => new Promise((done) => setTimeout(done, ms));
    const litter = () => { for (let at = 0, kept = []; at < 40; at++) kept.push(new Array(1e5).fill(at)); };
    const until = async (ok) => { for (let at = 0; at < 200 && !ok(); at++) await wait(20); };
    ${code}`;
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }));
}

test("what nothing holds is given back while nobody waits, again and again, and no process is held up for it", () => {
  const rounds = run(`
    const rounds = [];
    for (let round = 0; round < 3; round++) {
      const served = working();
      litter();
      const before = used();
      served();
      await until(() => used() < before - 2e7);
      rounds.push([before, used()]);
    }
    console.log(JSON.stringify(rounds));
    working()();
  `) as [number, number][];
  for (const [before, after] of rounds) assert.ok(after < before - 2e7, `${before} then ${after}`);
  const [first, , last] = rounds.map(([, after]) => after) as [number, number, number];
  assert.ok(last < first + 5e6, `${first} at first, ${last} at last`);
});

test("nothing is tidied up while anybody else still waits", () => {
  const [during, after] = run(`
    const [one, other] = [working(), working()];
    litter();
    const before = used();
    one();
    await wait(100);
    const during = before - used();
    other();
    await until(() => used() < before - 2e7);
    console.log(JSON.stringify([during, before - used()]));
  `) as [number, number];
  assert.ok(during < 5e6 && after > 2e7, `${during} bytes while waiting, ${after} bytes then`);
});

test("a rest that was about to begin waits when somebody asks again", () => {
  const during = run(`
    const one = working();
    litter();
    const before = used();
    one();
    const other = working();
    await wait(100);
    console.log(JSON.stringify(before - used()));
    other();
  `) as number;
  assert.ok(during < 5e6, `${during} bytes while waiting`);
});

test("a process that waits gives back what its start left, and leaves its memory alone where little came together since", () => {
  const [before, after, again] = run(`
    litter();
    const before = used();
    await restAwhile();
    const after = used();
    const { PerformanceObserver } = await import("node:perf_hooks");
    let collections = 0;
    const observer = new PerformanceObserver((list) => (collections += list.getEntries().filter(({ detail }) => detail.kind === 4).length));
    observer.observe({ entryTypes: ["gc"] });
    await restAwhile();
    await wait(50);
    console.log(JSON.stringify([before, after, collections]));
  `) as [number, number, number];
  assert.ok(after < before - 2e7, `${before} then ${after}`);
  assert.equal(again, 0);
});
