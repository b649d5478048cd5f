import assert from "node:assert/strict";
import { readFile, rename, writeFile } from "node:fs/promises";
import { test } from "node:test";
import fc from "fast-check";
import { memoryHome, memoryRun } from "../../test/support/memory.ts";
import { parseEntries } from "./entries.ts";

/** One thing that happens to an entry; `<n>` in its text makes every entry's name unique. */
type Happening = {
  readonly kind: "add" | "remove" | "replace" | "batch" | "hand-add" | "hand-remove";
  readonly n: number;
};

const happening: fc.Arbitrary<Happening> = fc.record({
  kind: fc.constantFrom("add", "add", "remove", "replace", "batch", "hand-add", "hand-remove"),
  n: fc.integer({ min: 0, max: 11 }),
});
// What happens in one moment happens to different entries: then every order of it has the same end.
const moment = fc.uniqueArray(happening, { minLength: 1, maxLength: 4, selector: ({ n }) => n });

test("whatever two sessions and a hand do to the file, an entry goes only when somebody removes it", async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(moment, { maxLength: 6 }), async (moments) => {
      const box = await memoryHome(t);
      const sessions = [box.memory, await box.open()];
      const expected = new Map<number, string>();
      let turn = 0;
      const tool = async (n: number, args: Record<string, unknown>) => {
        const session = sessions[n % 2];
        assert.ok(session);
        const result = await session.apply({ target: "user", ...args }, memoryRun({ turn: turn++ }));
        return "entry_count" in result;
      };
      const byHand = async (n: number, change: (entries: readonly string[]) => readonly string[]) => {
        const text = await readFile(box.at("USER.md"), "utf8").catch(() => "");
        const joiner = n % 2 === 0 ? "\r\n\r\n§\r\n" : "\n§\n";
        await writeFile(box.at("edited"), `${change(parseEntries(text)).join(joiner)}\n`);
        await rename(box.at("edited"), box.at("USER.md"));
      };
      const happen = async ({ kind, n }: Happening) => {
        const name = `<${n}>`;
        const present = expected.has(n);
        if (kind === "add") {
          assert.equal(await tool(n, { action: "add", content: `${name} fact` }), true);
          expected.set(n, expected.get(n) ?? `${name} fact`);
        } else if (kind === "remove") {
          assert.equal(await tool(n, { action: "remove", old_text: name }), present);
          expected.delete(n);
        } else if (kind === "replace") {
          assert.equal(await tool(n, { action: "replace", old_text: name, content: `${name} news` }), present);
          if (present) expected.set(n, `${name} news`);
        } else if (kind === "batch" && present) {
          const operations = [
            { action: "remove", old_text: name },
            { action: "add", content: `${name} again` },
          ];
          assert.equal(await tool(n, { operations }), true);
          expected.set(n, `${name} again`);
        }
      };
      for (const things of moments) {
        // A hand edit takes no lock: it happens between the moments of the tools.
        for (const { kind, n } of things) {
          if (kind === "hand-add" && !expected.has(n)) {
            await byHand(n, (entries) => [...entries, `<${n}> by hand`]);
            expected.set(n, `<${n}> by hand`);
          }
          if (kind === "hand-remove") {
            await byHand(n, (entries) => entries.filter((entry) => !entry.includes(`<${n}>`)));
            expected.delete(n);
          }
        }
        const fresh = things.filter(({ kind, n }) => kind !== "add" || !expected.has(n));
        await Promise.all(fresh.filter(({ kind }) => !kind.startsWith("hand")).map(happen));
        const entries = parseEntries(await readFile(box.at("USER.md"), "utf8").catch(() => ""));
        assert.deepEqual([...entries].sort(), [...expected.values()].sort());
      }
      const records = await box.memory.history();
      for (const [index, record] of records.entries()) assert.deepEqual(record.before, records[index - 1]?.after ?? []);
    }),
    { numRuns: 25 },
  );
});
