import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runSubCommand } from "../../../test/support/sub-command.ts";
import { defaultConfig, NEW_CONFIG } from "../../home/config/schema.ts";
import { openHome } from "../../home/open.ts";
import { define } from "./config.ts";

const base = mkdtempSync(join(tmpdir(), "hermes-config-"));
after(() => rmSync(base, { recursive: true, force: true }));

/** `typed`: what somebody at a terminal answers; without it nobody is there. */
function person(
  config: string | null = null,
  env = "",
  processEnv: Record<string, string> = {},
  typed?: (question: string) => string | null,
) {
  const osHome = mkdtempSync(join(base, "u"));
  const dir = join(osHome, ".hermes");
  mkdirSync(dir);
  if (config !== null) writeFileSync(join(dir, "config.yaml"), config);
  if (env !== "") writeFileSync(join(dir, ".env"), env);
  const read = (name = "config.yaml") => readFileSync(join(dir, name), "utf8");
  async function run(...args: string[]) {
    const home = await openHome({ argv: [], env: processEnv, osHome, cwd: osHome });
    return runSubCommand(define, args, { home, cwd: osHome, typed });
  }
  return { run, read, dir };
}

test("in a new home, what get prints is what the agent uses", async () => {
  const me = person();
  const config = defaultConfig();
  assert.equal((await me.run("get", "terminal.timeout")).out, `${config.terminal.timeout}\n`);
  assert.equal((await me.run("get", "display.streaming")).out, "true\n");
  assert.equal((await me.run("get", "toolsets")).out, "- hermes-cli\n");
  assert.equal((await me.run("get", "toolsets", "--json")).out, '[\n  "hermes-cli"\n]\n');
  assert.deepEqual(JSON.parse((await me.run("get", "curator", "--json")).out), config.curator);
  assert.equal((await me.run("get", "terminal.sandbox")).out, "auto\n");
  assert.equal(me.read(), NEW_CONFIG);
});

test("get prints scalars bare, and what is not set ends with 1", async () => {
  const me = person("model: gpt-4o\nmine: {list: [{x: a b}]}\n");
  assert.equal((await me.run("get", "model")).out, "gpt-4o\n");
  assert.equal((await me.run("get", "model.default")).out, "gpt-4o\n");
  assert.equal((await me.run("get", "mine.list[0].x")).out, "a b\n");
  assert.deepEqual(await me.run("get", "nothing.here"), { code: 1, out: "", err: "not set\n" });
  await me.run("set", "OPENAI_API_KEY", "sk-abcdefghijklmnop1234");
  const key = await me.run("get", "OPENAI_API_KEY");
  assert.deepEqual([key.code, key.out.includes("abcdefghijklmnop"), key.out.endsWith("1234\n")], [0, false, true]);
});

test("set without a value asks for that of a variable, unseen, and only where somebody is", async () => {
  const asked: string[] = [];
  const typed = (question: string) => {
    asked.push(question);
    return "typed-value-1";
  };
  const me = person("", "", {}, typed);
  assert.equal((await me.run("set", "my_api_key")).code, 0);
  assert.deepEqual(asked, ["Value of MY_API_KEY: "]);
  assert.equal(me.read(".env"), "MY_API_KEY=typed-value-1\n");
  assert.equal((await me.run("set", "agent.max_turns")).code, 1);
  assert.equal((await person("").run("set", "MY_API_KEY")).code, 1);
});

test("get prints a secret when it is asked for by name, and masks it in a section", async () => {
  const me = person("model:\n  default: m\n  api_key: sk-1234567890abcdef\n");
  assert.equal((await me.run("get", "model.api_key")).out, "sk-1234567890abcdef\n");
  for (const more of [[], ["--json"]]) {
    const { out } = await me.run("get", "model", ...more);
    assert.match(out, /sk-1\.\.\.cdef/);
    assert.doesNotMatch(out, /567890/);
  }
});

const sets: readonly [name: string, before: string, args: string[], after: string][] = [
  ["a number", "a: 1 # c\n", ["agent.max_turns", "60"], "a: 1 # c\nagent:\n  max_turns: 60\n"],
  ["an enum that looks like a boolean", "", ["approvals.mode", "off"], 'approvals:\n  mode: "off"\n'],
  ["a text that looks like a number", "", ["timezone", "-5"], 'timezone: "-5"\n'],
  ["a boolean", "", ["display.streaming", "No"], "display:\n  streaming: false\n"],
  ["a negative number", "", ["mine.x", "-1.5"], "mine:\n  x: -1.5\n"],
  ["a version number", "", ["mine.x", "1.2.3"], 'mine:\n  x: "1.2.3"\n'],
  ["a long id", "", ["mine.x", "123456789012345678"], 'mine:\n  x: "123456789012345678"\n'],
  ["a flow list", "", ["toolsets", "[web, file]"], "toolsets:\n  - web\n  - file\n"],
  ["a JSON mapping", "", ["providers.x", '{"api": "http://a"}'], "providers:\n  x:\n    api: http://a\n"],
  ["model as a section", "model:\n  default: a\n", ["model", "b"], "model:\n  default: b\n"],
  ["model as a text", "model: a\n", ["model", "b"], "model: b\n"],
  ["a key beside a plain model", "model: a\n", ["model.provider", "nous"], "model:\n  default: a\n  provider: nous\n"],
  [
    "an item of a list",
    "command_allowlist: # x\n  - a\n  - b # y\n",
    ["command_allowlist[1]", "c"],
    "command_allowlist: # x\n  - a\n  - c # y\n",
  ],
  [
    "a key inside a list",
    "custom_providers:\n- name: a\n  base_url: u\n",
    ["custom_providers.0.name", "b"],
    "custom_providers:\n- name: b\n  base_url: u\n",
  ],
];
for (const [name, before, args, wanted] of sets) {
  test(`set stores ${name}`, async () => {
    const me = person(before === "" ? "x: 1\n" : before);
    const { code, err } = await me.run("set", ...args);
    assert.equal(code, 0, err);
    assert.equal(me.read(), before === "" ? `x: 1\n${wanted}` : wanted);
  });
}

const refusals: readonly [name: string, args: string[], message: RegExp][] = [
  ["a scalar over a section of the file", ["mine", "5"], /mine is a section.*--force/],
  ["a scalar over a section of the schema", ["agent", "5"], /agent is a section/],
  ["an item that is not there", ["list.7", "x"], /list has 2 items; there is no list\.7/],
  ["a name on a list", ["list.name", "x"], /list is a list; address its items by number/],
  [
    "a value outside the enum",
    ["approvals.mode", "maybe"],
    /approvals\.mode takes one of manual, smart, off; got "maybe"/,
  ],
  ["a text for a number", ["agent.max_turns", "many"], /agent\.max_turns takes a whole number/],
  ["an empty key part", ["agent..x", "1"], /is not a valid key/],
];
for (const [name, args, message] of refusals) {
  test(`set refuses ${name} and leaves the file alone`, async () => {
    const text = "mine: {x: 1}\nlist: [1, 2]\n";
    const me = person(text);
    const { code, err } = await me.run("set", ...args);
    assert.equal(code, 1);
    assert.match(err, message);
    assert.equal(me.read(), text);
  });
}

test("--force replaces a section", async () => {
  const me = person("mine: {x: 1}\n");
  assert.equal((await me.run("set", "mine", "5", "--force")).code, 0);
  assert.equal(me.read(), "mine: 5\n");
});

test("set and unset without arguments show how", async () => {
  const me = person();
  assert.deepEqual(await me.run("set", "a"), {
    code: 1,
    out: "",
    err: "Usage: hermes config set KEY VALUE [--force]\n",
  });
  assert.equal((await me.run("unset")).code, 1);
  assert.equal((await me.run("get")).code, 1);
});

test("set says what it did, and masks secrets", async () => {
  const me = person("x: 1\n");
  assert.equal(
    (await me.run("set", "agent.max_turns", "5")).out,
    "✓ Set agent.max_turns = 5 in ~/.hermes/config.yaml\n",
  );
  assert.equal(
    (await me.run("set", "model.api_key", "sk-1234567890abcdef")).out,
    "✓ Set model.api_key = sk-1...cdef in ~/.hermes/config.yaml\n",
  );
});

test("an unknown key is saved with its neighbours named, unless forced", async () => {
  const me = person("x: 1\n");
  const { code, err } = await me.run("set", "agent.max_turn", "5");
  assert.equal(code, 0);
  assert.match(err, /agent\.max_turn is not a known setting; .* Did you mean agent\.max_turns/);
  assert.equal((await me.run("set", "agent.max_turnz", "5", "--force")).err, "");
});

test("keys and tokens go to .env, upper-cased and unseen", async () => {
  const me = person();
  for (const [name, stored] of [
    ["openai_api_key", "OPENAI_API_KEY"],
    ["MY_TOKEN", "MY_TOKEN"],
    ["FAL_KEY", "FAL_KEY"],
    ["MY_OTHER_KEY", "MY_OTHER_KEY"],
    ["HERMES_API_TIMEOUT", "HERMES_API_TIMEOUT"],
    ["terminal_ssh_host", "TERMINAL_SSH_HOST"],
  ] as const) {
    const { out } = await me.run("set", name, "s3cret value");
    assert.equal(out, `✓ Set ${stored} in ~/.hermes/.env\n`);
    assert.ok(me.read(".env").includes(`${stored}="s3cret value"\n`));
  }
  assert.equal((await me.run("unset", "my_token")).code, 0);
  assert.ok(!me.read(".env").includes("MY_TOKEN"));
  assert.equal((await me.run("unset", "my_token")).code, 1);
});

test("a variable that stands in config.yaml is removed from there", async () => {
  const me = person("MY_OTHER_KEY: abc\nx: 1\n");
  assert.equal((await me.run("unset", "MY_OTHER_KEY")).code, 0);
  assert.equal(me.read("config.yaml"), "x: 1\n");
});

test("terminal settings are mirrored to .env and the mirror goes with them", async () => {
  const me = person("x: 1\n");
  await me.run("set", "terminal.backend", "docker");
  await me.run("set", "terminal.timeout", "60");
  await me.run("set", "terminal.ssh_user", "me");
  assert.equal(me.read(".env"), "TERMINAL_ENV=docker\nTERMINAL_TIMEOUT=60\n");
  await me.run("unset", "terminal.timeout");
  assert.equal((await me.run("get", "terminal.timeout")).out, "180\n");
});

test("unset removes a key and the sections it leaves empty", async () => {
  const me = person("# top\na:\n  b:\n    c: 1\n# end\nx: 1\n");
  assert.deepEqual(await me.run("unset", "a.b.c"), {
    code: 0,
    out: "✓ Removed a.b.c from ~/.hermes/config.yaml\n",
    err: "",
  });
  assert.equal(me.read(), "# top\n# end\nx: 1\n");
  assert.equal((await me.run("unset", "a.b.c")).code, 1);
});

test("a broken file is never written to and the place is named", async () => {
  const text = "a: [1\nb: 2\n";
  const me = person(text);
  for (const args of [["set", "a.b", "1"], ["unset", "b"], ["check"], ["migrate"]]) {
    const { code, err } = await me.run(...args);
    assert.equal(code, 1, args.join(" "));
    assert.match(err, /broken at line 2, column 1/);
  }
  assert.equal(me.read(), text);
});

test("a managed home is not changed", async () => {
  const me = person("x: 1\n");
  mkdirSync(join(me.dir, "logs"), { recursive: true });
  await me.run("path");
  writeFileSync(join(me.dir, ".managed"), "homebrew");
  for (const args of [["set", "a.b", "1"], ["set", "A_TOKEN", "x"], ["unset", "x"], ["edit"]]) {
    const { code, err } = await me.run(...args);
    assert.equal(code, 1);
    assert.match(err, /managed by Homebrew/);
  }
  assert.equal(me.read(), "x: 1\n");
});

test("path and env-path print just that", async () => {
  const me = person();
  assert.equal((await me.run("path")).out, `${join(me.dir, "config.yaml")}\n`);
  assert.equal((await me.run("env-path")).out, `${join(me.dir, ".env")}\n`);
});

test("show masks every secret, also as JSON", async () => {
  const me = person(
    "model: {default: m, api_key: sk-in-the-file-123}\nauxiliary: {vision: {model: v}}\n",
    "OPENROUTER_API_KEY=sk-or-1234567890\n",
  );
  for (const args of [[], ["show"], ["show", "--json"], ["--json"]]) {
    const { out, code } = await me.run(...args);
    assert.equal(code, 0);
    assert.ok(!out.includes("sk-in-the-file-123") && !out.includes("sk-or-1234567890"));
    assert.ok(out.includes("sk-o...7890"));
  }
  const shown = (await me.run("show")).out;
  for (const part of ["~/.hermes/config.yaml", "(not set)", "vision", "90", "local"])
    assert.ok(shown.includes(part), part);
  const json = JSON.parse((await me.run("show", "--json")).out);
  assert.equal(json.config.model.api_key, "sk-i...-123");
  assert.equal(json.keys.ANTHROPIC_API_KEY, null);
});

test("set and check say of a setting or key that nothing reads yet that it is not used; show leaves it out", async () => {
  const me = person("_config_version: 24\nvoice: {auto_tts: false}\ndashboard: {home: 5}\n");
  const set = await me.run("set", "curator.interval_hours", "7");
  assert.equal(set.code, 0);
  assert.equal(set.out, "⚠ Set curator.interval_hours = 7 in ~/.hermes/config.yaml, but it has no effect yet.\n");
  assert.match(me.read(), /interval_hours: 7/);
  assert.match((await me.run("set", "dashboard.home", "6")).out, /^⚠ Set dashboard\.home = 6 .*no effect yet/);
  assert.match((await me.run("set", "HONCHO_API_KEY", "123456:abcdef")).out, /^⚠ Set HONCHO_API_KEY .*no effect yet/);
  assert.match((await me.run("set", "agent.max_turns", "5")).out, /^✓ Set agent\.max_turns = 5 in \S+\n$/);

  const check = await me.run("check");
  assert.equal(check.code, 0);
  assert.match(
    check.out,
    /^⚠ Set but not used yet \(no effect\): curator\.interval_hours, dashboard, HONCHO_API_KEY$/m,
    "a default has no effect anyway",
  );
  assert.doesNotMatch(check.out, /DAYTONA_API_KEY|SLACK/);
  const show = (await me.run("show")).out;
  assert.match(show, /HONCHO_API_KEY.*\(not used yet\)/);
  assert.doesNotMatch(show, /SLACK|DAYTONA|Skin/);
});

test("of the keys of chats, those that are set are shown, masked; check counts them", async () => {
  const me = person("_config_version: 24\n");
  assert.match((await me.run("check")).out, /^Chat keys: 0 set; connect a chat platform: .*gateway setup$/m);
  assert.match((await me.run("set", "TELEGRAM_BOT_TOKEN", "123456:abcdefghijkl")).out, /^✓ Set TELEGRAM_BOT_TOKEN in /);
  assert.match((await me.run("check")).out, /^Chat keys: 1 set$/m);
  const show = (await me.run("show")).out;
  assert.match(show, /^ {2}TELEGRAM_BOT_TOKEN +1234\.\.\.ijkl$/m);
  assert.doesNotMatch(show, /SLACK/);
});

test("check tells version, mistakes, unknown keys and missing keys, and fails on errors only", async () => {
  const me = person(
    "custom_providers: {a: 1}\ndispaly: {}\nagent: {max_turns: x, colour: red}\nbudget: {days: {usd: 1}}\n",
  );
  const { code, out } = await me.run("check");
  assert.equal(code, 1);
  for (const part of [
    "version 0, the current one is 24",
    "✗ custom_providers is a mapping",
    "Did you mean display",
    "⚠ agent.max_turns",
    "⚠ agent.colour is not a known setting",
    "✗ budget.days: unknown setting; did you mean budget.day",
    "OPENROUTER_API_KEY",
  ]) {
    assert.ok(out.includes(part), part);
  }
  assert.equal(out.split("budget.days").length, 2, "told once");
  assert.ok(!out.includes("No problems"));
  const sound = await person("_config_version: 24\nmodel: {name: x}\n").run("check");
  assert.equal(sound.code, 0);
  assert.match(sound.out, /✓ No problems/);
});

test("migrate asks for settings that skills declare and nobody has set; show lists them", async () => {
  const asked: string[] = [];
  const answers = new Map([
    ["Where", " ~/notes "],
    ["How many", ""],
  ]);
  const me = person("skills:\n  config:\n    given: 1\n    other: 2\n", "OPENROUTER_API_KEY=k\n", {}, (question) => {
    asked.push(question);
    return [...answers].find(([start]) => question.startsWith(start))?.[1] ?? null;
  });
  mkdirSync(join(me.dir, "skills/wiki"), { recursive: true });
  const entries = [
    "{key: wiki.path, description: Where the notes are}",
    "{key: many, description: How many, default: 3}",
    "{key: given, description: Set already}",
    "{key: unset, description: Never answered}",
  ];
  const head = `name: wiki\ndescription: W\nmetadata:\n  hermes:\n    config: [${entries.join(", ")}]\n`;
  writeFileSync(join(me.dir, "skills/wiki/SKILL.md"), `---\n${head}---\nBody\n`);
  const { out } = await me.run("migrate");
  assert.deepEqual(asked, [
    "Where the notes are (skill wiki, Enter to skip): ",
    "How many (skill wiki, Enter for 3): ",
    "Never answered (skill wiki, Enter to skip): ",
  ]);
  assert.match(out, /✓ Set skills\.config\.wiki\.path in ~\/\.hermes\/config\.yaml\n$/);
  assert.match(me.read(), /wiki:\n {6}path: "~\/notes"/);
  const shown = (await me.run("show")).out;
  assert.match(
    shown,
    /Skill settings\n {2}wiki\.path {2}".*\/notes"\n {2}many {7}"3"\n {2}given {6}"1"\n {2}unset {6}\(not set\)\n {2}other {6}2\n/,
  );
});

test("migrate prints one line per change", async () => {
  const me = person("_config_version: 16\ncompression: {summary_model: m}\n");
  assert.equal(
    (await me.run("migrate")).out,
    "✓ compression.summary_model moved to auxiliary.compression.model\n✓ ~/.hermes/config.yaml is now version 24, was 16.\n",
  );
  assert.equal((await me.run("migrate")).out, "~/.hermes/config.yaml is up to date (version 24).\n");
});

test("the older names of a sandbox are saved so that the home goes on working elsewhere", async () => {
  for (const [word, sandbox] of [
    ["auto", "auto"],
    ["bubblewrap", "on"],
  ] as const) {
    const me = person("a: 1\n");
    const { out, err } = await me.run("set", "terminal.backend", word);
    assert.match(out, /terminal\.backend = local/);
    assert.match(err, new RegExp(`saved as terminal\\.sandbox ${sandbox}`));
    assert.equal(me.read(), `a: 1\nterminal:\n  sandbox: ${sandbox === "on" ? '"on"' : sandbox}\n  backend: local\n`);
  }
});

test("what is no host is refused when it is set, as a list or as one of its items; nothing is saved", async () => {
  const before = "terminal:\n  sandbox_network: [example.org]\n";
  for (const [key, value, told] of [
    ["terminal.sandbox_network", "[example.org, https://example.com/]", /"https:\/\/example\.com\/" is not a host/],
    ["terminal.sandbox_network_unattended", "[host:99999]", /"host:99999" is not a host/],
    ["terminal.sandbox_network.0", "a b", /"a b" is not a host/],
    ["terminal.sandbox_network", "[localhost]", /"localhost" needs a port, like localhost:8080/],
    ["terminal.sandbox_network", "example.com", /takes one of on, off or a list of hosts like \[example\.com\]; got/],
  ] as const) {
    const me = person(before);
    const { code, err } = await me.run("set", key, value);
    assert.equal(code, 1, value);
    assert.match(err, told);
    assert.match(err, /Nothing was saved/);
    assert.equal(me.read(), before);
  }
  const me = person(before);
  assert.equal(
    (await me.run("set", "terminal.sandbox_network", '["*.example.com", 10.0.0.2:8080, localhost:5432, "[::1]:80"]'))
      .code,
    0,
  );
});

test("edit creates the file, opens the editor and reports what it left", async () => {
  const good = person(null, "", { EDITOR: "printf 'a: 1\\n' >>", PATH: process.env.PATH ?? "" });
  assert.deepEqual(await good.run("edit"), { code: 0, out: "✓ ~/.hermes/config.yaml is fine\n", err: "" });
  assert.equal(good.read(), `${NEW_CONFIG}a: 1\n`);
  const bad = person("a: 1\n", "", { VISUAL: "printf 'b: [' >>", PATH: process.env.PATH ?? "" });
  const { code, err } = await bad.run("edit");
  assert.equal(code, 1);
  assert.match(err, /Line 2, column \d+/);
  const none = await person("a: 1\n", "", { PATH: "" }).run("edit");
  assert.equal(none.code, 1);
  assert.match(none.err, /No editor found/);
});

test("an unknown subcommand ends with 1 and the list", async () => {
  const { code, err } = await person().run("sett", "a", "b");
  assert.equal(code, 1);
  assert.match(err, /unknown command "config sett"[\s\S]*unset/);
});
