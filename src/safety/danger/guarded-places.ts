// Changes to what runs at a later start, and reading of keys: by whatever program of the line.
import { argTexts, hasLetter, hasLong, type Invocation } from "../analysis/invocation.ts";
import { oncePerScene, optionsOf, pathOf, type RuleGroup, type Scene } from "../scene.ts";
import { reachesOut } from "./effects.ts";
import { filesWrittenBy } from "./files.ts";
import { isCredential, isLinkedAway, isOwnSecret, runsLater } from "./places.ts";

function changesLaterStart(invocation: Invocation, scene: Scene): boolean {
  if (filesWrittenBy(invocation).some((file) => runsLater(pathOf(file, invocation, scene)))) return true;
  if (unpacksIntoHome(invocation, scene)) return true;
  const links = invocation.program === "ln" || invocation.program === "link";
  return links && optionsOf(invocation).operands.some((file) => isLinkedAway(pathOf(file, invocation, scene)));
}

const HOME_ITSELF = /^(?:~|\/root|\/home\/[^/]+|\/users\/[^/]+|\/)$/;

/** What is in an archive or a folder is not on the line, and in a home some of it may be start files. */
function unpacksIntoHome(invocation: Invocation, scene: Scene): boolean {
  const { program } = invocation;
  if (!/^(?:cp|rsync|tar|bsdtar|unzip|7z|stow)$/.test(program)) return false;
  const options = optionsOf(invocation, { short: program === "cp" || program === "rsync" ? "tS" : "Cdtf" });
  const { operands } = options;
  const sources = operands.slice(0, -1);
  if (program === "rsync" && !sources.some((source) => source.endsWith("/"))) return false;
  if (program === "cp" && !sources.some((source) => source.endsWith("/.")) && !hasLetter(options, "T")) return false;
  const isCopy = program === "cp" || program === "rsync";
  const isPacking = program === "tar" && /^-?[a-zA-Z]*[cturA]/.test(argTexts(invocation)[0] ?? "");
  const named = options.values.filter(({ name }) => /^[Cdt]$/.test(name)).map(({ value }) => value);
  const targets = isCopy ? operands.slice(-1) : isPacking ? [] : named;
  return targets.some((target) => HOME_ITSELF.test(pathOf(target, invocation, scene)));
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

const filesRead = (invocation: Invocation, scene: Scene): readonly string[] => {
  if (LOOKERS.has(invocation.program)) return [];
  const args = argTexts(invocation);
  const isSsh = /^(?:ssh|scp|sftp|rsync|sshfs|mosh|ssh-copy-id)$/.test(invocation.program);
  const says = (option: string) => IDENTITY.test(option) || (isSsh && SSH_IDENTITY.test(option));
  const named = args
    .filter((arg, index) => !says(args[index - 1] ?? "") && !/^(?:https?|ftp):/.test(arg))
    .filter((arg) => !says(arg.split("=", 1)[0] ?? ""));
  const fed = invocation.redirects.filter(({ operator }) => operator === "<").map(({ target }) => target);
  return [...named.flatMap(namesIn), ...fed]
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

const sendsCredentials = (scene: Scene) =>
  credentialReaders(scene).length > 0 && scene.invocations.some((invocation) => reachesOut(invocation));

export const laterStarts: RuleGroup = {
  reason: "changes something that runs by itself at a later start",
  rules: [
    {
      key: "change a file that runs at a later start",
      matches: (scene) => scene.invocations.some((invocation) => changesLaterStart(invocation, scene)),
    },
  ],
};

export const secretReads: RuleGroup = {
  reason: "reads keys or passwords",
  rules: [
    {
      key: "read the agent's own secrets",
      matches: (scene) => scene.invocations.some((invocation) => readsOwnSecrets(invocation, scene)),
    },
    { key: "credentials and network on one line", matches: sendsCredentials },
  ],
};
