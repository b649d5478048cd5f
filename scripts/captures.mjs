// Takes pictures of every screen: starts the real program in tmux, with a model that follows a script, at 80x24 and 140x40, dark and light.
//
//   node scripts/captures.mjs FOLDER [WORD ...]     text, colours and SVG of each screen; WORDs name some of them (welcome, 80x24, light ...)
//   node scripts/captures.mjs --docs                the few in docs/pictures, and the recording of the READMEs
//
// Scenes are played like a user would: they type, and look until something is to be seen.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ModelServer } from "../test/support/model-server/server.ts";
import { runHermes } from "../test/support/run-hermes.ts";
import { castOf, drawRecording, drawScreen } from "../test/support/screen-picture.ts";
import { tempHome } from "../test/support/temp-home.ts";
import { TerminalScreen } from "../test/support/terminal-screen.ts";
import { root } from "./setup.mjs";

const SIZES = [
  { columns: 80, rows: 24 },
  { columns: 140, rows: 40 },
];
/** Narrower and wider than most, looked at for what breaks. */
const EDGES = [
  { columns: 40, rows: 24 },
  { columns: 300, rows: 50 },
];
const THEMES = ["dark", "light"];
const BACKGROUND = { dark: "15;0", light: "0;15" };

const SOURCE = `export function total(items) {
  let sum = 0;
  for (const item of items) {
    sum += item.price * item.count;
  }
  return sum;
}

export function shipping(total) {
  return total > 50 ? 0 : 4.9;
}
`;
const TODOS = [
  { id: "1", content: "read the price code", status: "completed" },
  { id: "2", content: "round to cents", status: "completed" },
  { id: "3", content: "run the tests", status: "in_progress" },
  { id: "4", content: "write a line for the changelog", status: "pending" },
];
const ANSWER = `## Prices are rounded now

\`total()\` added floats, so **0.1 + 0.2** became *0.30000000000000004*. It rounds to cents, see [the floating-point guide](https://floating-point-gui.de).

- the sum is rounded once, at the end, and not for every single item, because rounding errors would add up over a long list
- \`shipping()\` stays as it was

\`\`\`js
// Half a cent goes up.
const cents = Math.round(sum * 100);
return cents / 100;
\`\`\`

| Items | before | after |
|---|--:|--:|
| 3 × 0.1 | 0.30000000000000004 | 0.3 |
| 1 × 19.99 | 19.99 | 19.99 |
| 中文 | 1 | 1 |

> All 14 tests pass.
`;
const TESTS =
  "for n in 1 2 3 4 5 6 7 8; do echo \"ok $n - price test number $n\"; done; until [ -e go ]; do sleep 0.1; done; echo '# pass 14'";
const EDIT = {
  mode: "replace",
  path: "price.js",
  old_string: "  return sum;\n}\n\nexport function shipping(total) {\n  return total > 50 ? 0 : 4.9;",
  new_string:
    "  return Math.round(sum * 100) / 100;\n}\n\nexport function shipping(total) {\n  return total >= 50 ? 0 : 4.9;",
};

/** The first key that the newest message contains decides; what follows a tool is said by `then`. */
const SCRIPT = {
  "round the prices": {
    thinking: "I should read the file first.",
    toolCalls: [call("read_file", { path: "price.js" })],
  },
  "Add the new function": { text: ANSWER, pace: 25, chunk: 12 },
  "run all tests": {
    text: "I run the tests first.",
    toolCalls: [call("todo", { todos: TODOS }), call("terminal", { command: TESTS })],
  },
  "clean up": {
    toolCalls: [
      call("terminal", { command: "rm -r build/cache build/old-report build/a-folder-with-a-rather-long-name" }),
    ],
  },
  "which colour": {
    toolCalls: [
      call("clarify", {
        question: "Which colour should the button have?",
        choices: ["blue, as the other buttons", "green", "the colour of the brand"],
      }),
    ],
  },
  "look at the web": { toolCalls: [call("web_search", { query: "rounding money in JavaScript" })] },
  "a long story": { text: "Once upon a time. ".repeat(400), pace: 120, chunk: 20 },
};
const AFTER_TOOLS = {
  "price.js": [call("patch", EDIT)],
};

function call(name, args) {
  return { name, arguments: args };
}

function answer(request) {
  const messages = request.body.messages;
  const { role, content } = messages.at(-1);
  const said = typeof content === "string" ? content : JSON.stringify(content);
  if (role !== "tool") return SCRIPT[Object.keys(SCRIPT).find((key) => said.includes(key)) ?? ""] ?? { text: "Done." };
  const tools = messages.filter((one) => one.role === "tool").length;
  if (tools === 1 && said.includes("export function")) return { toolCalls: AFTER_TOOLS["price.js"] };
  if (said.includes("# pass 14"))
    return { toolCalls: [call("todo", { todos: TODOS.map((todo) => ({ ...todo, status: "completed" })) })] };
  const called = messages.findLast((one) => one.role === "assistant")?.tool_calls?.[0]?.function;
  if (called?.name === "todo" && !called.arguments.includes("pending"))
    return { text: "All **14 tests** pass, and the changelog has its line.", pace: 15 };
  return { text: ANSWER, pace: 15, chunk: 10 };
}

/** What each scene types; `shot` names a picture of what is then to be seen. */
const SCENES = {
  async first({ start, shot, url }) {
    const { screen } = await start({ fresh: true });
    await screen.waitFor("Trust this folder?");
    await shot("trust");
    await screen.say("t");
    await screen.waitFor("/setup");
    await screen.waitFor(/⚕ demo /);
    await shot("welcome-demo");
    await screen.say("/setup model");
    await screen.waitFor("more; type to search");
    await shot("setup-providers");
    await screen.say("another open");
    await screen.waitFor("Server URL");
    await screen.say(url);
    await screen.waitFor(/API key for|Which model/);
    await pause(500);
    await shot("setup-models");
  },
  async welcome({ start, shot }) {
    const { screen } = await start();
    await shot("welcome");
    await screen.type("/mo");
    await screen.waitFor("/mode");
    await shot("completion");
    await screen.press("C-u");
    await screen.say("/help");
    await screen.waitFor("/usage");
    await pause(300);
    await shot("help");
    await screen.say("/keys");
    await screen.waitFor("Ctrl+X ?");
    await shot("keys");
    await screen.say("/skin");
    await screen.waitFor("poseidon");
    await shot("skins");
  },
  async work({ start, shot }) {
    const { screen, project } = await start();
    await screen.say("round the prices in price.js");
    await screen.waitFor("All 14 tests pass.");
    await pause(300);
    await shot("answer");
    await shot("diff", { history: /🔧/ });
    await screen.say("run all tests");
    await screen.waitFor("price test number 8");
    await pause(300);
    await shot("tools-running-todo");
    writeFileSync(join(project, "go"), "");
    await screen.waitForGone("price test number 7");
    await screen.press("C-o");
    await screen.waitFor("Esc closes");
    await screen.press("Left");
    await screen.waitFor("# pass 14");
    await shot("tool-output");
    await screen.press("Escape");
    await screen.waitForGone("Esc closes");
    await screen.say("/usage");
    await screen.waitFor(/purpose/);
    await pause(300);
    await shot("usage");
    await screen.say("/context");
    await screen.waitFor("Free space");
    await shot("context");
    await screen.say("!git status --short");
    await pause(1500);
    await shot("shell-line");
    await screen.say("/undo now");
    await screen.waitFor("↶");
    await shot("undo");
    await screen.press("C-u");
    await screen.say("/quit");
    await screen.exitCode();
    await shot("farewell");
  },
  async streaming({ start, shot }) {
    const { screen } = await start();
    await screen.say("Add the new function");
    await screen.waitFor("stays as it");
    await shot("streaming");
  },
  async questions({ start, shot }) {
    const { screen } = await start();
    await screen.say("clean up the build folder");
    await screen.waitFor(/^ *❯? *5\. /m);
    await pause(300);
    await shot("approval");
    await screen.press("Escape");
    await pause(1500);
    await shot("approval-denied");
    await screen.say("which colour should it have");
    await screen.waitFor(/^ *❯? *4\. /m);
    await pause(300);
    await shot("clarify");
    await screen.press("Escape");
    await pause(800);
    await screen.say("/new");
    await screen.waitFor(/^ *❯? *3\. /m);
    await pause(300);
    await shot("confirm");
  },
  async pickers({ start, shot, earlier }) {
    await earlier();
    const { screen } = await start();
    await screen.say("/model");
    await screen.waitFor("vendor/vision");
    await pause(300);
    await shot("model-picker");
    await screen.press("Escape");
    await screen.waitForGone("vendor/vision");
    await pause(200);
    await shot("after-picker");
    await screen.say("/sessions");
    await screen.waitFor("narwhal");
    await pause(300);
    await shot("session-picker");
    await screen.press("Escape");
    await pause(200);
    await screen.say("/tools switch");
    await pause(800);
    await shot("tools-picker");
  },
  async busy({ start, shot }) {
    const { screen } = await start();
    await screen.say("a long story please");
    await screen.waitFor("Once upon");
    await screen.say("/background tell a long story too");
    await screen.waitFor(/bg_/);
    await screen.say("/queue and then run the linter on everything that changed");
    await screen.say("/queue write the changelog");
    await pause(500);
    await shot("queue-line");
    await screen.press("C-x");
    await screen.type("q");
    await pause(500);
    await shot("queue");
    await screen.press("Escape");
    await screen.waitForGone(/^Queue \(/m);
    await screen.press("C-x");
    await screen.type("b");
    await pause(500);
    await shot("tasks");
  },
  async modes({ start, shot }) {
    const { screen } = await start();
    await screen.press("BTab");
    await pause(300);
    await screen.press("BTab");
    await pause(300);
    await shot("plan-mode");
  },
  async resume({ start, shot, earlier }) {
    await earlier();
    const { screen } = await start({ args: ["-c"] });
    await screen.waitFor("resumed");
    await pause(500);
    await shot("resume");
  },
  async chinese({ start, shot }) {
    const { screen } = await start({ env: { HERMES_LANGUAGE: "zh" } });
    await screen.say("clean up the build folder");
    await screen.waitFor("危险命令：递归删除");
    await pause(300);
    await shot("chinese");
  },
  async plain({ start, shot }) {
    const { screen } = await start({ args: ["--plain"], ready: /^>/m });
    await screen.say("clean up the build folder");
    await screen.waitFor(/^ *4\. /m);
    await shot("plain");
  },
  async command_line({ start, shot, earlier }) {
    await earlier();
    for (const command of ["status", "doctor", "sessions list"]) {
      await start({ args: command.split(" "), ready: /\[exit/ });
      await shot(command.replace(" ", "-"));
    }
  },
};

async function play(scene, { columns, rows, theme, shot }) {
  const server = await ModelServer.start();
  server.models = ["scripted-model", "scripted-model-mini", ...["small", "large", "vision"].map((n) => `vendor/${n}`)];
  server.window = 200_000;
  server.otherwise(answer);
  const homes = [];
  let screen = null;
  let home = null;
  const settings = `model:\n  default: scripted-model\n  provider: custom\n  base_url: ${server.url}\n  api_key: none-is-needed\n  context_length: 200000\nonboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n`;
  const ready = async () => {
    home ??= await newHome({ "config.yaml": settings });
    return home;
  };
  async function newHome(files) {
    const made = await tempHome(files);
    homes.push(made);
    const project = join(made.osHome, "shop");
    mkdirSync(join(project, "build"), { recursive: true });
    writeFileSync(join(project, "price.js"), SOURCE);
    writeFileSync(join(project, "notes.md"), "# Notes\n");
    const git = (...args) =>
      execFileSync("git", ["-C", project, "-c", "user.name=you", "-c", "user.email=you@example.org", ...args], {
        stdio: "ignore",
        env: { PATH: process.env.PATH, HOME: made.osHome },
      });
    git("init", "-b", "main");
    git("add", ".");
    git("commit", "-m", "Start");
    if (files["config.yaml"] !== undefined)
      await made.write(
        "trusted_folders.json",
        JSON.stringify({ [project]: { at: "2026-01-01T00:00:00.000Z", by: "captures" } }),
      );
    else await made.write("trusted_folders.json", "{}");
    return { ...made, project };
  }
  try {
    await scene({
      url: server.url,
      async earlier() {
        for (const text of ["the narwhal question: how long is its tusk?", "中文标题也要对齐 please", "run date"])
          await runHermes(["-z", text], { home: await ready(), cwd: (await ready()).project });
      },
      async start({ fresh = false, args = [], env = {}, ready: seen = /⚕ scripted-model[ .]/ } = {}) {
        await screen?.[Symbol.asyncDispose]();
        const used = fresh ? await newHome({}) : await ready();
        screen = await TerminalScreen.start(args, {
          home: used,
          cwd: used.project,
          columns,
          rows,
          env: { COLORFGBG: BACKGROUND[theme], COLORTERM: "truecolor", ...env },
        });
        if (!fresh) await screen.waitFor(seen);
        await pause(400);
        return { screen, project: used.project };
      },
      async shot(name, { history } = {}) {
        const text = await screen.text(history ? { history: true } : {});
        const ansi = await (history ? screen.styled({ history: true }) : screen.styled());
        if (!history) return shot(name, text, ansi);
        const lines = text.split("\n");
        const from = Math.max(0, lines.findIndex((line) => history.test(line)) - 3);
        shot(
          name,
          lines.slice(from, from + rows).join("\n"),
          ansi
            .split("\n")
            .slice(from, from + rows)
            .join("\n"),
        );
      },
    });
  } finally {
    await screen?.[Symbol.asyncDispose]();
    await server.close();
    for (const each of homes) await each[Symbol.asyncDispose]();
  }
}

async function everything(folder, words) {
  mkdirSync(folder, { recursive: true });
  const matches = (name) => words.length === 0 || words.every((word) => name.includes(word));
  const failed = [];
  for (const size of [...SIZES, ...EDGES]) {
    for (const theme of EDGES.includes(size) ? ["dark"] : THEMES) {
      for (const [title, scene] of Object.entries(SCENES)) {
        const label = `${title}.${size.columns}x${size.rows}.${theme}`;
        if (!matches(label)) continue;
        const shot = (name, text, ansi) => {
          const file = join(folder, `${name}.${size.columns}x${size.rows}.${theme}`);
          writeFileSync(`${file}.txt`, text);
          writeFileSync(`${file}.ansi`, ansi);
          writeFileSync(`${file}.svg`, drawScreen({ ansi, ...size, theme, title: name }));
          process.stdout.write(`${file}.svg\n`);
        };
        await play(scene, { ...size, theme, shot }).catch((error) => {
          failed.push(label);
          process.stderr.write(`${label}: ${error.message}\n`);
        });
      }
    }
  }
  if (matches("recording")) {
    const recorded = await recording();
    writeFileSync(join(folder, "recording.svg"), drawRecording(recorded));
    writeFileSync(join(folder, "recording.cast"), castOf(recorded));
  }
  if (failed.length > 0) process.exitCode = 1;
}

/** What the READMEs play: one task from the question to the answer, with a command that is asked about. */
async function record({ start, frames }) {
  const { screen, project } = await start();
  const take = frames(screen);
  await take(1.2);
  for (const part of ["round ", "the ", "prices ", "in ", "price.js"]) {
    await screen.type(part);
    await take(0.25);
  }
  await screen.press("Enter");
  const seen = async (pattern, seconds) => {
    for (let tries = 0; tries < 400 && !pattern.test(await screen.text()); tries++) await take(0.09);
    await take(seconds);
  };
  await seen(/All 14 tests pass/, 2.5);
  for (const part of ["run ", "all ", "tests"]) {
    await screen.type(part);
    await take(0.25);
  }
  await screen.press("Enter");
  await seen(/price test number 8/, 1.8);
  writeFileSync(join(project, "go"), "");
  await seen(/⏲/, 1);
  await screen.press("C-o");
  await seen(/Esc closes/, 1.8);
  await screen.press("Escape");
  await screen.waitForGone("Esc closes");
  await screen.say("clean up the build folder");
  await seen(/^ *❯? *5\. /m, 3);
}

/** The pictures of the documentation, small and few. */
async function documentation() {
  const folder = join(root, "docs", "pictures");
  mkdirSync(folder, { recursive: true });
  const size = { columns: 90, rows: 26 };
  const wanted = [
    ["questions", "dark", ["approval"]],
    ["pickers", "dark", ["session-picker"]],
    ["work", "dark", ["diff", "tools-running-todo"]],
    ["work", "light", ["diff"]],
  ];
  for (const [scene, theme, names] of wanted) {
    const shot = (name, _text, ansi) => {
      if (!names.includes(name)) return;
      const file = join(folder, `${name}${theme === "light" ? "-light" : ""}.svg`);
      writeFileSync(file, drawScreen({ ansi, ...size, theme, title: name }));
      process.stdout.write(`${file}\n`);
    };
    await play(SCENES[scene], { ...size, theme, shot });
  }
  writeFileSync(join(folder, "hermes.svg"), drawRecording(await recording()));
  process.stdout.write(`${join(folder, "hermes.svg")}\n`);
}

async function recording() {
  const size = { columns: 90, rows: 26 };
  const taken = [];
  const frames = (screen) => async (seconds) => {
    const ansi = await screen.styled();
    const last = taken.at(-1);
    if (last?.ansi === ansi) last.seconds += seconds;
    else taken.push({ ansi, seconds });
    await pause(Math.min(seconds, 0.1) * 1000);
  };
  await play((stage) => record({ ...stage, frames }), { ...size, theme: "dark", shot: () => undefined });
  return { frames: taken, ...size, theme: "dark", title: "Hermes at work" };
}

const [folder, ...words] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write("usage: node scripts/captures.mjs FOLDER [WORD ...] | --docs\n");
  process.exit(2);
}
if (folder === "--docs") await documentation();
else await everything(folder, words);
