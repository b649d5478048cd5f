// npm run build: the program in dist/, split so that each door loads its own part only. The parts are CommonJS, which src/home/script-loader.ts
// runs; dist/main.js is where it begins. `build.mjs FOLDER` builds elsewhere, with `--to-run` nothing but what running needs.
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { enableCompileCache } from "node:module";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { hotAndCold, LAZY } from "./hot-and-cold.mjs";
import { isPlainCell } from "./plain-cells.mjs";
import { projectNode, root, run, setup } from "./setup.mjs";

const toRun = process.argv.includes("--to-run");
setup(toRun ? "run" : "develop");
// Listing the tools runs the project's own TypeScript, which an older Node cannot read.
if (Number(process.versions.node.split(".")[0]) < 24)
  process.exit(await run(projectNode(), [fileURLToPath(import.meta.url), ...process.argv.slice(2)]));
const { build, transform } = await import("esbuild");
enableCompileCache(join(root, ".cache", "compiled")); // half of the time is spent on reading the tools
// Elsewhere than in dist/ only for the tests: a build beside the source must not change what `npm start` runs.
const dist = process.argv[2] ? resolve(process.argv[2]) : join(root, "dist");
rmSync(dist, { recursive: true, force: true });
const started = new Date();

/** JSON knows no infinity; a tool that limits its own results says just that. */
const literal = (value) =>
  JSON.stringify(value, (_, inner) => (inner === Number.POSITIVE_INFINITY ? "\0" : inner)).replaceAll(
    '"\\u0000"',
    "Infinity",
  );

/**
 * From source the tools folder is listed at run time; a bundle has no folder, so the same list is made here, as outlines with their JSON
 * Schemas. The tool files and the schema library wait in a file of their own until the first call, which asks for them on the spot.
 */
const TOOL_CODE = "tool-code";
const toolIndex = {
  name: "tool-index",
  setup(bundler) {
    const folder = join(root, "src", "tools");
    bundler.onLoad({ filter: /[\\/]tools[\\/]toolset[\\/]discover\.ts$/ }, async () => {
      const { toolFiles } = await import(pathToFileURL(join(folder, "toolset", "discover.ts")).href);
      const { registry, outlineOf } = await import(pathToFileURL(join(folder, "toolset", "registry.ts")).href);
      const outlines = [];
      for (const file of await toolFiles(pathToFileURL(`${folder}/`))) {
        const before = new Set(registry.names());
        await import(pathToFileURL(join(folder, file)).href);
        const tools = registry.names().filter((name) => !before.has(name));
        outlines.push(
          `registry.outline(${literal(tools.map((name) => outlineOf(registry.get(name))))}, () => code().load["${file}"]());`,
        );
      }
      const contents = `import { registry } from "./registry.ts";
const code = () => require("./${TOOL_CODE}.js");
${outlines.join("\n")}
export async function loadTools(log) {
  registry.useLog(log);
}
`;
      return { contents, loader: "js", resolveDir: join(folder, "toolset") };
    });
    bundler.onResolve({ filter: new RegExp(`^[.]/${TOOL_CODE}[.]js$`) }, ({ path }) => ({ path, external: true }));
    bundler.onResolve({ filter: new RegExp(`^${TOOL_CODE}$`) }, ({ path }) => ({ path, namespace: TOOL_CODE }));
    bundler.onLoad({ filter: /.*/, namespace: TOOL_CODE }, async () => {
      const { toolFiles } = await import(pathToFileURL(join(folder, "toolset", "discover.ts")).href);
      const files = await toolFiles(pathToFileURL(`${folder}/`));
      return { contents: loaders(files), loader: "js", resolveDir: folder };
    });
  },
};

/** The same for the folders of platforms: their entries are part of the gateway, what they open waits for its first use. */
const platformIndex = {
  name: "platform-index",
  setup(bundler) {
    const folder = join(root, "src", "doors", "gateway");
    bundler.onLoad({ filter: /[\\/]gateway[\\/]registry\.ts$/ }, () => {
      const names = readdirSync(join(folder, "platforms"))
        .filter((name) => existsSync(join(folder, "platforms", name, "entry.ts")))
        .sort();
      const imports = names.map((name, at) => `import { entry as entry${at} } from "./platforms/${name}/entry.ts";`);
      const entries = names.map((_, at) => `entry${at}`).join(", ");
      const contents = `${imports.join("\n")}\nexport async function builtinPlatforms() { return [${entries}]; }\n`;
      return { contents, loader: "ts", resolveDir: folder };
    });
  },
};

/** What adapters import is installed when the platform is set up. */
const platformPackages = readdirSync(join(root, "src", "doors", "gateway", "platforms"), { recursive: true })
  .filter((file) => file.endsWith("entry.ts"))
  .flatMap((file) => {
    const text = readFileSync(join(root, "src", "doors", "gateway", "platforms", file), "utf8");
    const listed = /packages: \{([^}]*)\}/.exec(text)?.[1] ?? "";
    return [...listed.matchAll(/"?([@\w/.-]+)"?: "/g)].map(([, name]) => name);
  });

/** A module that runs each of these when it is asked for it. */
function loaders(files) {
  return `export const load = {${files.map((path) => `${JSON.stringify(path)}: () => require("./${path}")`).join(",\n")}};`;
}

/**
 * Doors and packages are files of their own, loaded when they are opened. Inside a door a lazy import stays lazy but not a file: sixty
 * small files cost more time than everything in them. What the way to the first request needs becomes a call that runs the module on
 * first use; all the rest waits together in one file, and that of the gateway in another.
 */
const DOORS = /doors\/(cli\/program|terminal\/screen)\.ts"|(gateway|acp)\/cli\.ts"/;
const source = join(root, "src");
const { isHot, cold } = hotAndCold(source);
/** A gateway keeps in memory, for as long as it runs, the text and the functions of each file that it has opened: it opens its own. */
const waitsIn = (file) => (/^(?:doors\/gateway|sessions\/work)\//.test(file) ? "gateway-code" : "cold-code");
const lazyInside = {
  name: "lazy-inside",
  setup(bundler) {
    bundler.onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replace(LAZY, (call, file) => {
        if (DOORS.test(`${file}"`)) return call;
        const target = resolve(dirname(path), file);
        if (isHot(target)) return `Promise.resolve().then(() => require("${file}"))`;
        const name = relative(source, target).split(sep).join("/");
        return `import("${waitsIn(name)}").then(({ load }) => load[${JSON.stringify(name)}]())`;
      });
      return { contents: namesOfPackages(builtinsOnDemand(besideTheRest(contents))), loader: "ts" };
    });
    bundler.onResolve({ filter: /^(?:cold|gateway)-code$/ }, ({ path }) => ({ path, namespace: "cold" }));
    bundler.onLoad({ filter: /.*/, namespace: "cold" }, ({ path }) => ({
      contents: loaders(cold.filter((file) => waitsIn(file) === path)),
      loader: "js",
      resolveDir: source,
    }));
  },
};

/**
 * Node's own modules are fetched when the module that wants one runs. As `import` statements they would move to the top of the bundle: all
 * loaded at once, each with a view that calls every lazy getter in it, which for node:http alone means a whole HTTP client.
 */
function builtinsOnDemand(source) {
  return source.replace(/^import (?:(\w+)|\{([^}]*)\}) from ("node:[^"]+");$/gm, (_, whole, names = "", builtin) => {
    const fetched = `process.getBuiltinModule(${builtin})`;
    if (whole) return `const ${whole} = ${fetched};`;
    const values = names
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "" && !name.startsWith("type "));
    if (builtin === STARTS_PROGRAMS) return values.map((name) => `const ${name} = ${whenCalled(name)};`).join(" ");
    return values.length === 0 ? "" : `const { ${values.join(", ").replaceAll(" as ", ": ")} } = ${fetched};`;
  });
}

// Most runs start no other program, and what Node needs for it takes 2 ms and 5 MB: fetched by the first call.
const STARTS_PROGRAMS = '"node:child_process"';
const whenCalled = (name) => `(...args) => process.getBuiltinModule(${STARTS_PROGRAMS}).${name}(...args)`;

/** It can run sub-commands that are programs of their own; none of ours is. */
const commanderAlone = {
  name: "commander-alone",
  setup(bundler) {
    bundler.onLoad({ filter: /[\\/]commander[\\/]lib[\\/]command\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replace(
        "import childProcess from 'node:child_process';",
        `const childProcess = { spawn: ${whenCalled("spawn")} };`,
      );
      if (contents === text) throw new Error(`${path} imports node:child_process in another way now`);
      return { contents, loader: "js" };
    });
  },
};

/**
 * The package that draws the screen makes its expressions for all of Unicode when it is loaded, a third of the way to a usable input line. In the
 * build each is made when it is first asked, and what every screen consists of (letters, lines, arrows) is measured without them.
 */
const unicodeOnDemand = {
  name: "unicode-on-demand",
  setup(bundler) {
    bundler.onLoad(
      { filter: /[\\/]pi-tui[\\/]dist[\\/](?:utils|autocomplete|components[\\/]editor)\.js$/ },
      async ({ path }) => {
        const text = await readFile(path, "utf8");
        const contents = text
          .replace(/^((?:export )?const \w+ = )\/(.*\\p\{.*)\/([a-z]+);$/gm, '$1__expression(String.raw`$2`, "$3");')
          .replace(/^((?:export )?const \w+ = )new RegExp\((`.*`), "([a-z]+)"\);$/gm, '$1__expression($2, "$3");')
          .replace(/^(const \w+ = )new RegExp\((`.*`), "[a-z]+"\)\.source;$/gm, "$1$2;")
          .replace(/^(const \w+ = )new Intl\.Segmenter\(undefined, (\{.*\})\);$/gm, "$1__segmenter($2);")
          .replace("    // Calculate width\n", "    if (__arePlain(clean)) return clean.length;\n$&")
          .replace(
            "    // Some marks occupy cells even",
            "    if (segment.length === 1 && __isPlain(segment.charCodeAt(0))) return 1;\n$&",
          );
        const expected = path.endsWith("utils.js")
          ? ["__expression(", "__segmenter(", "__isPlain(", "__arePlain("]
          : ["__expression("];
        const missing = expected.filter((part) => !contents.includes(part));
        if (missing.length > 0) throw new Error(`${path} is written in another way now: ${missing.join(" ")}`);
        return { contents: `${UNICODE_ON_DEMAND}\n${contents}`, loader: "js" };
      },
    );
  },
};

const UNICODE_ON_DEMAND = `
class __Expression {
  constructor(source, flags) { this.source = source; this.flags = flags; }
  get made() { return (this.kept ??= new RegExp(this.source, this.flags)); }
  test(text) { return this.made.test(text); }
  exec(text) { return this.made.exec(text); }
  [Symbol.match](text) { return this.made[Symbol.match](text); }
  [Symbol.replace](text, by) { return this.made[Symbol.replace](text, by); }
  [Symbol.search](text) { return this.made[Symbol.search](text); }
  [Symbol.split](text, limit) { return this.made[Symbol.split](text, limit); }
}
const __expression = (source, flags) => new __Expression(source, flags);
const __segmenter = (options) => { let made; return { segment: (text) => (made ??= new Intl.Segmenter(undefined, options)).segment(text) }; };
const __isPlain = ${isPlainCell};
const __arePlain = (text) => { for (let at = 0; at < text.length; at++) if (!__isPlain(text.charCodeAt(at))) return false; return true; };
`;

/** A CommonJS package that is a file of its own exports nothing but `default` there; Node gives it its names as well. */
function namesOfPackages(source) {
  const named =
    '(m) => Object.keys(m).length === 1 && typeof m.default === "object" ? { ...m.default, default: m.default } : m';
  return source.replace(/(?<!typeof\s+)\bimport\(\s*"(?!\.|node:)[^"]+",?\s*\)/g, (call) => `${call}.then(${named})`);
}

/** Threads run a file of their own, which lies beside the program's. */
function besideTheRest(source) {
  return source.replace(
    /new URL\(\s*"\.\/([\w-]+-worker)\.ts",\s*import\.meta\.url,?\s*\)/g,
    'new URL("./$1.js", import.meta.url)',
  );
}

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

/** The licences of the packages that are inside, which ask to be named with every copy. scripts/sbom.mjs reads the headings. */
function notices(inputs) {
  const folders = new Set(inputs.map((path) => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]));
  folders.delete(undefined);
  const texts = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    const file = readdirSync(join(root, folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? readFileSync(join(root, folder, file), "utf8").trim() : `Licence: ${license}`;
    return `===== ${name}@${version} =====\n\n${text}\n`;
  });
  return `Hermes contains the following packages.\n\n${texts.sort().join("\n")}`;
}

const result = await build({
  absWorkingDir: root,
  entryPoints: { main: "src/main.ts", library: "src/library.ts", [TOOL_CODE]: TOOL_CODE },
  outdir: dist,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  minify: true,
  legalComments: "none",
  external: ["@lydell/node-pty", "@vscode/ripgrep", "playwright-core", ...platformPackages],
  plugins: [toolIndex, platformIndex, lazyInside, englishOnly, commanderAlone, unicodeOnDemand],
  metafile: true,
  write: false,
  logLevel: "warning",
});

/**
 * What is loaded is read byte by byte, which is quicker and takes half the memory. The bundler escapes letters in strings; those left stand in
 * regular expressions, and in the `String.raw` they are made of, where an escape means the same.
 */
const ascii = (code) => code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * The bundler splits ES modules only; each part is then made a CommonJS script, which can be run with code kept from an earlier run. A part
 * that is imported later is one of the same scripts, while packages and plugins stay modules that Node loads.
 */
async function asScript(text) {
  const { code } = await transform(
    text
      .replace(/\bimport\(("[^"]+")\)/g, (call, name) =>
        parts.has(name) ? `Promise.resolve().then(()=>require(${name}))` : call,
      )
      .replace(/"\.\/[\w.-]+\.js"/g, (name) => (parts.has(name) ? name.replace(/js"$/, 'cjs"') : name)),
    // What it is made of is minified already.
    { format: "cjs", target: "node24", minifyWhitespace: true, define: { "import.meta.url": "__fileUrl" } },
  );
  const url = 'const __fileUrl=process.getBuiltinModule("node:url").pathToFileURL(__filename).href;';
  // As the loader runs it: put around the text when it is loaded, the function would make a second copy of it in memory.
  const head = `(function(exports,require,module,__filename,__dirname){"use strict";${code.includes("__fileUrl") ? url : ""}`;
  return ascii(`${head}${code}\n})`);
}

const parts = new Set(result.outputFiles.map(({ path }) => `"./${relative(dist, path)}"`));
mkdirSync(dist, { recursive: true });
const scripts = await Promise.all(
  result.outputFiles.map(async ({ path, text }) => [path.replace(/\.js$/, ".cjs"), await asScript(text)]),
);
for (const [path, text] of scripts) writeFileSync(path, text);
const identity = createHash("sha256").update(
  JSON.stringify(scripts.map(([path, text]) => [relative(dist, path), text])),
);
const entry = await build({
  absWorkingDir: root,
  entryPoints: { main: "src/built.ts", library: "src/built-library.ts" },
  outdir: dist,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node24",
  minify: true,
  define: { BUILD: JSON.stringify(identity.digest("hex").slice(0, 12)) },
  plugins: [lazyInside],
  metafile: true,
  logLevel: "warning",
});

const threads = await build({
  absWorkingDir: root,
  entryPoints: readdirSync(source, { recursive: true })
    .filter((file) => file.endsWith("-worker.ts"))
    .map((file) => join(source, file)),
  outdir: dist,
  entryNames: "[name]",
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node24",
  minify: true,
  legalComments: "none",
  banner: {
    // Some packages are CommonJS inside and ask for `require`.
    js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
  },
  metafile: true,
  logLevel: "warning",
});

if (!toRun) await addPapers();

/** What comes with the package beside the program: the manual page, and the licences. */
async function addPapers() {
  const { commandTree } = await import(pathToFileURL(join(source, "doors", "cli", "program.ts")).href);
  const { commandFacts } = await import(pathToFileURL(join(source, "doors", "cli", "command-facts.ts")).href);
  const { VERSION } = await import(pathToFileURL(join(source, "home", "paths.ts")).href);
  const { manPage } = await import("./command-pages.mjs");
  // Declarations alone: what it says is what the package's types are.
  cpSync(join(source, "doors", "library", "contract.ts"), join(dist, "library.d.ts"));
  writeFileSync(join(dist, "hermes.1"), manPage(commandFacts(await commandTree({})), VERSION));

  writeFileSync(
    join(dist, "THIRD-PARTY-NOTICES.txt"),
    notices([result, entry, threads].flatMap(({ metafile }) => Object.keys(metafile.inputs))),
  );
}

// The launcher compares this time with the source's: a file edited while the build ran is newer than the build.
utimesSync(join(dist, "main.js"), started, started);

const files = readdirSync(dist).filter((name) => /js$/.test(name));
const total = files.reduce((sum, name) => sum + statSync(join(dist, name)).size, 0);
if (!toRun)
  process.stdout.write(
    `built ${files.length} files, ${(total / 1024).toFixed(0)} KB, into ${relative(process.cwd(), dist)}/\n`,
  );
