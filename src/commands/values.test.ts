// What may follow a command while it is typed, and names that people bring from other agents.
import assert from "node:assert/strict";
import { test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";
import { defaultConfig } from "../home/config/schema.ts";
import { knownPersonalities } from "../prompt/personalities.ts";
import { builtinCommands } from "./builtin.ts";

type Rig = Awaited<ReturnType<typeof commandRig>>;

async function offered(rig: Rig, line: string): Promise<readonly string[] | null> {
  const [, name = "", typed = ""] = /^\/(\S+) (.*)$/.exec(line) ?? [];
  const found = await builtinCommands().get(name)?.values?.(typed, rig.ctx);
  return found ? found.values.map(({ value }) => value).filter((value) => value.startsWith(found.replaces)) : null;
}

test("values are what the command would take at that place", async (t) => {
  const rig = await commandRig(t, {
    "config.yaml": "model: demo\nagent:\n  personalities:\n    Pirate: Mine.\n    terse: One word.\nmcp_servers: {}\n",
  });
  await rig.chat("hello");
  await rig.type("/title All about walruses");
  const has = async (line: string, ...expected: string[]) => {
    const found = await offered(rig, line);
    for (const value of expected) assert.ok(found?.includes(value), `${line}: ${value} is not in ${found}`);
    return found ?? [];
  };
  assert.equal(await offered(rig, "/tools "), null, "its subcommands");
  const on = await has("/tools disable ", "terminal", "web");
  assert.deepEqual(await offered(rig, "/tools disable web,ter"), ["terminal"]);
  assert.ok(!(await has("/tools disable web ")).includes("web"), "named already");
  assert.ok(on.every((name) => !name.includes("/")));
  assert.deepEqual(await offered(rig, "/tools list "), []);
  assert.ok(!(await has("/tools enable ")).includes("terminal"), "it is on");
  assert.deepEqual(await offered(rig, "/resume All"), ["All about walruses"]);
  const named = await has("/personality ", "Pirate", "terse", "concise", "none");
  assert.ok(!named.includes("pirate"), "one's own stands in its place");
  await has("/config displ", "display.streaming", "display.busy_input_mode");
  assert.deepEqual(await offered(rig, "/config display.streaming "), ["true", "false"]);
  assert.deepEqual(await offered(rig, "/config display.busy_input_mode q"), ["queue"]);
  assert.deepEqual(await offered(rig, "/config display.nonsense "), []);
  assert.equal(await offered(rig, "/skill x and then"), null, "any words");
  assert.deepEqual(await offered(rig, "/skills approval "), ["on", "off"]);
  assert.deepEqual(await offered(rig, "/mcp reload "), []);
});

test("a setting is shown with its meaning and changed from the conversation; a mistake changes nothing", async (t) => {
  const rig = await commandRig(t, { "config.yaml": "# mine\nmodel: demo\n" });
  await rig.type("/config display.show_cost");
  assert.match(rig.text(), /^display\.show_cost = false\n {2}\S/);
  await rig.type("/config display.show_cost true");
  assert.equal(rig.text(), "display.show_cost = true");
  assert.equal(rig.ctx.home.config().display.show_cost, true);
  await rig.type("/settings set display.busy_input_mode queue");
  assert.equal(rig.text(), "display.busy_input_mode = queue");
  for (const [line, answer] of [
    [
      "/config display.show_cots true",
      /There is no setting display\.show_cots\. Did you mean display\.show_cost\? Nothing was saved\./,
    ],
    ["/config display.busy_input_mode sometimes", /display\.busy_input_mode/],
    ["/config model.api_key sk-1234567890", /Do not enter secrets here/],
    ["/config OPENROUTER_API_KEY sk-1234567890", /Do not enter secrets here/],
    ["/config terminal.backend auto", /from the shell: hermes config set terminal\.backend/],
  ] as const) {
    const before = JSON.stringify(rig.ctx.home.configTree());
    await rig.type(line);
    assert.match(rig.text(), answer, line);
    assert.equal(JSON.stringify(rig.ctx.home.configTree()), before, line);
  }
  await rig.type("/config");
  assert.match(rig.text(), /model: demo[\s\S]*show_cost: true[\s\S]*\/config KEY VALUE/);
});

test("fourteen personalities come with the program, each with a text of its own", () => {
  const known = Object.entries(knownPersonalities(defaultConfig().agent.personalities));
  assert.deepEqual(
    known.map(([name]) => name).sort(),
    "catgirl concise creative helpful hype kawaii noir philosopher pirate shakespeare surfer teacher technical uwu".split(
      " ",
    ),
  );
  assert.equal(new Set(known.map(([, entry]) => JSON.stringify(entry))).size, 14);
});

test("names of other agents run what they mean here, or say where it is", async (t) => {
  const rig = await commandRig(t);
  const cases: [string, RegExp][] = [
    ["/cost", /^\/cost is \/usage here\.\nNo requests sent yet\.$/],
    ["/export", /^\/export is \/save here\.\nNo messages yet\.$/],
    ["/rename My talk", /^\/rename is \/title here\.\nTitle: My talk$/],
    ["/doctor", /^warning: \/doctor is not a command here\. Run it in a shell: hermes doctor$/],
    ["/login", /^\/login is \/setup here\.$/],
    ["/logout", /hermes logout/],
    ["/init", /^input: Look at this project and write an AGENTS\.md[\s\S]*\n\/init is a message here/],
    ["/mcp", /No MCP servers configured/],
    ["/constructor", /^warning: Unknown command/],
  ];
  for (const [line, answer] of cases) {
    assert.equal(await rig.type(line), true);
    assert.match(rig.text(), answer, line);
  }
});
