import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Command } from "commander";
import { tinyServer } from "../../../test/support/mcp/hub-rig.ts";
import { pressKeys } from "../../../test/support/press-keys.ts";
import { tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { systemClock } from "../../kit/clock.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { shieldForeignWords } from "./argv.ts";
import { define } from "./mcp.ts";

const START = "# mine\nmodel:\n  default: x # keep this\n";

async function open() {
  const temp = await tempHome({ "config.yaml": START });
  const home = await openHome({
    argv: [],
    env: { HERMES_HOME: temp.dir, HOME: temp.osHome, PATH: process.env.PATH ?? "", GIVEN: "1" },
    osHome: temp.osHome,
    cwd: temp.project,
  });
  let out = "";
  const answers: (string | null)[] = [];
  const keys: string[] = [];
  const write = (text: string) => {
    out += text;
  };
  const io: Partial<CliContext["io"]> = {
    ...{ out: write, err: write, stdinIsTerminal: true, stdoutIsTerminal: true },
    question: async () => answers.shift() ?? null,
    choose: async (question) => pressKeys(question, keys, write),
  };
  return {
    answers,
    keys,
    config: () => readFile(temp.at("config.yaml"), "utf8"),
    async mcp(...args: string[]) {
      out = "";
      const command = new Command("mcp").exitOverride().configureOutput({ writeErr: write });
      define(command, { home, io, clock: systemClock, cwd: temp.project } as unknown as CliContext);
      try {
        await command.parseAsync(shieldForeignWords(["mcp", ...args]).slice(1), { from: "user" });
        return out;
      } catch (error) {
        if (!(error instanceof ExitError)) throw error;
        return `${out}exit ${error.exitCode}: ${error.message}`;
      }
    },
    async close() {
      await home.close();
      await temp[Symbol.asyncDispose]();
    },
  };
}

const tiny = tinyServer();

test("a server that failed is marked until it was reached again", async () => {
  const { mcp, close } = await open();
  await mcp("add", "one", "--no-test", "--command", "no-such-program");
  assert.match(await mcp("list"), /^✓ one {2}stdio, not connected yet/);
  assert.match(await mcp("test", "one"), /exit 1: MCP server "one": the command "no-such-program" was not found/);
  assert.match(
    await mcp("list"),
    /^✗ one {2}stdio, failed just now {2}no-such-program\n {4}MCP server "one": the command/,
  );
  const [row] = JSON.parse(await mcp("list", "--json")).servers;
  assert.match(row.failed.reason, /was not found/);
  await mcp("remove", "one");
  await mcp("add", "one", "--command", tiny.command, "--args", ...tiny.args);
  assert.match(await mcp("list"), /^✓ one {2}stdio, 8 tools/);
  await close();
});

test("a server is added, tried, listed, chosen from and removed; config.yaml keeps every other byte", async () => {
  const { mcp, config, close } = await open();
  assert.match(await mcp("list"), /No MCP servers/);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of config.yaml
  const env = "A=${GIVEN}";
  const added = await mcp("add", "tiny", "--command", tiny.command, "--env", env, "--args", ...tiny.args, "-p", "80");
  assert.match(added, /Added tiny[\s\S]*Connected: 8 tools/);
  const text = await config();
  assert.ok(text.startsWith(START), text);
  assert.match(text, /- "-p"\n {6}- "80"\n {4}env:\n {6}A: "\$\{GIVEN\}"\n/);
  assert.match(await mcp("add", "tiny", "--url", "https://x.example"), /exit 1: Server "tiny" already exists/);

  const [row] = JSON.parse(await mcp("list", "--json")).servers;
  assert.deepEqual([row.name, row.transport, row.enabled, row.tools], ["tiny", "stdio", true, 8]);
  const tried = JSON.parse(await mcp("test", "tiny", "--json"));
  assert.equal(tried.ok, true);
  assert.ok(tried.tools.includes("mcp_tiny_echo"));

  assert.match(
    await mcp("configure", "tiny", "--include", "echo,nonsense"),
    /exit 1: No such tool: nonsense\. Nothing was changed/,
  );
  assert.match(await mcp("configure", "tiny", "--include", "echo,env"), /2 of 9 tools of tiny enabled: echo, env/);
  const listed = JSON.parse(await mcp("tools", "tiny", "--json")).tools;
  assert.deepEqual(
    listed.filter((tool: { enabled: boolean }) => tool.enabled).map((tool: { tool: string }) => tool.tool),
    ["echo", "env"],
  );
  assert.match(await mcp("remove", "tiny"), /Removed tiny/);
  assert.equal(await config(), START);
  assert.match(await mcp("test", "tiny"), /exit 1: There is no MCP server "tiny"\. None configured/);
  await close();
});

test("tools are ticked in a list", async () => {
  const { mcp, keys, config, close } = await open();
  await mcp("add", "tiny", "--command", tiny.command, "--no-test", "--args", ...tiny.args);
  const others = ["2", "5", "6", "7", "8", "9"];
  keys.push(...others, "\r");
  assert.match(await mcp("configure", "tiny"), /1\. \[x\] echo[\s\S]*3 of 9 tools of tiny enabled: echo, crash, fail/);
  keys.push("\r");
  assert.match(await mcp("configure", "tiny"), /Nothing changed/);
  keys.push("1", "\u001b");
  assert.match(await mcp("configure", "tiny"), /Nothing changed/);
  keys.push(...others, "\r");
  await mcp("configure", "tiny");
  assert.doesNotMatch(await config(), /include/);
  await close();
});

test("wrong input is refused in words, and nothing is written", async () => {
  const { mcp, config, close } = await open();
  const cases: readonly [args: string[], said: RegExp][] = [
    [["add", "x"], /exit 2: Use either --command/],
    [["add", "x", "--command", "a", "--url", "https://b.example"], /exit 2: Use either/],
    [["add", "a b", "--command", "c"], /exit 2: "a b" is not a valid server name/],
    [["add", "x", "--url", "ftp://b.example"], /exit 2: .*not an http or https URL/],
    [["add", "x", "--url", "https://b.example", "--env", "A=1"], /exit 2: .*require --command/],
    [["add", "x", "--url", "https://b.example", "--transport", "pigeon"], /exit 2: --transport must be http or sse/],
    [["add", "x", "--command", "a", "--env", "nonsense"], /exit 2: "nonsense" is not NAME=VALUE/],
    [["remove", "x"], /exit 1: There is no MCP server "x"/],
    [["login", "x"], /exit 1: There is no MCP server "x"/],
  ];
  for (const [args, said] of cases) assert.match(await mcp(...args), said);
  assert.equal(await config(), START);
  await close();
});

test("a command the policy asks about needs a yes, which is kept for exactly this line", async () => {
  const { mcp, answers, config, close } = await open();
  const add = () => mcp("add", "sh", "--command", "bash", "--no-test", "--args", "--norc", "-c", "exit 0");
  assert.match(await add(), /exit 1: .*Confirm it at a terminal/);
  answers.push("n");
  assert.match(await add(), /exit 1: Nothing was started/);
  assert.equal(await config(), START);
  answers.push("y");
  assert.match(await add(), /Added sh/);
  assert.match(await config(), /command_allowlist:\n {2}- "bash --norc -c 'exit 0'"/);
  await close();
});
