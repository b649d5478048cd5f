#!/usr/bin/env node
// The launcher. Plain JavaScript that any Node from 18 on can read: it finds a Node that is new enough, then the program.
import { existsSync } from "node:fs";
import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const REQUIRED_MAJOR = 24;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bundledNode = join(root, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node");

if (Number(process.versions.node.split(".")[0]) >= REQUIRED_MAJOR) {
  await runProgram();
} else if (existsSync(bundledNode)) {
  await runWith(bundledNode);
} else {
  process.stderr.write(
    `hermes needs Node ${REQUIRED_MAJOR} or newer; this is Node ${process.versions.node} (${process.execPath}).\n` +
      `Get it with "npm install -g node@${REQUIRED_MAJOR + 2}" or from https://nodejs.org. In a clone of the repository, "npm install" brings one along.\n`,
  );
  process.exitCode = 1;
}

async function runProgram() {
  module.enableCompileCache?.();
  const built = join(root, "dist", "main.js");
  const fromSource = process.env.HERMES_FROM_SOURCE === "1" || !existsSync(built);
  await import(pathToFileURL(fromSource ? join(root, "src", "main.ts") : built).href);
}

async function runWith(node) {
  const { spawn } = await import("node:child_process"); // 5 ms that only this way needs
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    } else process.exitCode = code ?? 1;
  });
}
