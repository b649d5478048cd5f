// The first start in a folder that nobody has decided about, as its user meets it.
import assert from "node:assert/strict";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const FILE = "trusted_folders.json";

async function strangeFolder(config = ""): Promise<TempHome> {
  const home = await tempHome({ "config.yaml": config });
  await rm(home.at(FILE));
  return home;
}

const decisions = async (home: TempHome) =>
  JSON.parse(await readFile(home.at(FILE), "utf8").catch(() => "{}")) as Record<string, { look_only?: true }>;

describe("a folder that is new to Hermes", { skip: tmuxMissing() }, () => {
  const answers: readonly (readonly [key: string, lookOnly: true | undefined])[] = [
    ["t", undefined],
    ["l", true],
    ["", true],
  ];
  const [trusted, ...lookOnlys] = answers;
  for (const [key, lookOnly] of [...(trusted ? [trusted] : []), ...oneOf(lookOnlys, "an answer for looking only")]) {
    test(`is asked about before the screen opens; ${key === "" ? "Enter" : key} is kept and not asked again`, async () => {
      await using home = await strangeFolder();
      await using screen = await TerminalScreen.start([], { home });
      await screen.waitFor("Trust this folder?");
      await screen.type(key);
      await screen.press("Enter");
      await screen.waitFor("❯");
      assert.equal((await decisions(home))[home.project]?.look_only, lookOnly);
      await screen.waitFor(lookOnly ? /runs +on this machine, look only/ : /runs +on this machine {2}/);
      await using again = await TerminalScreen.start([], { home });
      await again.waitFor("❯");
      assert.doesNotMatch(await again.text(), /Trust this folder/);
    });
  }

  test("is asked about again when the answer is none of the three", async () => {
    await using home = await strangeFolder();
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("Trust this folder?");
    await screen.type("maybe");
    await screen.press("Enter");
    await screen.waitFor(/Trust this folder\?[^\n]*maybe[\s\S]*Trust this folder\?/);
    assert.deepEqual(await decisions(home), {});
    await screen.type("look only");
    await screen.press("Enter");
    await screen.waitFor("❯");
    assert.equal((await decisions(home))[home.project]?.look_only, true);
  });

  test("is left with Ctrl+C too, and what comes next begins on a line of its own", async () => {
    await using home = await strangeFolder();
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("Trust this folder?");
    await screen.press("C-c");
    assert.equal(await screen.exitCode(), 130);
    assert.match(await screen.text(), /\[t\/L\/q\] *\n/);
    assert.deepEqual(await decisions(home), {});
  });

  test("is left with q, and nothing was decided or sent", async () => {
    const server = await ModelServer.start();
    await using home = await strangeFolder(modelConfig(server));
    await using screen = await TerminalScreen.start(["chat", "-q", "hello"], { home });
    await screen.waitFor("Trust this folder?");
    await screen.type("q");
    await screen.press("Enter");
    assert.equal(await screen.exitCode(), 0);
    assert.deepEqual(await decisions(home), {});
    assert.equal(server.requests.length, 0);
    await server.close();
  });
});

test("where nobody can be asked the folder is looked at only, in one line; -z stays silent", async () => {
  await using home = await strangeFolder();
  const query = await runHermes(["chat", "-q", "hello"], { home });
  assert.equal(query.code, 0);
  assert.match(query.stderr, /project is not trusted: nothing in it loads or runs on its own\. .*hermes trust add/);
  assert.doesNotMatch((await runHermes(["-z", "hello"], { home })).stderr, /trust/);
  const json = await runHermes(["chat", "-q", "hello", "--json"], { home });
  assert.match(JSON.parse(json.stdout).warnings.join("\n"), /is not trusted/);
  assert.deepEqual(await decisions(home), {});
});

test("hermes trust add, list and remove; wide folders and missing ones are refused", async () => {
  await using home = await strangeFolder();
  const trust = (...args: string[]) => runHermes(["trust", ...args], { home });
  assert.match((await trust("list")).stdout, /No trusted folders yet\.\nThis folder .*not decided yet/);
  assert.match((await trust("add")).stdout, /project and all its subfolders are trusted/);
  assert.match(
    (await trust()).stdout,
    /^trusted {2}\d{4}-\d\d-\d\d {2}.*project\nThis folder \(.*project\): trusted\.\n$/,
  );
  const listed = JSON.parse((await trust("list", "--json")).stdout);
  assert.deepEqual(listed.here, { path: home.project, standing: "trusted" });
  assert.equal((await trust("remove")).code, 0);
  const again = await trust("remove");
  assert.equal(again.code, 1);
  assert.match(again.stderr, /^hermes: No decision on record for/);
  for (const wide of oneOf(["/", home.osHome, "/tmp"], "a folder that is too wide")) {
    const refused = await trust("add", wide);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^hermes: .* is too broad to be trusted as a whole/);
  }
  assert.match((await trust("add", "missing")).stderr, /is not a folder/);
  assert.deepEqual((({ code, stderr }) => [code, /path is empty/.test(stderr)])(await trust("add", "")), [2, true]);
});

test("below a folder that is decided about, remove and list say through which folder it counts", async () => {
  await using home = await strangeFolder();
  const sub = join(home.project, "sub");
  await mkdir(sub);
  const trust = (...args: string[]) => runHermes(["trust", ...args], { home, cwd: sub });
  await trust("add", home.project);
  assert.match((await trust("list")).stdout, /\nThis folder \(.*sub\): trusted, through .*project\.\n$/);
  const through = /trusted through .*project[.:].*hermes trust remove .*project\n$/;
  const nothing = await trust("remove", sub);
  assert.deepEqual([nothing.code, through.test(nothing.stderr)], [1, true], nothing.stderr);
  await trust("add", sub);
  const { stdout } = await trust("remove", sub);
  assert.match(stdout, /sub: decision removed; it is trusted through/);
  assert.match(stdout, through);
  assert.doesNotMatch(stdout, /asked again/);
  assert.match((await trust("remove", home.project)).stdout, /project: decision removed; Hermes will ask again\.\n$/);
});

test("plugins of a folder run in a trusted one only, although they are switched on", async () => {
  const settings = "plugins:\n  project_enabled: true\n  enabled: [spy]\n";
  await using home = await strangeFolder(settings);
  const folder = join(home.project, ".hermes", "plugins", "spy");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "plugin.yaml"), "name: spy\nversion: 1.0.0\ndescription: x\n");
  const mark = join(home.osHome, "ran");
  await writeFile(
    join(folder, "index.mjs"),
    `import { writeFileSync } from "node:fs";\nexport default () => writeFileSync(${JSON.stringify(mark)}, "");\n`,
  );
  const ran = async () => (await stat(mark).catch(() => null)) !== null;
  await runHermes(["-z", "hello"], { home });
  assert.equal(await ran(), false);
  const why = /spy.*project is not trusted; hermes trust add .*project/;
  for (const args of oneOf([["plugins", "list"], ["plugins", "enable", "spy"], ["doctor"]], "who says why it is off")) {
    const { stdout, stderr } = await runHermes(args, { home });
    assert.match(stdout + stderr, why, args.join(" "));
    assert.doesNotMatch(stdout + stderr, /not installed|No plugins/);
  }
  assert.equal(await ran(), false);
  await runHermes(["trust", "add"], { home });
  assert.doesNotMatch((await runHermes(["plugins", "list"], { home })).stdout, why);
  await runHermes(["-z", "hello"], { home });
  assert.equal(await ran(), true);
});

test("servers of the settings start elsewhere than in a folder that is not trusted", async () => {
  await using home = await strangeFolder();
  const file = join(home.osHome, "server-cwd");
  const script = join(home.osHome, "server.mjs");
  await writeFile(
    script,
    `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(file)}, process.cwd());\n`,
  );
  await home.write(
    "config.yaml",
    `mcp_servers:\n  spy: ${JSON.stringify({ command: process.execPath, args: [script] })}\n`,
  );
  const started = async () => {
    await rm(file, { force: true });
    await runHermes(["mcp", "test", "spy"], { home });
    return readFile(file, "utf8");
  };
  assert.equal(await started(), home.osHome);
  await runHermes(["trust", "add"], { home });
  assert.equal(await started(), home.project);
});

test("a hook named by a relative path is never the folder's own in a folder that is not trusted", async () => {
  await using home = await strangeFolder(
    "hooks:\n  on_session_start:\n    - command: ./hook.sh\nhooks_auto_accept: true\n",
  );
  const mark = join(home.osHome, "ran");
  await writeFile(join(home.project, "hook.sh"), `#!/bin/sh\n: > ${mark}\n`, { mode: 0o755 });
  const ran = async () => (await stat(mark).catch(() => null)) !== null;
  await runHermes(["-z", "hello"], { home });
  assert.equal(await ran(), false);
  await runHermes(["trust", "add"], { home });
  await runHermes(["-z", "hello"], { home });
  assert.equal(await ran(), true);
});

test("the demo shows what a command printed in a folder that is not trusted, without the fence around it", async () => {
  await using home = await strangeFolder("terminal:\n  sandbox: off\n");
  await writeFile(join(home.project, "letter.txt"), "x");
  const { stdout } = await runHermes(["-z", "list the files here"], { home });
  assert.equal(stdout, "1 entry:\n- letter.txt\n");
  const printed = await runHermes(["-z", "run echo the heron flies at dawn over the river"], { home });
  assert.match(
    printed.stdout,
    /^`echo the heron.*` ended with exit code 0\.\n\n```\nthe heron flies at dawn over the river\n```\n$/,
  );
});
