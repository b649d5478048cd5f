// node scripts/measure-house.mjs [FOLDER] [--json]: how large the house is and how far one message walks through it.
// Files, lines, median, single importers, the longest chain of imports; then `hermes -z` with one tool call against a server of its own,
// under V8's coverage: which files ran a function.
import { spawn } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({ options: { json: { type: "boolean" } }, allowPositionals: true });
const root = resolve(positionals[0] ?? dirname(dirname(fileURLToPath(import.meta.url))));
const source = join(root, "src");

const sizes = new Map();
const edges = [];
for (const file of globSync("**/*.ts", { cwd: source })) {
  if (file.endsWith(".test.ts")) continue;
  const text = readFileSync(join(source, file), "utf8");
  sizes.set(file, text.split("\n").length - 1);
  const statics = text.matchAll(/^(?:import|export)(\s+type)?\s([^;"]*?)\sfrom "(\.[^"]+\.ts)"/gm);
  for (const [, type, names, path] of statics) {
    const inner = names.match(/^\{(.*)\}$/s)?.[1];
    const typesOnly = type !== undefined || (inner !== undefined && !/(^|,)\s*(?!type\s)\w/.test(inner));
    edges.push({ from: file, to: join(dirname(file), path), kind: typesOnly ? "type" : "value" });
  }
  for (const [, path] of text.matchAll(/\bimport\(\s*"(\.[^"]+\.ts)"\s*\)/g))
    edges.push({ from: file, to: join(dirname(file), path), kind: "lazy" });
}

const rooms = {};
for (const [file, lines] of sizes) {
  const room = file.includes("/") ? file.split("/")[0] : "main";
  rooms[room] ??= { sizes: [], single: 0 };
  rooms[room].sizes.push(lines);
  if (importersOf(file).size === 1) rooms[room].single++;
}
const all = [...sizes.values()];
const found = {
  files: all.length,
  lines: sum(all),
  median: median(all),
  largest: Math.max(...all),
  under30: all.filter((lines) => lines < 30).length,
  under60: all.filter((lines) => lines < 60).length,
  singleImporters: sum(Object.values(rooms).map(({ single }) => single)),
  longestChain: longestChain(),
  dynamicImports: edges.filter(({ kind }) => kind === "lazy").length,
  rooms: Object.fromEntries(
    Object.entries(rooms)
      .sort()
      .map(([room, { sizes, single }]) => [
        room,
        { files: sizes.length, lines: sum(sizes), median: median(sizes), largest: Math.max(...sizes), single },
      ]),
  ),
  oneMessage: await followOneMessage(),
};
process.stdout.write(values.json ? `${JSON.stringify(found, null, 2)}\n` : report(found));

function importersOf(file) {
  return new Set(edges.filter(({ to }) => to === file).map(({ from }) => from));
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/** Static imports of values only. */
function longestChain() {
  const below = Map.groupBy(
    edges.filter(({ kind }) => kind === "value"),
    ({ from }) => from,
  );
  const known = new Map();
  const depth = (file) => {
    if (!known.has(file)) {
      known.set(file, 0);
      known.set(file, 1 + Math.max(0, ...(below.get(file) ?? []).map(({ to }) => depth(to))));
    }
    return known.get(file);
  };
  return Math.max(...[...sizes.keys()].map(depth));
}

/** `hermes -z` from source: the model reads one file, then answers. */
async function followOneMessage() {
  const folder = mkdtempSync(join(tmpdir(), "hermes-measure-"));
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      if (!request.url.endsWith("/chat/completions")) return response.writeHead(404).end("{}");
      const { messages } = JSON.parse(body);
      const asked = messages.some(({ role }) => role === "tool");
      const call = { index: 0, id: "call_1", type: "function", function: readFile };
      const delta = asked ? { content: "It says hello." } : { tool_calls: [call] };
      const chunk = (choice) => `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", ...choice })}\n\n`;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk({ choices: [{ index: 0, delta: { role: "assistant", ...delta } }] }));
      response.write(chunk({ choices: [{ index: 0, delta: {}, finish_reason: asked ? "stop" : "tool_calls" }] }));
      response.end("data: [DONE]\n\n");
    });
  });
  const readFile = { name: "read_file", arguments: JSON.stringify({ path: join(folder, "hello.txt") }) };
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const home = join(folder, "home");
  const coverage = join(folder, "coverage");
  mkdirSync(home);
  writeFileSync(join(folder, "hello.txt"), "hello\n");
  writeFileSync(
    join(home, "config.yaml"),
    `model:\n  default: measured\n  provider: custom\n  base_url: http://127.0.0.1:${server.address().port}/v1\n`,
  );
  try {
    const own = join(root, "node_modules", "node", "bin", "node");
    const child = spawn(own, [join(source, "main.ts"), "-z", "What does hello.txt say?"], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, HERMES_HOME: home, NODE_V8_COVERAGE: coverage, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
    });
    const code = await new Promise((ended) => child.on("close", ended));
    if (code !== 0 || !said.includes("It says hello.")) throw new Error(`the run ended with ${code}: ${said}`);
    return countRun(coverage);
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function countRun(coverage) {
  const ran = new Map();
  let loaded = 0;
  for (const name of readdirSync(coverage)) {
    const { result } = JSON.parse(readFileSync(join(coverage, name), "utf8"));
    for (const { url, functions } of result) {
      if (!url.startsWith(`file://${source}/`)) continue;
      loaded++;
      const called = functions.filter(({ functionName, ranges }) => functionName !== "" && ranges[0].count > 0).length;
      if (called > 0) ran.set(url.slice(`file://${source}/`.length), called);
    }
  }
  const byRoom = Object.groupBy(ran.keys(), (file) => (file.includes("/") ? file.split("/")[0] : "main"));
  return {
    loaded,
    ran: ran.size,
    functions: sum([...ran.values()]),
    rooms: Object.fromEntries(Object.entries(byRoom).map(([room, files]) => [room, files.length])),
  };
}

function report({ rooms, oneMessage, ...totals }) {
  const line = (cells) => `${cells.map((cell, index) => String(cell)[index ? "padStart" : "padEnd"](12)).join("")}\n`;
  return [
    line(["room", "files", "lines", "median", "largest", "single"]),
    ...Object.entries(rooms).map(([room, at]) => line([room, at.files, at.lines, at.median, at.largest, at.single])),
    "\n",
    ...Object.entries(totals).map(([name, value]) => `${name.padEnd(24)}${value}\n`),
    `\none message: ${oneMessage.loaded} modules loaded, ${oneMessage.ran} run a function, ${oneMessage.functions} functions\n`,
    `  ${Object.entries(oneMessage.rooms)
      .sort((a, b) => b[1] - a[1])
      .map(([room, files]) => `${room} ${files}`)
      .join(", ")}\n`,
  ].join("");
}
