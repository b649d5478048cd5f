// A gateway whose disk fills up, or whose files may not grow, in the middle of its work: it says so, loses nothing, and continues when it can.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { answerTurns, lastSaid, ModelServer, startGateway, until } from "./support/gateway-rig.ts";
import { mountSmallDisk } from "./support/mounted.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

const run = promisify(execFile);

async function world(t: TestContext, place?: string) {
  const model = await ModelServer.start();
  const paper = await PaperServer.start();
  const made = await paperHome(model, paper);
  const home: TempHome =
    place === undefined
      ? made
      : {
          ...made,
          dir: place,
          at: (...parts) => join(place, ...parts),
          write: (name, text) => writeFile(join(place, name), text),
        };
  if (place !== undefined) await cp(made.dir, place, { recursive: true });
  const held = new Map<string, () => void>();
  answerTurns(model, async (request) => {
    // A turn that continues is told so behind what was said.
    const said =
      lastSaid(request)
        .match(/hello|slow one|while it is full|and now|too much/g)
        ?.at(-1) ?? "";
    if (said.startsWith("slow")) await new Promise<void>((resolve) => held.set(said, resolve));
    return { text: `heard: ${said}` };
  });
  const gateway = await startGateway(home);
  t.after(async () => {
    await gateway.kill();
    await paper.close();
    await model.close();
    await made[Symbol.asyncDispose]();
  });
  const answers = (text: string) => paper.textsOf("a").filter((one) => one === `heard: ${text}`).length;
  const answered = (text: string) =>
    until(`"${text}" is answered; there: ${JSON.stringify(paper.textsOf("a"))}`, () => answers(text) > 0, 60_000);
  return { model, paper, home, gateway, held, answers, answered };
}

/** Writes until nothing fits any more. */
async function fill(file: string): Promise<void> {
  for (let size = 1 << 20; size >= 256; size /= 2)
    for (;;) {
      const written = await writeFile(file, Buffer.alloc(size), { flag: "a" }).then(
        () => true,
        () => false,
      );
      if (!written) break;
    }
}

test("a full disk: what was acknowledged is answered once, what came meanwhile is taken when there is room", async (t) => {
  const disk = await mountSmallDisk(48 * 1024);
  if (!disk) return t.skip("SKIPPED: this machine does not let us mount a small disk");
  const one = await world(t, disk.dir);
  t.after(() => disk[Symbol.asyncDispose]());
  one.paper.say("a", "hello");
  await one.answered("hello");
  one.paper.say("a", "slow one");
  await until("the turn runs", () => one.held.has("slow one"));
  await fill(join(disk.dir, "filler"));
  one.held.get("slow one")?.();
  one.paper.say("a", "while it is full");
  await one.gateway.waitFor(/\[Paper\] failed: .*(?:disk|full)/i);
  assert.equal(one.answers("while it is full"), 0);
  one.held.delete("slow one");
  await rm(join(disk.dir, "filler"));
  // The turn is asked again where its answer could not be stored.
  await until(
    "the first one is answered",
    () => {
      one.held.get("slow one")?.();
      return one.answers("slow one") > 0;
    },
    60_000,
  );
  await one.answered("while it is full");
  one.paper.say("a", "and now");
  await one.answered("and now");
  for (const text of ["hello", "slow one", "while it is full", "and now"]) assert.equal(one.answers(text), 1, text);
  assert.deepEqual(rowsOf(one.home, "SELECT outcome FROM inbox WHERE outcome IS NOT 'answered'"), []);
});

test("files that may not grow (a quota, a limit): the gateway lives, says so, and continues when they may", async (t) => {
  const one = await world(t);
  one.paper.say("a", "hello");
  await one.answered("hello");
  const limit = (bytes: string) => run("prlimit", ["--pid", String(one.gateway.pid), `--fsize=${bytes}:`]);
  if (
    await limit("unlimited").then(
      () => false,
      () => true,
    )
  )
    return t.skip("SKIPPED: no prlimit on this machine");
  await limit("4096");
  one.paper.say("a", "too much");
  await one.gateway.waitFor(/\[Paper\] failed: /);
  await limit("unlimited");
  await one.answered("too much");
  assert.equal(one.answers("too much"), 1);
});
