// Canaries: made-up secrets in every place a user keeps one, printed, echoed and written in every way. None may sing anywhere else.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { tinyServer } from "./support/mcp/hub-rig.ts";
import type { ScriptedCall, Step } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { runHermes } from "./support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "./support/terminal-screen.ts";

/** Known by value: from .env, config.yaml, auth.json and the environment. */
const KNOWN = {
  env: "canary-env-8f3a9c27d1e64b50",
  config: 'canary "config" 77/b1+c2=d3 end',
  auth: "canary-auth-5d2e6f7081929a3b",
  process: "canary-process-0a1b2c3d4e5f",
  server: "canary-server-61f0e2d3c4b5a697",
};

/** Known by shape alone. The middle is what must not be found. */
const SHAPED = {
  vendor: "sk-ant-canaryvendorQ7w8E9r0T1y2U3i4O5p6",
  github: "ghp_canarygithubA1b2C3d4E5f6G7h8I9j0",
  aws: "AKIACANARYAWS1234567",
  jwt: "eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnkiOiJqd3QifQ.canaryjwtsignatureAbCdEf",
  assigned: "canaryassignedvalue99",
  url: "canaryurlpassword77",
  header: "canaryheaderABCDEFGHIJKLMNOP1234",
  pem: "canarypemMIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
};
const secretOf = (value: string) => value.slice(6, -4);

/** Every spelling that would give a canary away. */
const FORBIDDEN = [
  ...Object.values(KNOWN).flatMap((value) => [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value),
    Buffer.from(value).toString("hex"),
    Buffer.from(value).toString("base64").slice(0, -4),
    Buffer.from(`user:${value}`).toString("base64").slice(8, -4),
  ]),
  ...Object.values(SHAPED).map(secretOf),
].map((text) => Buffer.from(text));

const PRINTED = `
TOKEN_A ${KNOWN.env} ${KNOWN.auth} ${KNOWN.process} ${KNOWN.server}
${KNOWN.config}
${JSON.stringify({ deep: JSON.stringify({ text: KNOWN.config }) })}
https://example.org/?q=${encodeURIComponent(KNOWN.config)}&k=${KNOWN.env}
${Buffer.from(KNOWN.env).toString("base64")} ${Buffer.from(`user:${KNOWN.auth}`).toString("base64")} ${Buffer.from(KNOWN.process).toString("hex")}
${SHAPED.vendor} ${SHAPED.github} ${SHAPED.aws} ${SHAPED.jwt}
DB_PASSWORD=${SHAPED.assigned}
postgres://user:${SHAPED.url}@db/main
Authorization: Bearer ${SHAPED.header}
-----BEGIN PRIVATE KEY-----
${SHAPED.pem}
-----END PRIVATE KEY-----
`;

const call = (name: string, args: Readonly<Record<string, unknown>>): ScriptedCall => ({ name, arguments: args });
const SKILL = `---\nname: canary-skill\ndescription: a test\n---\n# Steps\nUse ${KNOWN.env} and ${SHAPED.vendor}.\n`;
const CALLS: readonly ScriptedCall[] = [
  call("terminal", { command: "cat printed.txt" }),
  call("terminal", { command: "cat printed.txt >&2; exit 3" }),
  call("terminal", { command: 'yes "$(cat printed.txt)" | head -n 30000' }),
  call("terminal", { command: `echo ${KNOWN.env} > /dev/null; nosuchcommand-${KNOWN.auth}` }),
  call("terminal", { command: "cat .env; env; cat printed.txt | base64 -w0" }),
  call("terminal", { command: `sleep 0.2; echo ${KNOWN.env}; cat printed.txt`, background: true }),
  call("process", { action: "list" }),
  call("read_file", { path: "printed.txt" }),
  call("read_file", { path: `/nowhere/${KNOWN.env}/${SHAPED.vendor}` }),
  call("read_file", { path: ".env" }),
  call("search_files", { pattern: "canary-env|canaryvendor|PASSWORD", path: "." }),
  call("write_file", { path: "out.txt", content: `${KNOWN.env}\n` }),
  call("patch", { path: "out.txt", old_string: "nothing like it", new_string: KNOWN.auth }),
  call("memory", { action: "add", target: "memory", content: `The key is ${KNOWN.env}, and ${SHAPED.vendor}` }),
  call("skill_manage", { action: "create", name: "canary-skill", content: SKILL }),
  call("todo", { todos: [{ id: "1", content: `use ${KNOWN.env}`, status: "pending" }] }),
  call("session_search", { query: KNOWN.env }),
  call("mcp_tiny_echo", { text: PRINTED }),
  call("mcp_tiny_fail", {}),
  call(`no_such_tool_${KNOWN.env}`, {}),
];

describe("no secret gets out of where its user put it", () => {
  let server: ModelServer;
  let home: TempHome;
  before(async () => {
    server = await ModelServer.start();
    home = await tempHome({
      "config.yaml": `${modelConfig(server)}mcp_servers: ${JSON.stringify({ tiny: { ...tinyServer(), env: { TINY_TOKEN: KNOWN.server } } })}\nauxiliary:\n  vision:\n    api_key: ${JSON.stringify(KNOWN.config)}\ncheckpoints: {enabled: true}\nlogging: {level: DEBUG}\nonboarding:\n  seen: {busy_input_prompt: true, tool_progress_prompt: true}\n`,
      ".env": `CANARY_API_KEY=${KNOWN.env}\n`,
      "auth.json": JSON.stringify({ providers: { x: { access_token: KNOWN.auth } } }),
    });
    await home.write("../project/printed.txt", PRINTED);
    await home.write("../project/.env", `PROJECT_SECRET=${SHAPED.assigned}\n`);
  });
  after(async () => {
    await server.close();
    await home[Symbol.asyncDispose]();
  });
  const env = { CANARY_SERVICE_TOKEN: KNOWN.process };

  test("in no request, on no screen, in no file of the home, in no export and in no checkpoint", {
    timeout: 240_000,
  }, async () => {
    const steps: Step[] = CALLS.map((one, at) => ({
      text: `I see ${KNOWN.env} and ${SHAPED.vendor}.`,
      thinking: `The value ${KNOWN.auth} and ${SHAPED.github}`,
      toolCalls: [{ id: `c${at}`, ...one }],
    }));
    server.script(...steps, { text: `The answer: ${KNOWN.env} ${KNOWN.auth} ${SHAPED.vendor} ${SHAPED.jwt}` });
    server.otherwise(() => ({ text: `title ${KNOWN.env}` }));
    const shown = await runHermes(["chat", "--yolo", "-q", "print everything"], { home, env });
    assert.equal(shown.code, 0, shown.stderr);
    assert.ok(server.requests.length > CALLS.length, "every call was made");
    silent("stderr", shown.stderr);
    silent("stdout", shown.stdout);
    server.script({
      fault: "status",
      status: 400,
      body: { error: { message: `bad key ${KNOWN.env} ${SHAPED.vendor}` } },
    });
    const failed = await runHermes(["-z", "fail"], { home, env });
    silent("an error's text", failed.stdout + failed.stderr);
    for (const { raw } of server.requests) silent("a request", raw);
    for (const format of ["jsonl", "md", "html"]) {
      const exported = await runHermes(["sessions", "export", "--format", format, "-"], { home, env });
      assert.match(exported.stdout, /print everything/);
      silent(`the export as ${format}`, exported.stdout);
    }
    const answers = server.requests.flatMap(
      ({ raw }) => raw.match(/<untrusted_tool_result source=\\"mcp_tiny_\w+/g) ?? [],
    );
    assert.ok(
      answers.some((answer) => answer.endsWith("mcp_tiny_echo")),
      "the server answered",
    );
    await silentHome(home);
    assert.match(
      await readFile(join(home.dir, "memories", "MEMORY.md"), "utf8"),
      /The key is «redacted», and «redacted:sk-…»/,
    );
    assert.match(await readFile(join(home.dir, "skills", "canary-skill", "SKILL.md"), "utf8"), /Use «redacted»/);
  });

  test("in no file of a batch", { timeout: 240_000 }, async () => {
    server.clear();
    server.script(
      {
        text: `I see ${KNOWN.env}.`,
        thinking: `The value ${KNOWN.auth} and ${SHAPED.github}`,
        toolCalls: [call("terminal", { command: `cat printed.txt; echo ${KNOWN.auth}` })],
      },
      { text: `The answer: ${KNOWN.env} ${SHAPED.vendor}`, thinking: `So it is ${KNOWN.config}` },
    );
    server.otherwise(() => ({ fault: "status", status: 400, body: { error: { message: `bad key ${KNOWN.env}` } } }));
    const prompts = [{ prompt: "say what is printed" }, { prompt: "this one fails" }];
    await home.write("../project/prompts.jsonl", prompts.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const args = [
      "batch",
      "--dataset_file",
      "prompts.jsonl",
      "--run_name",
      "canary",
      "--num_workers",
      "1",
      "--verbose",
    ];
    const { stdout, stderr } = await runHermes(args, { home, env });
    silent("the batch's screen", stdout + stderr);
    const folder = join(home.project, "data", "canary");
    const files = await readdir(folder);
    for (const name of files) silent(name, await readFile(join(folder, name)));
    assert.match(await readFile(join(folder, "trajectories.jsonl"), "utf8"), /I see canary\.\.\./, stdout + stderr);
    assert.ok(files.includes("failed_trajectories.jsonl"), files.join());
    await silentHome(home);
  });

  test("on the terminal's screen", { skip: tmuxMissing(), timeout: 240_000 }, async () => {
    server.clear();
    server.script(
      {
        text: `Looking for ${KNOWN.env}`,
        toolCalls: [call("terminal", { command: `cat printed.txt; echo ${KNOWN.auth}` })],
      },
      { text: `It is ${KNOWN.env}, or ${SHAPED.vendor}. The end.` },
    );
    const screen = await TerminalScreen.start(["--yolo"], { home, env, rows: 60 });
    try {
      await screen.waitFor("fake-model");
      await screen.say("show me");
      silent("the screen", await screen.waitFor("The end."));
    } finally {
      await screen[Symbol.asyncDispose]();
    }
    await silentHome(home);
  });
});

function silent(where: string, what: string | Buffer): void {
  assert.deepEqual(leaks(where, what), []);
}

function leaks(where: string, what: string | Buffer): string[] {
  const bytes = typeof what === "string" ? Buffer.from(what) : what;
  return FORBIDDEN.flatMap((canary) => {
    const at = bytes.indexOf(canary);
    return at < 0 ? [] : [`${where} holds ${canary}: …${bytes.subarray(Math.max(0, at - 100), at + 60)}…`];
  });
}

/** Every byte below the home but the files the user keeps secrets in; what the store of checkpoints has packed is unpacked. */
async function silentHome(home: TempHome): Promise<void> {
  const found: string[] = [];
  for (const entry of await readdir(home.dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(home.dir.length + 1);
    if (name === ".env" || name === "config.yaml" || name === "auth.json") continue;
    const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return Buffer.alloc(0); // a program that ends takes its files of the database along
      throw error;
    });
    found.push(...leaks(name, bytes));
  }
  const store = join(home.dir, "checkpoints", "store");
  const objects = await promisify(execFile)(
    "git",
    ["--git-dir", store, "cat-file", "--batch-all-objects", "--batch", "--unordered"],
    { encoding: "buffer", maxBuffer: 64 * 1024 * 1024 },
  );
  assert.match(objects.stdout.toString("latin1"), /before write_file/, "there is a checkpoint");
  found.push(...leaks("a checkpoint", objects.stdout));
  assert.deepEqual(found, []);
}
