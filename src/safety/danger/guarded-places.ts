// Changes to what runs at a later start, and reading of keys: by whatever program of the line.
import { argTexts, hasLetter, hasLong, type Invocation, readOptions } from "../analysis/invocation.ts";
import { printedBy } from "../analysis/shells.ts";
import { oncePerScene, optionsOf, pathOf, type RuleGroup, type Scene } from "../scene.ts";
import { isInterpreter } from "./code.ts";
import { every, type Table, tableRule } from "./destroyers.ts";
import { reachesOut } from "./effects.ts";
import { filesWrittenBy } from "./files.ts";
import { isCredential, isHomeKey, isKeyFile, isLinkedAway, isOwnSecret, runsLater } from "./places.ts";
import { gitCommand } from "./system.ts";

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

/** They name a file without reading what is in it. */
const LOOKERS = new Set(
  "ls stat test [ [[ chmod chown touch mkdir echo printf cd pushd hermes du file basename dirname readlink realpath rm which type ssh-keygen ssh-add ssh-copy-id tree".split(
    " ",
  ),
);

/** What an argument may name: itself, and what stands behind `@`, `=` or between colons. */
const namesIn = (text: string) => (/[=@:,]/.test(text) ? [text, ...text.split(/[=@:,]/, 12)] : [text]);

/** Options whose file says who one is or whom to trust: it is used, not sent. */
const IDENTITY =
  /^--(?:cacert|capath|cert|key|netrc-file|ca-certificate|certificate|private-key|identity|kubeconfig|config|env-file)$/;
const SSH_IDENTITY = /^-[iFEo]$/;

/** Names of files in code stand between quotes. */
const quotedIn = (code: string) => [...code.matchAll(/["'`]([^"'`\s]{1,200})["'`]/g)].map(([, name = ""]) => name);
const inputs = ({ redirects }: Invocation) => redirects.flatMap(({ heredoc }) => heredoc?.body ?? []);

const filesRead = (invocation: Invocation, scene: Scene): readonly string[] => {
  if (LOOKERS.has(invocation.program)) return [];
  const args = argTexts(invocation);
  const isSsh = /^(?:ssh|scp|sftp|rsync|sshfs|mosh|ssh-copy-id)$/.test(invocation.program);
  const says = (option: string) => IDENTITY.test(option) || (isSsh && SSH_IDENTITY.test(option));
  const named = args
    .filter((arg, index) => !says(args[index - 1] ?? "") && !/^(?:https?|ftp):/.test(arg))
    .filter((arg) => !says(arg.split("=", 1)[0] ?? ""));
  const fed = invocation.redirects.filter(({ operator }) => operator === "<").map(({ target }) => target);
  const inCode = isInterpreter(invocation.program) ? [...args, ...inputs(invocation)].flatMap(quotedIn) : [];
  return [...named.flatMap(namesIn), ...inCode, ...fed]
    .filter((name) => name !== "")
    .map((name) => pathOf(name, invocation, scene));
};

const OWN_FOLDER = /^~\/\.hermes(?:\/(?:profiles(?:\/[^/]+)?|auth))?(?:\/\*)?$/;

/** Takes everything below a folder along. */
function takesFolders(invocation: Invocation, scene: Scene): boolean {
  const { program } = invocation;
  if (program === "find" || program === "fd")
    return (
      scene.named("xargs").length > 0 || argTexts(invocation).some((arg) => /^-(?:exec|execdir|ok|x|X)$/.test(arg))
    );
  if (/^(?:tar|zip|7z|rsync|rg|ag|ack|rclone|restic|borg)$/.test(program)) return true;
  if (!/^(?:cp|scp|grep|egrep|fgrep)$/.test(program)) return false;
  const options = optionsOf(invocation);
  return hasLetter(options, "r", "R", "a") || hasLong(options, "recursive", 3) || hasLong(options, "archive", 3);
}

function readsOwnSecrets(invocation: Invocation, scene: Scene): boolean {
  const files = filesRead(invocation, scene);
  return files.some(isOwnSecret) || (takesFolders(invocation, scene) && files.some((path) => OWN_FOLDER.test(path)));
}

/** Prints every variable, keys and all. */
const dumpsVariables = ({ program, args }: Invocation) =>
  ((program === "env" || program === "printenv" || program === "set") && args.length === 0) ||
  (/^(?:export|declare|typeset)$/.test(program) && args.length === 1 && args[0]?.text === "-p") ||
  (program === "gpg" && args.some(({ text }) => text.startsWith("--export-secret")));

/** What is sourced stays here as variables, which the next program is meant to have. */
const SOURCERS = /^(?:source|\.|export)$/;

const credentialReaders = oncePerScene((scene) =>
  scene.invocations.filter(
    (invocation) =>
      dumpsVariables(invocation) ||
      (!SOURCERS.test(invocation.program) && filesRead(invocation, scene).some(isCredential)),
  ),
);

// Programs that print what a store keeps.

const STORES: Table = {
  security: /^(?:find-\w+-password|dump-keychain|export)/,
  ...every("pass gopass", /^(?!(?:ls|list|find|git|init|help|version)\b)\S/),
  op: /^(?:read|item get|get item|document get|inject)/,
  bw: /^(?:get|list items|export)/,
  rbw: /^(?:get|code)/,
  lpass: /^(?:show|export)/,
  "secret-tool": /^(?:lookup|search)/,
  keyring: /^get/,
  "kwallet-query": /\S/,
  ...every("gpg gpg2", /(?:^|\s)(?:-d|--decrypt)(?=\s|$)/),
  ...every("age rage", /(?:^|\s)(?:-d|--decrypt)(?=\s|$)/),
  sops: /(?:^|\s)(?:-d|--decrypt|decrypt|exec-env)(?=\s|$)/,
  "ansible-vault": /^(?:view|decrypt)/,
  aws: /^(?:configure (?:get\b.*(?:key|secret|token)|export-credentials)|secretsmanager get-secret-value|ssm get-parameters?\b.*--with-decryption|sts (?:get-session-token|assume-role)|ecr get-login-password|kms decrypt)/,
  gh: /^auth (?:token|status\b.*(?:-t|--show-token))/,
  glab: /^(?:auth status\b.*(?:-t|--show-token)|config get token)/,
  gcloud: /(?:^|\s)(?:print-(?:access|identity)-token|secrets versions access|config config-helper)/,
  az: /^(?:account get-access-token|keyvault secret show)/,
  ...every(
    "kubectl oc",
    /^(?:get secrets?\b(?=.*(?:-o|--output)[= ]?(?!name|wide)\S)|config view\b.*--raw|create token)/,
  ),
  vault: /^(?:read|kv get|print token|token lookup)/,
  doppler: /^secrets(?! (?:set|delete|upload))/,
  chamber: /^(?:read|export|env)/,
  heroku: /^(?:config|auth:token)/,
  ...every("fly flyctl", /^(?:auth token|tokens create)/),
  ...every("vercel netlify", /^env (?:pull|get|list)/),
  git: /^credential (?:fill|get)|^credential-\w+ get/,
  npm: /^(?:token list|config get .*_auth)/,
  docker: /^(?:secret inspect|config inspect)/,
  infisical: /^(?:secrets|export)/,
  teller: /^(?:show|env|export)/,
};

/** A token that goes where it is for: the one network a store was made to speak to. */
const OWN_HOSTS: readonly (readonly [program: RegExp, host: RegExp])[] = [
  [/^gcloud$/, /^https:\/\/[\w.-]+\.(?:googleapis\.com|run\.app|pkg\.dev|gcr\.io)(?:[/:]|$)/],
  [/^gh$/, /^https:\/\/(?:api\.|uploads\.)?github\.com(?:[/:]|$)/],
  [/^az$/, /^https:\/\/[\w.-]+\.(?:azure\.com|microsoft\.com|windows\.net|azurecr\.io)(?:[/:]|$)/],
  [/^(?:kubectl|oc)$/, /^https:\/\/(?:kubernetes|\$[A-Z_]*(?:SERVER|API)[A-Z_]*)/],
];

const printsSecret = tableRule("", STORES);

function staysAtHome(scene: Scene): boolean {
  const addresses = scene.invocations.flatMap(argTexts).flatMap((arg) => /^https?:\/\/\S+$/.exec(arg)?.[0] ?? []);
  return OWN_HOSTS.some(
    ([program, host]) =>
      scene.invocations.some((one) => program.test(one.program)) &&
      addresses.length > 0 &&
      addresses.every((address) => host.test(address)),
  );
}

const pushes = (invocation: Invocation) => gitCommand(invocation)?.verb === "push";

function sendsCredentials(scene: Scene): boolean {
  const isOut = scene.invocations.some((invocation) => reachesOut(invocation));
  if (isOut && credentialReaders(scene).length > 0) return true;
  return (isOut || scene.invocations.some(pushes)) && printsSecret.matches(scene) && !staysAtHome(scene);
}

/** What is in a repository is in all its copies, and stays in its history. */
function commitsKeys(invocation: Invocation, scene: Scene): boolean {
  const command = gitCommand(invocation);
  if (!command || !/^(?:add|stage|update-index|commit|hash-object)$/.test(command.verb)) return false;
  const options = readOptions(command.args, {
    short: "mFCct",
    long: ["message", "file", "author", "date", "chmod", "cacheinfo"],
  });
  const adds = command.verb === "add" || command.verb === "stage";
  const isForced = adds && (hasLetter(options, "f") || hasLong(options, "force", 3));
  const isAll =
    hasLetter(options, "A") || hasLong(options, "all") || options.operands.some((path) => /^(?:\.|\*|:\/)$/.test(path));
  if (isForced && isAll) return true;
  if (hasLetter(options, "n") && adds) return false;
  return options.operands.some((path) => isKeyFile(pathOf(path, invocation, scene)));
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

/** A second copy, where nothing watches over it. */
const copiesKeys = (invocation: Invocation, scene: Scene) =>
  /^(?:cp|install|rsync|dd|ln|scp)$/.test(invocation.program) &&
  filesRead(invocation, scene).some(isHomeKey) &&
  !scene.invocations.every((one) => filesWrittenBy(one).every((file) => isHomeKey(pathOf(file, one, scene))));

export const secretReads: RuleGroup = {
  reason: "reads or gives away keys or passwords",
  rules: [
    {
      key: "read the agent's own secrets",
      matches: (scene) => scene.invocations.some((invocation) => readsOwnSecrets(invocation, scene)),
    },
    { key: "credentials and network on one line", matches: sendsCredentials },
    { key: "copy keys", matches: (scene) => scene.invocations.some((invocation) => copiesKeys(invocation, scene)) },
    {
      key: "put keys into a repository",
      matches: (scene) => scene.invocations.some((invocation) => commitsKeys(invocation, scene)),
    },
  ],
};
