// config.yaml as an opened home reads, keeps and saves it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { homeUsers } from "../../test/support/home-users.ts";
import { ConfigError } from "./open.ts";

const user = homeUsers();
const config = (text: string) => user({ ".hermes/config.yaml": text });
const template = (name: string) => `$${`{${name}}`}`;

describe("config.yaml", () => {
  test("is read as YAML 1.1, merged over the defaults, and unknown keys stay", async () => {
    const home = await config(
      "approvals:\n  mode: off\ndisplay:\n  streaming: no\n  tool_progress: on\nagent:\nmine: {x: y}\ntoolsets: [web]\n",
    ).open();
    const settings = home.config();
    assert.equal(settings.approvals.mode, "off");
    assert.equal(settings.display.streaming, false);
    assert.equal(settings.display.tool_progress, "all");
    assert.equal(settings.agent.max_turns, 90);
    assert.deepEqual(settings.toolsets, ["web"]);
    assert.deepEqual(settings.mine, { x: "y" });
  });

  test("big ids keep their digits", async () => {
    const home = await config("discord:\n  allowed: [123456789012345678]\n").open();
    assert.deepEqual(home.config().discord.allowed, ["123456789012345678"]);
  });

  test("values of a wrong kind are told and replaced by the default", async () => {
    const me = config("agent: {max_turns: many}\napi_key: x\n");
    const home = await me.open();
    assert.equal(home.config().agent.max_turns, 90);
    assert.deepEqual(home.warnings, [
      "~/.hermes/config.yaml: api_key is at the top level; it belongs in model.api_key",
      '~/.hermes/config.yaml: agent.max_turns: expected a whole number from 1, found "many"; using 90',
    ]);
  });

  test("the environment wins over the file, except for the terminal and the model", async () => {
    const me = config("agent: {max_turns: 5}\nterminal: {timeout: 7}\nmodel: {default: mine}\n");
    const env = {
      HERMES_MAX_ITERATIONS: "11",
      HERMES_FILE_MUTATION_VERIFIER: "0",
      TERMINAL_TIMEOUT: "12",
      TERMINAL_ENV: "docker",
      HERMES_INFERENCE_MODEL: "theirs",
    };
    const home = await me.open({ env });
    assert.equal(home.config().agent.max_turns, 11);
    assert.equal(home.config().display.file_mutation_verifier, false);
    assert.equal(home.config().terminal.timeout, 7);
    assert.equal(home.config().terminal.backend, "docker");
    assert.equal(home.config().model.default, "mine");
    assert.equal(home.override("HERMES_INFERENCE_MODEL"), "theirs");
    const bare = await user({ ".hermes/.env": "HERMES_INFERENCE_MODEL=from-file\n" }).open();
    assert.equal(bare.config().model.default, "from-file");
    assert.equal(bare.override("HERMES_INFERENCE_MODEL"), undefined);
  });

  test("--ignore-user-config leaves the defaults, and .env is still read", async () => {
    const me = user({ ".hermes/config.yaml": "agent: {max_turns: 5}\n", ".hermes/.env": "A=1\n" });
    for (const options of [{ ignoreUserConfig: true }, { env: { HERMES_IGNORE_USER_CONFIG: "1" } }]) {
      const home = await me.open(options);
      assert.equal(home.config().agent.max_turns, 90);
      assert.equal(home.env("A"), "1");
    }
  });

  test("a change by another program counts at once, and so does a changed variable", async () => {
    const me = user({ ".hermes/config.yaml": `timezone: ${template("ZONE")}\n`, ".hermes/.env": "ZONE=Asia/Tokyo\n" });
    const home = await me.open();
    assert.equal(home.config().timezone, "Asia/Tokyo");
    assert.equal(home.config(), home.config());
    await home.setEnv("ZONE", "Europe/Berlin");
    assert.equal(home.config().timezone, "Europe/Berlin");
    await writeFile(me.at(".hermes/config.yaml"), "timezone: UTC\nagent: {max_turns: 3}\n");
    assert.equal(home.config().timezone, "UTC");
    assert.equal(home.config().agent.max_turns, 3);
    await rm(me.at(".hermes/config.yaml"));
    assert.equal(home.config().agent.max_turns, 90);
  });

  test("nobody can change the shared settings in passing", async () => {
    const home = await config("mine: {list: [1]}\n").open();
    assert.throws(() => home.config().toolsets.push("x"), TypeError);
  });

  test("one key is saved and every other byte stays", async () => {
    const text = `# mine\nmodel:\n  default: gpt-4o  # good\n  api_key: ${template("SECRET_KEY")}\n\ndisplay:\n    skin: 'dark'\n`;
    const me = user({ ".hermes/config.yaml": text, ".hermes/.env": "SECRET_KEY=s3cret-value\n" });
    const home = await me.open();
    await home.setConfigKey("display.skin", "light");
    assert.equal(me.read(".hermes/config.yaml"), text.replace("'dark'", "'light'"));
    assert.equal(home.config().display.skin, "light");
    assert.equal(statSync(me.at(".hermes/config.yaml")).mode & 0o777, existsSync("/.dockerenv") ? 0o644 : 0o600);
  });

  test("a secret that came from a variable never reaches the file", async () => {
    const text = `model:\n  default: a\n  api_key: ${template("SECRET_KEY")}\n`;
    const me = user({ ".hermes/config.yaml": text, ".hermes/.env": "SECRET_KEY=s3cret-value\n" });
    const home = await me.open();
    await home.setConfigKey("model", { ...home.config().model, default: "b" });
    assert.equal(me.read(".hermes/config.yaml"), text.replace("default: a", "default: b"));
  });

  test("a first key makes a file that needs no migration and holds no defaults", async () => {
    const me = user({ ".hermes/SOUL.md": "me" });
    const home = await me.open();
    await home.setConfigKey("agent.max_turns", 5);
    assert.equal(me.read(".hermes/config.yaml"), "_config_version: 24\nagent:\n  max_turns: 5\n");
    assert.equal(home.config().agent.max_turns, 5);
    await home.unsetConfigKey("agent.max_turns");
    assert.equal(me.read(".hermes/config.yaml"), "_config_version: 24\n");
  });

  test("a plain model text becomes model.default when a key beside it is set", async () => {
    const me = config("model: gpt-4o # plain\nx: 1\n");
    const home = await me.open();
    await home.setConfigKey("model.provider", "openrouter");
    assert.equal(me.read(".hermes/config.yaml"), "model: # plain\n  default: gpt-4o\n  provider: openrouter\nx: 1\n");
  });

  test("processes that save different keys at once all succeed", async () => {
    const me = config("# shared\n_config_version: 24\n");
    const program = `
      import { openHome } from ${JSON.stringify(new URL("./open.ts", import.meta.url).href)};
      const [osHome, who] = process.argv.slice(1);
      const home = await openHome({ argv: [], env: {}, osHome, cwd: osHome });
      for (let n = 0; n < 8; n++) await home.setConfigKey("quick_commands." + who + n, n);`;
    const children = ["a", "b"].map((who) =>
      spawn(process.execPath, ["--input-type=module", "-e", program, me.osHome, who], { stdio: "inherit" }),
    );
    assert.deepEqual(
      (await Promise.all(children.map((child) => once(child, "exit")))).map(([code]) => code),
      [0, 0],
    );
    const home = await me.open();
    assert.equal(Object.keys(home.config().quick_commands).length, 16);
  });

  test("a symlinked file stays a symlink", async () => {
    const me = user({ "dotfiles/config.yaml": "a: 1\n" });
    mkdirSync(me.at(".hermes"));
    symlinkSync("../dotfiles/config.yaml", me.at(".hermes/config.yaml"));
    await (await me.open()).setConfigKey("b", 2);
    assert.equal(me.read("dotfiles/config.yaml"), "a: 1\nb: 2\n");
  });
});

describe("a broken config.yaml", () => {
  const broken = "agent:\n  max_turns: [1\nmodel: x\n";
  const copies = (dir: string) => readdirSync(dir).filter((name) => name.includes(".corrupt."));

  test("leaves a fresh process with defaults, a place to look and one copy", async () => {
    const me = config(broken);
    for (let n = 0; n < 2; n++) {
      const home = await me.open();
      assert.equal(home.configBroken, true);
      assert.equal(home.config().agent.max_turns, 90);
      assert.match(
        home.warnings[0] ?? "",
        /config\.yaml is broken at line 3, column 1: .* Using the built-in defaults/,
      );
    }
    assert.equal(copies(me.at(".hermes")).length, 1);
    assert.equal(me.read(`.hermes/${copies(me.at(".hermes"))[0]}`), broken);
  });

  test("keeps writes waiting for leave when it still says so", async () => {
    const gates = async (text: string) => {
      const { memory, skills } = (await config(text).open()).config();
      return [memory.write_approval, skills.write_approval];
    };
    assert.deepEqual(await gates(`memory:\n  write_approval: on\n${broken}`), [true, true]);
    assert.deepEqual(await gates(`memory:\n  write_approval: false\n${broken}`), [false, false]);
  });

  test("names the settings that hold the agent back and are lost with it", async () => {
    const unread = async (text: string | Buffer) => {
      const me = user({ ".hermes/SOUL.md": "" });
      writeFileSync(me.at(".hermes/config.yaml"), text);
      return (await me.open()).unreadGuards().join("\n");
    };
    assert.equal(await unread(broken), "");
    assert.equal(await unread(`terminal:\n  backend: local # here\nweb:\n  backend: tavily\n${broken}`), "");
    assert.match(await unread(`terminal:\n  # where\n  backend: docker\n${broken}`), /\(terminal\.backend\)/);
    assert.match(await unread(`terminal: {"backend": docker}\n${broken}`), /terminal\.backend/);
    assert.match(await unread(`approvals:\n  deny:\n    - rm *\n${broken}`), /approvals\.deny/);
    assert.match(await unread(Buffer.from(`terminal:\n  backend: ssh\n# \xff\n`, "latin1")), /terminal\.backend/);
  });

  test("leaves a running process with its last good settings, and tells once", async () => {
    const me = config("agent: {max_turns: 5}\n");
    const told: string[] = [];
    const home = await me.open({ onWarning: (message) => told.push(message) });
    await writeFile(me.at(".hermes/config.yaml"), broken);
    for (let n = 0; n < 3; n++) assert.equal(home.config().agent.max_turns, 5);
    assert.equal(told.length, 1);
    assert.match(told[0] ?? "", /line 3.*stay in effect/);
    await writeFile(me.at(".hermes/config.yaml"), "agent: {max_turns: 6}\n");
    assert.equal(home.config().agent.max_turns, 6);
    assert.equal(home.configBroken, false);
  });

  test("what a running process was held back by stays when its new value cannot be read", async () => {
    const me = config("approvals: {deny: [rm *]}\nagent: {max_turns: 5}\n");
    const told: string[] = [];
    const home = await me.open({ onWarning: (message) => told.push(message) });
    await writeFile(me.at(".hermes/config.yaml"), "approvals: {deny: {a: b}}\nagent: {max_turns: 6}\n");
    for (let n = 0; n < 3; n++) assert.deepEqual(home.config().approvals.deny, ["rm *"]);
    assert.equal(home.config().agent.max_turns, 5);
    assert.equal(told.length, 1);
    assert.match(told[0] ?? "", /approvals\.deny: expected a list of texts, found a mapping\. .* stay in effect/);
    await writeFile(me.at(".hermes/config.yaml"), "approvals: {deny: [a]}\n");
    assert.deepEqual(home.config().approvals.deny, ["a"]);
  });

  test("so it does when a variable in it changes", async () => {
    const me = config(`terminal: {backend: '\${PLACE}'}\n`);
    writeFileSync(me.at(".hermes/.env"), "PLACE=docker\n");
    const home = await me.open();
    assert.equal(home.config().terminal.backend, "docker");
    await home.setEnv("PLACE", "dokcer");
    assert.equal(home.config().terminal.backend, "docker");
  });

  for (const [name, text] of [
    ["a syntax error", broken],
    ["a list", "- a\n"],
    ["a text", "hello\n"],
    ["no UTF-8", Buffer.from([0x61, 0x3a, 0xff, 0x0a])],
  ] as const) {
    test(`is never written to (${name})`, async () => {
      const me = user({ ".hermes/SOUL.md": "" });
      writeFileSync(me.at(".hermes/config.yaml"), text);
      const before = readFileSync(me.at(".hermes/config.yaml"));
      const home = await me.open();
      await assert.rejects(home.setConfigKey("a", 1), (error: unknown) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, /config\.yaml is broken at line \d+, column \d+: .*Nothing was saved/);
        return true;
      });
      assert.deepEqual(readFileSync(me.at(".hermes/config.yaml")), before);
    });
  }
});
