// Commands that would hold a foreground call for ever, or detach from it: they belong in the background.
import { analyseCommand } from "./analysis/analyse.ts";
import { argTexts, type Invocation } from "./analysis/invocation.ts";

const DETACHERS = new Set(["nohup", "setsid", "disown"]);
const HELP = new Set(["--help", "-h", "--version", "-v"]);
const SCRIPT_RUNNERS = new Set(["npm", "pnpm", "yarn", "bun"]);
const PACKAGE_RUNNERS = new Set(["npx", "bunx", "pnpx"]);
const SERVER_SCRIPTS = new Set(["dev", "start", "serve", "watch"]);
const ALWAYS_SERVERS = new Set(["nodemon", "uvicorn", "gunicorn"]);

/** Why this command should not run in the foreground, and what to do instead; null when it may. */
export function foregroundGuidance(command: string): string | null {
  for (const invocation of analyseCommand(command.replace(/`[^`]*`/g, " ")).invocations) {
    if (invocation.remote || asksForHelp(invocation)) continue;
    const detacher = findDetacher(invocation);
    if (detacher) {
      return `\`${detacher}\` detaches the command from this call, so its output and its end are lost. ${USE_BACKGROUND}`;
    }
    if (invocation.background) {
      return `A lone \`&\` starts a background process that this call cannot follow. ${USE_BACKGROUND}`;
    }
    const server = findServer(invocation);
    if (server)
      return `\`${server}\` keeps running until it is stopped, so a foreground call would only time out. ${USE_BACKGROUND}`;
  }
  return null;
}

const USE_BACKGROUND =
  "Run it again with background=true and without `&`, `nohup`, `setsid` or `disown`; then check on it with the process tool.";

const asksForHelp = (invocation: Invocation) => invocation.args.some(({ text }) => HELP.has(text));

function findDetacher(invocation: Invocation): string | null {
  if (DETACHERS.has(invocation.program)) return invocation.program;
  return invocation.via.find(({ program }) => DETACHERS.has(program))?.program ?? null;
}

function findServer(invocation: Invocation): string | null {
  if (invocation.via.some(({ program }) => program === "timeout")) return null;
  const words = [invocation.program, ...argTexts(invocation)];
  return serverIn(words);
}

function serverIn(words: readonly string[]): string | null {
  const [program = "", ...args] = words;
  const operands = dropOptions(args);
  if (PACKAGE_RUNNERS.has(program)) return serverIn(operands);
  if (SCRIPT_RUNNERS.has(program)) return scriptServer(program, operands);
  if (ALWAYS_SERVERS.has(program)) return program;
  if (program === "vite" && !operands.some((word) => word === "build" || word === "optimize")) return "vite";
  if (program === "next" && operands[0] === "dev") return "next dev";
  if (program === "docker-compose") return composeUp(args);
  if (program === "docker" && operands[0] === "compose") return composeUp(args);
  if (/^python[0-9.]*$/.test(program)) return moduleServer(args);
  return null;
}

/** Options of package managers that own the next word, so that `npm --prefix web run dev` is seen. */
const VALUED = new Set(["--prefix", "-C", "--filter", "-F", "--workspace", "-w", "--cwd", "--dir"]);

function dropOptions(args: readonly string[]): readonly string[] {
  return args.filter((arg, index) => !arg.startsWith("-") && !VALUED.has(args[index - 1] ?? ""));
}

function scriptServer(program: string, operands: readonly string[]): string | null {
  const rest = operands[0] === "workspace" ? operands.slice(2) : operands;
  if (rest[0] === "exec" || rest[0] === "dlx" || rest[0] === "x") return serverIn(rest.slice(1));
  const named = rest[0] === "run" || rest[0] === "run-script";
  const script = (named ? rest[1] : rest[0]) ?? "";
  if (SERVER_SCRIPTS.has(script.split(":")[0] ?? "")) return `${program} ${named ? "run " : ""}${script}`;
  return named ? null : serverIn(program === "yarn" || program === "pnpm" ? rest : []);
}

function composeUp(args: readonly string[]): string | null {
  if (!args.includes("up") || args.some((arg) => arg === "-d" || arg === "--detach" || arg === "--no-start"))
    return null;
  return "docker compose up";
}

function moduleServer(args: readonly string[]): string | null {
  const at = args.indexOf("-m");
  const name = args[at + 1] ?? "";
  if (at < 0) return null;
  if (name === "http.server") return "python -m http.server";
  return ALWAYS_SERVERS.has(name) ? name : null;
}
