// The same for backends without Python: the program that watches over a JavaScript script, and the module through which it calls tools.

export const JAVASCRIPT_RUNNER = String.raw`
const { spawn } = require("node:child_process");
const fs = require("node:fs").promises;
const net = require("node:net");
const path = require("node:path");
const { StringDecoder } = require("node:string_decoder");

const send = (frame) => process.stdout.write(p.mark + JSON.stringify(frame) + "\n");
const lines = (stream, take, first) => {
  let text = first || "";
  const feed = (more) => {
    text += more;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n")) {
      const line = text.slice(0, at);
      text = text.slice(at + 1);
      take(JSON.parse(line));
    }
  };
  feed("");
  stream.setEncoding("utf8").on("data", feed);
};

// Node cannot ask before a program is started or a file written. So it starts none, and writes only where nothing is guarded.
const rights = (watch, cwd, folder) => {
  if (!watch) return [];
  const knows = (flag) => process.allowedNodeEnvironmentFlags.has(flag);
  const isFree = (path) => !watch.guarded.some((guarded) => guarded === path || guarded.startsWith(path + "/"));
  const writable = [folder, ...(watch.roots.length > 0 ? watch.roots : [cwd, p.temp])].filter(isFree);
  return [
    knows("--permission") ? "--permission" : "--experimental-permission",
    ...["--allow-net"].filter(knows),
    knows("--disable-warning") ? "--disable-warning=ExperimentalWarning" : "--no-warnings",
    "--allow-fs-read=*",
    ...writable.map((path) => "--allow-fs-write=" + path),
  ];
};

(async () => {
  let folder = await fs.mkdtemp(path.join(p.temp, "hermes-code-"));
  if (folder.length > 90) {
    await fs.rmdir(folder);
    folder = await fs.mkdtemp("/tmp/hermes-code-");
  }
  const module = path.join(folder, "node_modules", "hermes_tools");
  await fs.mkdir(module, { recursive: true });
  await fs.writeFile(path.join(module, "package.json"), '{"name":"hermes_tools","type":"module","exports":"./index.mjs"}');
  await fs.writeFile(path.join(module, "index.mjs"), p.javascriptTools);
  await fs.writeFile(path.join(folder, "script.mjs"), p.code);

  const address = path.join(folder, "rpc");
  const waiting = new Map();
  let calls = 0;
  const server = net.createServer((connection) => {
    connection.on("error", () => undefined);
    lines(connection, ({ tool, args, n }) => {
      const id = ++calls;
      waiting.set(id, (result) => connection.writable && connection.write(JSON.stringify({ n, result }) + "\n"));
      send({ t: "call", id, tool, args });
    });
  });
  const mask = process.umask(0o177);
  await new Promise((done) => server.listen(address, done));
  process.umask(mask);

  const secret = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"];
  const kept = (name) =>
    p.handedOn.includes(name) ||
    (!secret.some((word) => name.toUpperCase().includes(word)) &&
      (p.names.includes(name) || p.prefixes.some((prefix) => name.startsWith(prefix))));
  const { env: all } = process;
  const env = Object.fromEntries(Object.entries(all).filter(([name]) => kept(name)));
  env.HERMES_RPC_SOCKET = address;
  let cwd = process.cwd();
  if (p.strict) {
    cwd = path.join(folder, "work");
    await fs.mkdir(cwd);
  }
  const child = spawn(process.execPath, [...rights(p.watch, cwd, folder), path.join(folder, "script.mjs")], {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const stop = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {}
  };
  process.on("SIGTERM", stop);
  process.on("SIGHUP", stop);
  lines(
    process.stdin,
    ({ id, result }) => {
      const answer = waiting.get(id);
      waiting.delete(id);
      if (answer) answer(result);
    },
    rest,
  );
  process.stdin.on("end", stop);

  const pump = (t, stream, limit) => {
    const decoder = new StringDecoder("utf8");
    let head = Math.floor((limit * 2) / 5);
    const most = limit - head;
    const kept = { tail: "", cut: 0 };
    const take = (text) => {
      const first = text.slice(0, head);
      head -= first.length;
      if (first) send({ t, text: first });
      const tail = kept.tail + text.slice(first.length);
      kept.cut += Math.max(0, tail.length - most);
      kept.tail = tail.slice(-most);
    };
    stream.on("data", (data) => take(decoder.write(data)));
    const ended = new Promise((done) => stream.on("close", done));
    return { t, kept, ended };
  };
  const pumps = [pump("out", child.stdout, p.outChars), pump("err", child.stderr, p.errChars)];
  send({ t: "start", language: "javascript" });
  const code = await new Promise((done) => child.on("exit", (code, signal) => done(signal ? -1 : code)));
  const within = (work) => Promise.race([work, new Promise((done) => setTimeout(done, 500))]);
  await within(Promise.all(pumps.map(({ ended }) => ended)));
  stop();
  await within(Promise.all(pumps.map(({ ended }) => ended)));
  for (const { t, kept } of pumps) if (kept.tail) send({ t: "tail", of: t, text: kept.tail, cut: kept.cut });
  await fs.rm(folder, { recursive: true, force: true });
  process.stdout.write(p.mark + JSON.stringify({ t: "end", code }) + "\n", () => process.exit(0));
})();
`;

const TOOLS: Readonly<Record<string, readonly string[]>> = {
  web_search: ["query", "limit"],
  web_extract: ["urls", "char_limit"],
  read_file: ["path", "offset", "limit"],
  write_file: ["path", "content"],
  search_files: ["pattern", "target", "path", "file_glob", "limit", "offset", "output_mode", "context"],
  patch: ["path", "old_string", "new_string", "replace_all", "mode", "patch"],
  terminal: ["command", "timeout", "workdir"],
};

const CLIENT = String.raw`// Tools of the agent. Each takes its arguments in order, or one object, and resolves to what the tool answered.
import net from "node:net";

const { HERMES_RPC_SOCKET } = globalThis["process"].env;
const waiting = new Map();
let sent = 0;
let socket = null;
const open = () => {
  if (socket) return socket;
  socket = net.connect(HERMES_RPC_SOCKET);
  let text = "";
  socket.setEncoding("utf8").on("data", (more) => {
    text += more;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n")) {
      const { n, result } = JSON.parse(text.slice(0, at));
      text = text.slice(at + 1);
      waiting.get(n)(result);
      waiting.delete(n);
      if (waiting.size === 0) socket.unref();
    }
  });
  return socket;
};
const call = (tool, names) => (...given) => {
  const [first] = given;
  const asObject = given.length === 1 && typeof first === "object" && first !== null && !Array.isArray(first);
  const args = asObject ? first : Object.fromEntries(given.map((value, at) => [names[at], value]));
  return new Promise((done) => {
    const n = ++sent;
    waiting.set(n, (result) => done(json_parse(result, true)));
    const line = open();
    line.ref();
    line.write(JSON.stringify({ tool, args, n }) + "\n");
  });
};
export function json_parse(text, keep = false) {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (keep) return text;
    throw error;
  }
}
export const shell_quote = (text) => "'" + String(text).replaceAll("'", "'\\''") + "'";
export async function retry(work, max_attempts = 3, delay = 2) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= max_attempts) throw error;
      await new Promise((done) => setTimeout(done, delay * 1000 * 2 ** (attempt - 1)));
    }
  }
}
`;

export function javascriptTools(names: readonly string[]): string {
  const stubs = names.map((name) => `export const ${name} = call("${name}", ${JSON.stringify(TOOLS[name])});`);
  return [CLIENT, ...stubs, ""].join("\n");
}
