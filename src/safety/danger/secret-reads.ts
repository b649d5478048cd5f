// Reading of keys and passwords, and where they go: to another machine, into a repository, into a copy that nothing watches over.
import { argTexts, hasLetter, hasLong, type Invocation, readOptions } from "../analysis/invocation.ts";
import { oncePerScene, optionsOf, pathOf, type RuleGroup, type Scene } from "../scene.ts";
import { isInterpreter } from "./code.ts";
import { every, type Table, tableRule } from "./destroyers.ts";
import { reachesOut } from "./effects.ts";
import { filesWrittenBy } from "./files.ts";
import { isCredential, isHomeKey, isKeyFile, isOwnSecret } from "./places.ts";
import { gitCommand } from "./system.ts";

/** They name a file without reading what is in it. */
const LOOKERS = new Set(
  "ls stat test [ [[ chmod chown touch mkdir echo printf cd pushd hermes du file basename dirname readlink realpath rm which type ssh-keygen ssh-add ssh-copy-id tree".split(
    " ",
  ),
);

/** What an argument may name: itself, and what stands behind `@`, `=` or between colons. */
const namesIn = (text: string) => (/[=@:,<;]/.test(text) ? [text, ...text.split(/[=@:,<;]/, 12)] : [text]);

/** They take commands of their own: `put file`. */
const TAKES_COMMANDS = /^(?:sftp|ftp|lftp|tftp|smbclient|ncftp)$/;

/** Options whose file says who one is or whom to trust: it is used, not sent. */
const IDENTITY =
  /^--(?:cacert|capath|cert|key|netrc-file|ca-certificate|certificate|private-key|identity|kubeconfig|config|env-file)$/;
const SSH_IDENTITY = /^-[iFEo]$/;

/** Names of files in code stand between quotes. */
const quotedIn = (code: string) => [...code.matchAll(/["'`]([^"'`\s]{1,200})["'`]/g)].map(([, name = ""]) => name);
const hereStrings = ({ redirects }: Invocation) =>
  redirects.filter(({ operator }) => operator === "<<<").map(({ target }) => target);
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
  const said = TAKES_COMMANDS.test(invocation.program)
    ? [...args, ...inputs(invocation), ...hereStrings(invocation)].flatMap((text) => text.split(/[\s;]+/, 64))
    : [];
  const folders = /tar$/.test(invocation.program) ? optionsOf(invocation, FROM_FOLDER).values : [];
  const below = folders.flatMap(({ name, value }) =>
    /^[Cd]/.test(name) ? named.map((file) => `${value}/${file}`) : [],
  );
  return [...named.flatMap(namesIn), ...below, ...inCode, ...said, ...fed]
    .filter((name) => name !== "")
    .map((name) => pathOf(name, invocation, scene));
};

const FROM_FOLDER = { short: "Cf", long: ["directory", "file"] };

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
      (!SOURCERS.test(invocation.program) && filesRead(invocation, scene).some((path) => isSecret(path, scene))),
  ),
);

/** A secret place, or a file that something was copied to from one earlier in the session. */
const isSecret = (path: string, scene: Scene) => isCredential(path) || isCopy(path, scene.homes.secretCopies);

const isCopy = (path: string, copies: readonly string[] = []) =>
  copies.some((copy) => path === copy || path.startsWith(copy.endsWith("*") ? copy.slice(0, -1) : `${copy}/`));

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

const namesSecret = (invocation: Invocation, scene: Scene) =>
  argTexts(invocation).some((arg) => isSecret(pathOf(arg, invocation, scene), scene));

/** `ls KEYS | xargs curl -T`, `curl -T "$(ls KEYS)"`: the name goes on as an argument. */
function handsOnNames(scene: Scene): boolean {
  const byInput = scene.pipelines.some((stages) =>
    stages.some(
      (stage, at) =>
        stage.some((one) => namesSecret(one, scene)) &&
        stages.slice(at + 1).some((later) => later.some((one) => one.via.length > 0 && reachesOut(one))),
    ),
  );
  const inArgument = scene.invocations.some(
    (invocation) =>
      reachesOut(invocation) &&
      invocation.args.some(({ substitutions }) =>
        substitutions.some(({ invocations }) => invocations.some((one) => namesSecret(one, scene))),
      ),
  );
  return byInput || inArgument;
}

const SERVERS: Table = {
  ...every("python python3", /(?:^|\s)-m (?:http\.server|SimpleHTTPServer|pyftpdlib|uploadserver)\b/),
  ...every("npx bunx pnpx", /^(?:-y |--yes )?(?:serve|http-server|live-server|servor)(?:@\S*)?(?=\s|$)/),
  ...every("serve http-server live-server miniserve dufs webfsd", /^/),
  php: /(?:^|\s)-S /,
  ruby: /(?:^|\s)-run\b.*httpd/,
  ...every("busybox httpd", /^(?:httpd|-)/),
  caddy: /^file-server/,
};
const serves = tableRule("", SERVERS);

/** Whoever asks gets what lies in the folder. */
function servesSecrets(invocation: Invocation, scene: Scene): boolean {
  // A scene of its own: looking at the whole line for each of its commands would grow with its square.
  if (!serves.matches({ ...scene, invocations: [invocation], pipelines: [], named: () => [invocation] })) return false;
  const folders = [".", ...argTexts(invocation).flatMap(namesIn)].map((name) => pathOf(name, invocation, scene));
  const copies = scene.homes.secretCopies ?? [];
  return folders.some((folder) => isSecret(folder, scene) || copies.some((copy) => copy.startsWith(`${folder}/`)));
}

const pushes = (invocation: Invocation) => gitCommand(invocation)?.verb === "push";

function sendsCredentials(scene: Scene): boolean {
  const isOut = scene.invocations.some((invocation) => reachesOut(invocation));
  if (isOut && (credentialReaders(scene).length > 0 || handsOnNames(scene))) return true;
  if (scene.invocations.some((invocation) => servesSecrets(invocation, scene))) return true;
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
  return options.operands.some((operand) => {
    const path = pathOf(operand, invocation, scene);
    return isKeyFile(path) || isCopy(path, scene.homes.secretCopies);
  });
}

// Copies. What is in one is no less secret, so the session remembers where they are.

const COPIERS = /^(?:cp|mv|install|rsync|dd|ln|scp)$/;
/** Programs that write a new file out of others, and where its name stands. */
const ARCHIVERS: Readonly<Record<string, (args: readonly string[]) => readonly string[]>> = {
  tar: (args) => archiveOf(args),
  gtar: (args) => archiveOf(args),
  bsdtar: (args) => archiveOf(args),
  zip: (args) => readOptions(args, { short: "bimntxP" }).operands.slice(0, 1),
  "7z": (args) => args.filter((arg) => !arg.startsWith("-")).slice(1, 2),
  "7za": (args) => args.filter((arg) => !arg.startsWith("-")).slice(1, 2),
  ...Object.fromEntries(["gzip", "bzip2", "xz", "zstd", "pigz", "lz4"].map((name) => [name, compressed])),
  xxd: (args) => readOptions(args, { short: "clsog" }).operands.slice(1, 2),
  split: (args) =>
    readOptions(args, { short: "abClnt" })
      .operands.slice(1, 2)
      .map((prefix) => `${prefix}*`),
};

function archiveOf(args: readonly string[]): readonly string[] {
  const [first = "", second = ""] = args;
  if (/^-?[A-Za-z]+$/.test(first) && first.includes("c") && first.endsWith("f")) return [second];
  const { values } = readOptions(args, { short: "Cf", long: ["file", "directory"] });
  return values.filter(({ name }) => name === "f" || name === "file").map(({ value }) => value);
}

function compressed(args: readonly string[]): readonly string[] {
  return readOptions(args).operands.flatMap((file) => ["gz", "bz2", "xz", "zst", "lz4"].map((end) => `${file}.${end}`));
}

const NO_FILE = /^(?:-|\/dev\/(?:null|stdout|stderr|fd\/.*|tty)|)$/;

function filesMadeBy(invocation: Invocation, scene: Scene): readonly string[] {
  const { program } = invocation;
  const archive = Object.hasOwn(ARCHIVERS, program) ? ARCHIVERS[program]?.(argTexts(invocation)) : undefined;
  const inCode = isInterpreter(program) ? argTexts(invocation).flatMap(quotedIn) : [];
  return [...filesWrittenBy(invocation), ...(archive ?? []), ...inCode]
    .filter((name) => !NO_FILE.test(name))
    .map((name) => pathOf(name, invocation, scene));
}

/**
 * Files of this line that may hold what a secret place holds: canonical paths; with `*` at the end, all names that begin so. What is read
 * goes through variables, substitutions and groups, so that it counts for every file that the line makes.
 */
export function copiesMadeBy(scene: Scene): readonly string[] {
  const reads =
    credentialReaders(scene).length > 0 ||
    printsSecret.matches(scene) ||
    scene.invocations.some(({ args }) =>
      args.some(({ substitutions }) =>
        substitutions.some(({ invocations }) => invocations.some((one) => namesSecret(one, scene))),
      ),
    );
  if (!reads) return [];
  const made = scene.invocations.flatMap((invocation) => filesMadeBy(invocation, scene));
  return [...new Set(made)].filter((path) => !isCredential(path));
}

/** A second copy, where nothing watches over it. */
const copiesKeys = (invocation: Invocation, scene: Scene) =>
  (COPIERS.test(invocation.program) ? invocation.program !== "mv" : Object.hasOwn(ARCHIVERS, invocation.program)) &&
  filesRead(invocation, scene).some(isHomeKey) &&
  !scene.invocations.every((one) => filesMadeBy(one, scene).every(isHomeKey));

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
