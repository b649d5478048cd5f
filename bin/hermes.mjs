#!/usr/bin/env node
// The launcher. Plain JavaScript that any Node from 18 on can read: it finds a Node that is new enough, then the program.
import module from "node:module";

// Not by `import`: that makes a view of the whole module, and the one of node:fs loads all of Node's streams.
const require = module.createRequire(import.meta.url);
const { existsSync } = require("node:fs");
const { dirname, join } = require("node:path");
const { fileURLToPath, pathToFileURL } = require("node:url");

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
      `Get it with "npm install -g node@${REQUIRED_MAJOR + 2}" or from https://nodejs.org. In a clone of the repository, "npm start" brings one along.\n`,
  );
  process.exitCode = 1;
}

async function runProgram() {
  // Node 24 says on every start that its SQLite is experimental; it is new to nobody here, and users can do nothing about it.
  const { emitWarning } = process;
  process.emitWarning = (warning, ...about) => {
    if (about[0] !== "ExperimentalWarning") emitWarning.call(process, warning, ...about);
  };
  const source = join(root, "src", "main.ts");
  // An installed package has no source.
  const build = existsSync(source) ? require("./current-build.cjs").currentBuild(root) : join(root, "dist", "main.js");
  if (build !== null) return void (await import(pathToFileURL(build).href));
  module.enableCompileCache?.();
  await import(pathToFileURL(source).href);
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
