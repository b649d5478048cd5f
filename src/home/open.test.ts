import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ConfigError, type OpenHomeOptions, openHome } from "./open.ts";
import { DEFAULT_IDENTITY, isSafeMode } from "./paths.ts";

const base = mkdtempSync(join(tmpdir(), "hermes-home-"));
after(() => rmSync(base, { recursive: true, force: true }));
let count = 0;

/** A fresh user with, maybe, a home that has these files. */
function user(files: Record<string, string> = {}) {
  const osHome = join(base, `user${count++}`);
  const cwd = join(osHome, "work");
  mkdirSync(cwd, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(osHome, name, ".."), { recursive: true });
    writeFileSync(join(osHome, name), text);
  }
  const open = (options: Partial<OpenHomeOptions> = {}) => openHome({ argv: [], env: {}, osHome, cwd, ...options });
  return {
    osHome,
    open,
    at: (name: string) => join(osHome, name),
    read: (name: string) => readFileSync(join(osHome, name), "utf8"),
  };
}
const config = (text: string) => user({ ".hermes/config.yaml": text });
const template = (name: string) => `$${`{${name}}`}`;

describe("first use", () => {
  test("makes the directories, private, and seeds the identity", async () => {
    const me = user();
    const home = await me.open();
    assert.equal(home.paths.dir, me.at(".hermes"));
    for (const name of [
      "cron",
      "sessions",
      "logs/curator",
      "memories",
      "pairing",
      "hooks",
      "image_cache",
      "audio_cache",
      "skills",
      "plugins",
    ]) {
      assert.equal(statSync(me.at(`.hermes/${name}`)).mode & 0o777, 0o700, name);
    }
    assert.equal(me.read(".hermes/SOUL.md").trim(), DEFAULT_IDENTITY);
    assert.equal(statSync(me.at(".hermes/SOUL.md")).mode & 0o777, 0o600);
    assert.ok(!existsSync(me.at(".hermes/config.yaml")));
    assert.deepEqual(home.warnings, []);
  });

  test("never touches an identity that is there, not even an empty one", async () => {
    const me = user({ ".hermes/SOUL.md": "" });
    await me.open();
    assert.equal(me.read(".hermes/SOUL.md"), "");
  });

  test("the mode can be chosen", async () => {
    const me = user();
    await me.open({ env: { HERMES_HOME_MODE: "0750", HERMES_SKIP_CHMOD: "1" } });
    assert.equal(statSync(me.at(".hermes/skills")).mode & 0o777, 0o750);
  });

  test("a home that cannot be made is a warning, not the end", async () => {
    const me = user({ file: "in the way" });
    const home = await me.open({ env: { HERMES_HOME: me.at("file/home") } });
    assert.match(home.warnings[0] ?? "", /^Cannot write to .*file\/home \(ENOTDIR\): conversations are kept in memory/);
    assert.equal(home.unwritable, home.warnings[0]);
    assert.equal(home.config().agent.max_turns, 90);
    await home.close();
  });

  test("a file in the place of the home is an error that says so", async () => {
    const me = user({ file: "in the way" });
    await assert.rejects(me.open({ env: { HERMES_HOME: me.at("file") } }), /file is a file, not a folder.*HERMES_HOME/);
  });

  test("a home that may not be entered is not taken for a managed one", {
    skip: process.getuid?.() === 0,
  }, async () => {
    const me = user({ ".hermes/SOUL.md": "" });
    chmodSync(me.at(".hermes"), 0o000);
    await assert.rejects(me.open(), /cannot be read \(EACCES\)\. Change its mode or owner/);
    chmodSync(me.at(".hermes"), 0o700);
  });

  test("one folder that cannot be made is told, and everything else is stored as ever", async () => {
    const me = user({ ".hermes/SOUL.md": "", ".hermes/logs": "in the way" });
    const home = await me.open();
    assert.match(home.warnings[0] ?? "", /^Cannot write to .*\.hermes \(ENOTDIR\): some of its folders are missing\.$/);
    assert.equal(home.unwritable, null);
    await home.setConfigKey("agent.max_turns", 5);
    assert.equal(home.config().agent.max_turns, 5);
    await home.close();
  });

  test("the identity is one paragraph of the right length and begins with the name", () => {
    const words = DEFAULT_IDENTITY.split(/\s+/).length;
    assert.ok(words >= 70 && words <= 110, String(words));
    assert.ok(DEFAULT_IDENTITY.startsWith("You are Hermes Agent"));
    assert.ok(!DEFAULT_IDENTITY.includes("\n"));
  });
});

describe(".env", () => {
  test("wins over the process environment, and a project's file only fills gaps", async () => {
    const me = user({ ".hermes/.env": "A=file\nB=file\n", "work/.env": "A=project\nC=project\nD=project\n" });
    const home = await me.open({ env: { A: "process", C: "process" } });
    assert.deepEqual(["A", "B", "C", "D"].map(home.env), ["file", "file", "process", "project"]);
    assert.equal(home.override("A"), "process");
    assert.equal(home.override("B"), undefined);
    assert.equal(home.environment().HERMES_HOME, me.at(".hermes"));
  });

  test("without a file of the user the project's one wins", async () => {
    const home = await user({ "work/.env": "C=project\n" }).open({ env: { C: "process" } });
    assert.equal(home.env("C"), "project");
  });

  test("a project cannot switch checks off, move the home or redirect keys", async () => {
    const text =
      "HERMES_YOLO_MODE=1\nLD_PRELOAD=x\nOPENAI_BASE_URL=http://evil\nTERMINAL_ENV=local\nHTTPS_PROXY=x\nOK_KEY=fine-key\n";
    const home = await user({ "work/.env": text }).open();
    assert.deepEqual(Object.keys(home.environment()).sort(), ["HERMES_HOME", "OK_KEY"]);
  });

  test("a key is stored in the file, in the process, and privately", async () => {
    const me = user({ ".hermes/.env": "# mine\nA=1\n" });
    const home = await me.open();
    await home.setEnv("X_API_KEY", "a b");
    assert.equal(me.read(".hermes/.env"), '# mine\nA=1\nX_API_KEY="a b"\n');
    assert.equal(home.env("X_API_KEY"), "a b");
    assert.equal(home.variables().X_API_KEY, "a b");
    assert.equal(home.environment().X_API_KEY, undefined);
    assert.deepEqual(home.secrets(), []);
    await home.setEnv("X_API_KEY", "long enough");
    assert.deepEqual(home.secrets(), ["long enough"]);
    await home.setEnv("X_API_KEY", "a b");
    assert.equal(await home.removeEnv("A"), true);
    assert.equal(home.env("A"), undefined);
    assert.equal(await home.removeEnv("A"), false);
    assert.equal(me.read(".hermes/.env"), '# mine\nX_API_KEY="a b"\n');
    await assert.rejects(home.setEnv("LD_PRELOAD", "x"), ConfigError);
    const fresh = user();
    await (await fresh.open()).setEnv("A", "1");
    assert.equal(statSync(fresh.at(".hermes/.env")).mode & 0o777, 0o600);
  });

  test("a key added by another process is found, and a reload counts what changed", async () => {
    const me = user({ ".hermes/.env": "A=1\nB=2\n" });
    const home = await me.open({ env: { B: "process" } });
    writeFileSync(me.at(".hermes/.env"), "A=9\nNEW=3\n");
    assert.equal(home.env("NEW"), "3");
    assert.deepEqual(home.reloadEnv(), { set: 2, removed: 1 });
    assert.deepEqual(["A", "B", "NEW"].map(home.env), ["9", "process", "3"]);
  });

  test("children start without what the file holds and without what a key_env names", async () => {
    const me = user({
      ".hermes/.env":
        "MY_DB=from-file\nEDITOR=from-file\nLISTED=yes\nFORWARDED=only there\n_HERMES_FORCE_MY_DB=on purpose\n",
      ".hermes/config.yaml":
        "terminal:\n  env_passthrough: [LISTED, OPEN_KEY]\nproviders:\n  lab: {api: 'http://127.0.0.1:1', key_env: LAB}\n" +
        "fallback_providers: [{provider: x, model: y, api_key_env: OTHER}, {provider: x, model: z, key_env: OPEN_KEY}]\n",
      "work/.env": "PROJECT_KEY=of the project\n",
    });
    const env = { EDITOR: "vi", LAB: "lab-key-of-the-shell", OTHER: "other", OPEN_KEY: "open", TERM: "xterm" };
    const home = await me.open({ env });
    const { HERMES_HOME: _, ...child } = home.environment();
    assert.deepEqual(child, {
      EDITOR: "vi",
      LISTED: "yes",
      OPEN_KEY: "open",
      PROJECT_KEY: "of the project",
      TERM: "xterm",
      _HERMES_FORCE_MY_DB: "on purpose",
    });
    assert.equal(home.environment(["FORWARDED"]).FORWARDED, "only there");
    assert.deepEqual(home.withheld(), ["LAB", "OTHER"]);
    assert.equal(home.env("MY_DB"), "from-file");
    assert.ok(home.secrets().includes("lab-key-of-the-shell"), "its value is known to the redactor");
  });

  test("look-alike letters in a key are dropped with one warning", async () => {
    const home = await user({ ".hermes/.env": "X_API_KEY=sk-аbc\n" }).open();
    assert.equal(home.env("X_API_KEY"), "sk-bc");
    assert.equal(home.warnings.length, 1);
    assert.match(home.warnings[0] ?? "", /X_API_KEY .*U\+0430/);
  });
});

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
      "~/.hermes/config.yaml: api_key stands at the top level; it belongs into model.api_key",
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
    writeFileSync(me.at(".hermes/config.yaml"), "timezone: UTC\nagent: {max_turns: 3}\n");
    assert.equal(home.config().timezone, "UTC");
    assert.equal(home.config().agent.max_turns, 3);
    rmSync(me.at(".hermes/config.yaml"));
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
    const me = user();
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

test("safe mode is on unless its variable clearly says no", () => {
  for (const word of [undefined, "", " ", "0", "false", "No", "off"])
    assert.equal(isSafeMode({ env: () => word }), false, String(word));
  for (const word of ["1", "true", "YES", "on", "ture", "enabled", "2"])
    assert.equal(isSafeMode({ env: () => word }), true, word);
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
        /config\.yaml is broken at line 3, column 1: .* The built-in defaults are used/,
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
    writeFileSync(me.at(".hermes/config.yaml"), broken);
    for (let n = 0; n < 3; n++) assert.equal(home.config().agent.max_turns, 5);
    assert.equal(told.length, 1);
    assert.match(told[0] ?? "", /line 3.*stay in force/);
    writeFileSync(me.at(".hermes/config.yaml"), "agent: {max_turns: 6}\n");
    assert.equal(home.config().agent.max_turns, 6);
    assert.equal(home.configBroken, false);
  });

  test("what a running process was held back by stays when its new value cannot be read", async () => {
    const me = config("approvals: {deny: [rm *]}\nagent: {max_turns: 5}\n");
    const told: string[] = [];
    const home = await me.open({ onWarning: (message) => told.push(message) });
    writeFileSync(me.at(".hermes/config.yaml"), "approvals: {deny: {a: b}}\nagent: {max_turns: 6}\n");
    for (let n = 0; n < 3; n++) assert.deepEqual(home.config().approvals.deny, ["rm *"]);
    assert.equal(home.config().agent.max_turns, 5);
    assert.equal(told.length, 1);
    assert.match(told[0] ?? "", /approvals\.deny: expected a list of texts, found a mapping\. .* stay in force/);
    writeFileSync(me.at(".hermes/config.yaml"), "approvals: {deny: [a]}\n");
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

describe("a managed home", () => {
  for (const [env, marker, manager] of [
    [{ HERMES_MANAGED: "true" }, null, "NixOS"],
    [{ HERMES_MANAGED: "brew" }, null, "Homebrew"],
    [{ HERMES_MANAGED: "nix" }, null, "Nix"],
    [{}, "acme\n", "acme"],
  ] as const) {
    test(`refuses every write and names ${manager}`, async () => {
      const me = user();
      await me.open();
      if (marker !== null) writeFileSync(me.at(".hermes/.managed"), marker);
      const home = await me.open({ env });
      for (const write of [home.setConfigKey("a", 1), home.setEnv("A", "1"), home.removeEnv("A")]) {
        await assert.rejects(
          write,
          (error: unknown) => error instanceof ConfigError && error.message.includes(`managed by ${manager}`),
        );
      }
      assert.ok(!existsSync(me.at(".hermes/config.yaml")));
    });
  }

  test("may do without a folder for plugins", async () => {
    const me = user();
    await me.open();
    rmdirSync(me.at(".hermes/plugins"));
    await me.open({ env: { HERMES_MANAGED: "1" } });
    assert.ok(!existsSync(me.at(".hermes/plugins")));
  });

  test("does not make missing directories", async () => {
    const me = user();
    await assert.rejects(me.open({ env: { HERMES_MANAGED: "1" } }), /managed by NixOS, which has to create it/);
    assert.ok(!existsSync(me.at(".hermes")));
  });
});

describe("secrets", () => {
  test("the file a key lies in is no secret, the key itself is", async () => {
    const me = user({
      ".hermes/config.yaml": `terminal: {ssh_key: ~/.ssh/id_ed25519}
voice: {record_key: ctrl+space}
mcp_servers: {a: {url: "https://x.test", client_key: /etc/keys/me.pem}, b: {url: "https://x.test", client_key: MIIEvQIBADANBg}}
`,
      ".hermes/.env": "DEPLOY_SSH_KEY=b3BlbnNzaC1rZXk\n",
    });
    const home = await me.open();
    assert.deepEqual([...home.secrets()].sort(), ["MIIEvQIBADANBg", "b3BlbnNzaC1rZXk"]);
  });

  test("are known from .env, the environment, settings and auth.json, and nothing else is", async () => {
    const me = user({
      ".hermes/.env": "A_API_KEY=from-dot-env\nMAX_TOKENS=1234567890\nSHORT_KEY=abc\nGREETING=hello-world\n",
      ".hermes/config.yaml": "providers:\n  x: {api_key: from-config, api: http://some.where}\n",
      ".hermes/auth.json": JSON.stringify({ providers: { p: { tokens: { access_token: "from-auth-json" } } } }),
    });
    const home = await me.open({ env: { B_TOKEN: "from-process" } });
    assert.deepEqual([...home.secrets()].sort(), ["from-auth-json", "from-config", "from-dot-env", "from-process"]);
    assert.equal(home.secrets(), home.secrets());
    await home.setEnv("C_SECRET", "added-later");
    assert.ok(home.secrets().includes("added-later"));
  });

  test("are masked in the log, and the switch is read once", async () => {
    const me = user({ ".hermes/.env": "A_API_KEY=from-dot-env\n" });
    const home = await me.open({
      redactorFor: ({ enabled, knownSecrets }) => {
        const mask = (text: string) =>
          enabled ? knownSecrets().reduce((masked, secret) => masked.replaceAll(secret, "***"), text) : text;
        return Object.assign(mask, { forFile: mask, forKeeping: mask });
      },
    });
    await home.setConfigKey("security.redact_secrets", false);
    home.log.warn("key from-dot-env");
    await home.close();
    assert.match(me.read(".hermes/logs/agent.log"), /hermes: key \*\*\*\n/);
  });
});
