import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinCommands } from "./builtin.ts";
import type { CommandDefinition } from "./context.ts";
import { CommandRegistry, helpText, parseTyped, subcommandsOf, takeSkipWord } from "./registry.ts";

const command = (name: string, extra: Partial<CommandDefinition> = {}): CommandDefinition => ({
  name,
  description: `does ${name}`,
  category: "Session",
  run: async () => undefined,
  ...extra,
});
const registry = new CommandRegistry([
  command("new", { aliases: ["reset"] }),
  command("resume"),
  command("reasoning"),
  command("quit", { aliases: ["exit"], category: "Exit", availability: "cli" }),
  command("start", { availability: "gateway" }),
]);

const found: [string, string][] = [
  ["new", "new"],
  ["RESET", "new"],
  ["//quit", "quit"],
  ["resu", "resume"],
  ["ex", "quit"],
];
for (const [typed, name] of found) {
  test(`/${typed} runs /${name}`, () => {
    const match = registry.find(typed);
    assert.equal(match.type === "found" && match.command.name, name);
  });
}

test("a prefix of several commands of equal length lists them", () => {
  const match = new CommandRegistry([command("aab"), command("aac")]).find("aa");
  assert.deepEqual(match, { type: "ambiguous", names: ["aab", "aac"] });
});

test("a prefix whose shortest candidate stands alone takes that one", () => {
  const match = registry.find("re");
  assert.equal(match.type === "found" && match.command.name, "new"); // reset is shorter than resume and reasoning
});

test("an unknown name is unknown", () => assert.equal(registry.find("xyz").type, "unknown"));

test("a name that is taken is refused and changes nothing", () => {
  assert.equal(registry.register(command("exit")), "exit");
  assert.equal(registry.get("exit")?.name, "quit");
});

const typed: [string, { name: string; args: string } | null][] = [
  ["/help", { name: "help", args: "" }],
  ["/etc", { name: "etc", args: "" }],
  ["/title  My  talk ", { name: "title", args: "My  talk" }],
  ["/a/b", null],
  ["//x", null],
  ["/Users/x/f.md fix", null],
  ["hello /help", null],
];
for (const [text, expected] of typed)
  test(`${JSON.stringify(text)} is read right`, () => assert.deepEqual(parseTyped(text), expected));

const skips: [string, string, boolean][] = [
  ["now My Session", "My Session", true],
  ["My Session --yes", "My Session", true],
  ["-Y", "", true],
  ["not now please", "not now please", false],
];
for (const [args, rest, skip] of skips) {
  test(`the arguments ${JSON.stringify(args)} ${skip ? "skip" : "keep"} the question`, () => {
    assert.deepEqual(takeSkipWord(args), { args: rest, skip });
  });
}

test("F243, F245: one definition carries handler, right and danger, and a new one is there on every surface at once", () => {
  const added = command("wipe", { permission: "admin", destructive: true, aliases: ["w"] });
  const both = new CommandRegistry([...builtinCommands().all(), added]);
  for (const surface of ["terminal", "gateway"] as const) {
    const match = both.in(surface).find("wipe");
    assert.equal(match.type === "found" && match.command, added, surface);
  }
  assert.match(helpText(both.in("gateway").all()), /\/wipe/);
});

test("each surface sees its own commands", () => {
  assert.deepEqual(
    registry.availableIn("terminal").map((entry) => entry.name),
    ["new", "resume", "reasoning", "quit"],
  );
  assert.deepEqual(
    registry.availableIn("gateway").map((entry) => entry.name),
    ["new", "resume", "reasoning", "start"],
  );
});

test("the commands that both surfaces share are one definition", () => {
  const builtin = builtinCommands();
  for (const name of ["model", "compress", "skills", "yolo", "new", "help"]) {
    assert.equal(builtin.in("terminal").get(name), builtin.in("gateway").get(name), name);
    assert.equal(builtin.in("gateway").get(name)?.name, name);
  }
  assert.equal(builtin.get("new")?.destructive, true);
});

test("plain words in the hint become subcommands", () => {
  assert.deepEqual(subcommandsOf(command("busy", { argsHint: "[queue|steer|interrupt]" })), [
    "queue",
    "steer",
    "interrupt",
  ]);
  assert.deepEqual(subcommandsOf(command("title", { argsHint: "[name]" })), []);
});

test("help is grouped by category with aliases", () => {
  assert.equal(
    helpText([command("quit", { category: "Exit", aliases: ["exit"] }), command("new", { argsHint: "[name]" })]),
    "Session\n  /new [name]  does new\n\nExit\n  /quit        does quit (also /exit)",
  );
});

test("a long usage has its description on the next line, in the column of the others", () => {
  const long = command("agents", { argsHint: "[stop <id>|pause|resume|and more]" });
  assert.equal(
    helpText([command("new"), long]),
    "Session\n  /new  does new\n  /agents [stop <id>|pause|resume|and more]\n        does agents",
  );
});
