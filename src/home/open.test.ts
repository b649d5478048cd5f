import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { homeUsers } from "../../test/support/home-users.ts";
import { NEW_CONFIG } from "./config/schema.ts";
import { ConfigError } from "./open.ts";
import { DEFAULT_IDENTITY, isSafeMode } from "./paths.ts";

const user = homeUsers();

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
    assert.equal(me.read(".hermes/config.yaml"), NEW_CONFIG);
    assert.equal(statSync(me.at(".hermes/config.yaml")).mode & 0o777, 0o600);
    assert.equal(home.config().terminal.sandbox, "auto");
    assert.deepEqual(home.warnings, []);
  });

  test("an empty folder becomes a home with settings; one that somebody began is given none", async () => {
    const empty = user();
    mkdirSync(empty.at(".hermes"));
    assert.equal((await empty.open()).config().terminal.sandbox, "auto");
    const begun = user({ ".hermes/memories/MEMORY.md": "mine" });
    assert.equal((await begun.open()).config().terminal.sandbox, "off");
    assert.ok(!existsSync(begun.at(".hermes/config.yaml")));
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
    await writeFile(me.at(".hermes/.env"), "A=9\nNEW=3\n");
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

test("safe mode is on unless its variable clearly says no", () => {
  for (const word of [undefined, "", " ", "0", "false", "No", "off"])
    assert.equal(isSafeMode({ env: () => word }), false, String(word));
  for (const word of ["1", "true", "YES", "on", "ture", "enabled", "2"])
    assert.equal(isSafeMode({ env: () => word }), true, word);
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
      assert.equal(me.read(".hermes/config.yaml"), NEW_CONFIG);
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
        return Object.assign(mask, {
          forFile: mask,
          forKeeping: mask,
          fromUser: (text: string) => ({ text, keys: [] }),
        });
      },
    });
    await home.setConfigKey("security.redact_secrets", false);
    home.log.warn("key from-dot-env");
    await home.close();
    assert.match(me.read(".hermes/logs/agent.log"), /hermes: key \*\*\*\n/);
  });
});
