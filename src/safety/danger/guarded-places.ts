// Changes to what runs at a later start, and reading of keys: by whatever program of the line.
import { argTexts, hasLetter, hasLong, type Invocation } from "../analysis/invocation.ts";
import { printedBy } from "../analysis/shells.ts";
import { optionsOf, pathOf, type RuleGroup, type Scene } from "../scene.ts";
import { every, type Table, tableRule } from "./destroyers.ts";
import { filesWrittenBy } from "./files.ts";
import { isLinkedAway, runsLater } from "./places.ts";

function changesLaterStart(invocation: Invocation, scene: Scene): boolean {
  if (filesWrittenBy(invocation).some((file) => runsLater(pathOf(file, invocation, scene)))) return true;
  if (unpacksOver(invocation, scene)) return true;
  const links = invocation.program === "ln" || invocation.program === "link";
  return links && optionsOf(invocation).operands.some((file) => isLinkedAway(pathOf(file, invocation, scene)));
}

const HOME_ITSELF = /^(?:~|\/root|\/home\/[^/]+|\/users\/[^/]+|\/)$/;
const SYSTEM_ITSELF = /^\/(?:(?:usr|usr\/local|etc|var|bin|sbin|lib|lib64|boot|usr\/(?:lib|bin|sbin|share))?)$/;
export const UNPACKERS = /^(?:g?tar|bsdtar|unzip|7za?|cpio|pax|dpkg-deb|dpkg|ar|unar)$/;

const UNPACK_TO: Readonly<Record<string, string>> = {
  "7z": "o",
  "7za": "o",
  unzip: "dx",
  cpio: "DFHE",
  unar: "o",
  pax: "fs",
};

/** What is in an archive or a folder is not on the line, and in a home or a system some of it may run by itself. */
function unpacksOver(invocation: Invocation, scene: Scene): boolean {
  const { program } = invocation;
  const isOver = (target: string) => {
    const path = pathOf(target, invocation, scene);
    return HOME_ITSELF.test(path) || SYSTEM_ITSELF.test(path);
  };
  if (UNPACKERS.test(program)) {
    if (!isUnpacking(invocation)) return false;
    const isTar = /^(?:g?tar|bsdtar)$/.test(program);
    const options = optionsOf(invocation, { short: UNPACK_TO[program] ?? "Cf", long: ["directory"] });
    if (isTar && (hasLetter(options, "P") || hasLong(options, "absolute-names", 4))) return true;
    const named = options.values.filter(({ name }) => /^(?:[CdDo]|directory)$/.test(name)).map(({ value }) => value);
    const given = program.startsWith("dpkg") ? options.operands.slice(1, 2) : named;
    // Where the line went before; a home is where one unpacks things by hand.
    return given.length > 0
      ? given.some(isOver)
      : SYSTEM_ITSELF.test(pathOf(".", invocation, scene).replace(/\/?\.$/, "/"));
  }
  if (!/^(?:cp|rsync|stow)$/.test(program)) return false;
  const options = optionsOf(invocation, { short: program === "stow" ? "td" : "tS", long: ["target"] });
  if (program === "stow") return options.values.some(({ name, value }) => /^t/.test(name) && isOver(value));
  const sources = options.operands.slice(0, -1);
  if (program === "rsync" && !sources.some((source) => source.endsWith("/"))) return false;
  if (program === "cp" && !sources.some((source) => /\/[.*]$/.test(source)) && !hasLetter(options, "T")) return false;
  return options.operands.slice(-1).some(isOver);
}

export function isUnpacking(invocation: Invocation): boolean {
  const { program } = invocation;
  const args = argTexts(invocation);
  const options = optionsOf(invocation, { short: UNPACK_TO[program] ?? "Cf" });
  if (/tar$/.test(program))
    return (
      /^-?[a-zA-Z]*x/.test(args[0] ?? "") ||
      hasLetter(options, "x") ||
      hasLong(options, "extract", 2) ||
      hasLong(options, "get")
    );
  if (program === "cpio" || program === "pax")
    return /(?:^| )-[a-z]*[ir]/.test(args.join(" ")) && !/(?:^| )-[a-z]*t/.test(args.join(" "));
  if (program.startsWith("dpkg")) return args.some((arg) => /^(?:-[xX]|--v?extract)$/.test(arg));
  if (program.startsWith("7z") || program === "ar") return /^[xe]/.test(args[0] ?? "");
  return !hasLetter(options, "l", "t", "p", "Z");
}

// Settings of package managers that say where later code comes from, or what runs it.

const TRUSTED_SOURCE =
  "(?:https:\\/\\/)?(?:registry\\.npmjs\\.org|registry\\.yarnpkg\\.com|registry\\.npmmirror\\.com|npm\\.pkg\\.github\\.com|(?:test\\.)?pypi\\.org|download\\.pytorch\\.org|pypi\\.nvidia\\.com|rubygems\\.org|proxy\\.golang\\.org|repo\\.packagist\\.org|conda\\.anaconda\\.org|localhost|127\\.0\\.0\\.1)(?=[/:,\\s]|$)";
const elsewhere = (before: string) => new RegExp(`${before}["']?(?!http://localhost|${TRUSTED_SOURCE})\\S`, "i");

const NODE_SETTINGS = new RegExp(
  `^(?:(?:config|c) (?:--?\\S+ )?)?set (?:--?\\S+ )?(?:(?:script-shell|node-options|git|globalconfig|userconfig|init-module|shell|onload-script|yarnPath|plugins)[= ]|(?:ignore-scripts|strict-ssl|enableScripts)[= ]${"(?:false|true)"}(?<!(?:ignore-scripts|strict-ssl|enableScripts)[= ]true)|(?:@[\\w-]+:)?(?:registry|npmRegistryServer|npmScopes\\S*)[= ]["']?(?!http://localhost|${TRUSTED_SOURCE})\\S)`,
  "i",
);
const PIP_SETTINGS = elsewhere(
  "\\bconfig (?:--?\\S+ )?set (?:--?\\S+ )?\\S*(?:index-url|index|find-links|trusted-host|proxy|cert)[= ]",
);

const SOURCES: Table = {
  ...every("npm pnpm yarn bun", NODE_SETTINGS),
  ...every("pip pip3 pipx uv python python3", PIP_SETTINGS),
  bundle: elsewhere("^config (?:set )?(?:--?\\S+ )?(?:mirror\\S*|BUNDLE_MIRROR\\S*) "),
  gem: elsewhere("^sources? .*(?:--add|-a)[= ]"),
  go: /^env -w\b.*\b(?:GOPROXY=(?!https:\/\/proxy\.golang\.org|direct)|GONOSUM\w*=|GONOSUMDB=|GOSUMDB=off|GOINSECURE=|GOFLAGS=\S*-(?:toolexec|exec|overlay|insecure)|CC=|CXX=)/,
  ...every(
    "conda mamba micromamba",
    elsewhere("^config .*--(?:add|append|prepend|set)(?: channels| channel_alias| ssl_verify)? (?=https?:|file:|\\/)"),
  ),
  composer: elsewhere("^(?:global )?config (?:-\\S+ )*(?:repositories|repo)\\S* (?:\\w+ )?"),
  poetry: elsewhere("^(?:config (?:-\\S+ )*repositories\\.\\S+|source add \\S+) "),
  cargo: /--config[= ]\S{0,80}(?:rustc-wrapper|linker|runner|registry|replace-with|build\.rustc)/,
  gh: /^(?:alias set\b.*["' ]!|alias set\b.*--shell|config set (?:pager|editor|browser|http_unix_socket) (?!(?:vim?|nvim|nano|code|cat|less|delta|bat|firefox|emacs)\b))/,
  rustup: /^(?:toolchain link|override set \S*\/)/,
  flatpak: elsewhere("^remote-add .*(?=https?:)"),
  brew: /^tap \S+ https?:/,
  helm: /^repo add \S+ http:/,
};

/** The same for a single call. */
const ONE_SOURCE: Table = {
  ...every(
    "pip pip3 uv python python3",
    elsewhere(
      "(?:^|\\s)(?:-i|--index-url|--extra-index-url|--find-links|-f|--trusted-host|--index)[= ](?=\\S*[./])(?!\\.{0,2}\\/)",
    ),
  ),
  ...every("npm pnpm yarn bun npx", elsewhere("(?:^|\\s)--registry[= ]")),
  gem: elsewhere("^install .*(?:--source|-s)[= ]"),
};

/** Code of an address that is named on the line; the large public hosts of code count as registries do. */
const CODE_HOSTS =
  "(?:github\\.com|gitlab\\.com|bitbucket\\.org|codeberg\\.org|codeload\\.github\\.com|objects\\.githubusercontent\\.com|localhost|127\\.0\\.0\\.1)";
const ADDRESS = `(?:git\\+)?(?:https?|ssh|git)://(?:[^\\s/@]{1,64}@)?(?!${CODE_HOSTS}[/:]|${TRUSTED_SOURCE})\\S`;
const NAMED_CODE: Table = {
  ...every(
    "pip pip3 uv python python3",
    new RegExp(`(?:^|\\s)(?:install|add)\\s(?:\\S{1,80}\\s){0,6}["']?(?:[\\w.-]{1,64} ?@ ?)?${ADDRESS}`),
  ),
  ...every("pipx uvx uv", new RegExp(`(?:--spec|--from|^install|^run)[= ]["']?${ADDRESS}`)),
  git: /^(?:clone|init)\b.*--template[= ]/,
  cmake: /(?:^|\s)-P\s+(?:\/|~|\.\.)/,
  ...every(
    "npm pnpm yarn bun",
    new RegExp(
      `^(?:pkg set ["']?scripts\\.(?:(?:pre|post)?install|prepare)\\b|set-script (?:(?:pre|post)?install|prepare) )|^(?:i|install|add)\\s(?:\\S{1,80}\\s){0,6}["']?${ADDRESS}`,
    ),
  ),
  cargo: new RegExp(`^install\\s(?:\\S{1,80}\\s){0,6}--git[= ]["']?${ADDRESS}`),
  go: /^run (?!(?:github\.com|gitlab\.com|golang\.org|gopkg\.in|google\.golang\.org|mvdan\.cc|honnef\.co|k8s\.io|sigs\.k8s\.io|go\.uber\.org)\/)(?:[\w-]+\.)+[a-z]{2,}\/\S+@/,
};

/** Lines of a `.npmrc` of whatever project. */
const writesNpmSettings = (invocation: Invocation) =>
  filesWrittenBy(invocation).some((file) => /(?:^|\/)\.npmrc$/.test(file)) &&
  printedBy(invocation).some((text) =>
    /\b(?:script-shell|node-options|git|globalconfig|init-module)\s{0,9}=/.test(text),
  );

const later = tableRule("", SOURCES);
const once = tableRule("", ONE_SOURCE);
const named = tableRule("", NAMED_CODE);

export const laterStarts: RuleGroup = {
  reason: "changes something that runs by itself at a later start",
  rules: [
    {
      key: "change a file that runs at a later start",
      matches: (scene) => scene.invocations.some((invocation) => changesLaterStart(invocation, scene)),
    },
    {
      key: "setting that decides which code is installed or run",
      matches: (scene) =>
        later.matches(scene) ||
        once.matches(scene) ||
        named.matches(scene) ||
        scene.invocations.some(writesNpmSettings),
    },
  ],
};
