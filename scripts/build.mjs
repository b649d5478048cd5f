// npm run build: the program as ES modules in dist/, split so that each door loads its own part only.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { projectNode, root, run, setup } from "./setup.mjs";

setup();
// Listing the tools runs the project's own TypeScript, which an older Node cannot read.
if (Number(process.versions.node.split(".")[0]) < 24)
  process.exit(await run(projectNode(), [fileURLToPath(import.meta.url)]));
const { build } = await import("esbuild");
const dist = join(root, "dist");
rmSync(dist, { recursive: true, force: true });

/** From source the tools folder is listed at run time; a bundle has no folder, so the same list is made here. */
const toolIndex = {
  name: "tool-index",
  setup(bundler) {
    const folder = join(root, "src", "tools");
    bundler.onLoad({ filter: /[\\/]tools[\\/]discover\.ts$/ }, async () => {
      const { toolFiles } = await import(pathToFileURL(join(folder, "discover.ts")).href);
      const files = await toolFiles(pathToFileURL(`${folder}/`));
      const imports = files.map((file) => `import "./${file}";`);
      const contents = `import { registry } from "./registry.ts";
${imports.join("\n")}
export async function loadTools(log) {
  registry.useLog(log);
}
`;
      return { contents, loader: "js", resolveDir: folder };
    });
  },
};

/** zod brings the words of forty languages along; its messages reach models, in English. */
const englishOnly = {
  name: "english-only",
  setup(bundler) {
    bundler.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
      loader: "js",
    }));
  },
};

const result = await build({
  absWorkingDir: root,
  entryPoints: ["src/main.ts"],
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  minify: true,
  // Errors are told apart by their names in logs.
  keepNames: true,
  legalComments: "none",
  external: ["@lydell/node-pty", "@vscode/ripgrep"],
  // Some packages are CommonJS inside and ask for `require`.
  banner: {
    js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
  },
  plugins: [toolIndex, englishOnly],
  metafile: true,
  logLevel: "warning",
});

const outputs = Object.entries(result.metafile.outputs);
const total = outputs.reduce((sum, [, output]) => sum + output.bytes, 0);
process.stdout.write(`built ${outputs.length} files, ${(total / 1024).toFixed(0)} KB, into dist/\n`);
