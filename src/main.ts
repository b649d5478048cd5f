// argv -> one door, loaded lazily; nothing else.
import { versionLine } from "./home/paths.ts";

const argv = process.argv.slice(2);

if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) process.stdout.write(`${versionLine()}\n`);
else void run();

async function run(): Promise<void> {
  const { runCli } = await import("./doors/cli/program.ts");
  process.exitCode = await runCli({
    argv,
    env: process.env,
    openTerminal: async (request) =>
      request.plain
        ? (await import("./doors/terminal/plain-screen.ts")).runPlainScreen(request)
        : (await import("./doors/terminal/screen.ts")).runScreen(request),
  });
}
