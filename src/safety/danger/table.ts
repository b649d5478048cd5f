// The categories that are asked about, in the order in which they win.

import { analyseCommand } from "../analysis/analyse.ts";
import { argTexts, hasLetter, hasLong, type Invocation, programName, readOptions } from "../analysis/invocation.ts";
import { isShell } from "../analysis/shells.ts";
import { findHardline } from "../hardline.ts";
import { oncePerScene, optionsOf, programRule, type RuleGroup, type Scene, setScene } from "../scene.ts";
import { chmodRun, decodedCode, inlineCode, isReverseShell, remoteCode, runsDownloadedFile } from "./code.ts";
import { destroyers, publishing } from "./destroyers.ts";
import { copiesAndEdits, deletion, disk, massDelete, permissions, sensitiveWrites } from "./files.ts";
import { laterStarts } from "./guarded-places.ts";
import { loaders } from "./loaders.ts";
import { ownGuards, ownProcess } from "./own.ts";
import { prepared } from "./prepared.ts";
import { secretReads } from "./secret-reads.ts";
import { containers, git, gitCommand, sql, sudo, system, windows } from "./system.ts";
import { unseen } from "./unseen.ts";

function removesJobs(invocation: Invocation): boolean {
  if (invocation.program === "atrm") return invocation.args.length > 0;
  if (invocation.program === "schtasks") return argTexts(invocation).some((arg) => /^\/{1,2}delete$/i.test(arg));
  const options = optionsOf(invocation, { short: "u" });
  if (invocation.program === "at") return hasLetter(options, "d", "r");
  // `crontab file` and `crontab -` put a new table in the place of the old one.
  return hasLetter(options, "r") || options.operands.length > 0;
}

function flushesFirewall(invocation: Invocation): boolean {
  const { program } = invocation;
  const options = optionsOf(invocation, { short: "t", long: ["table"] });
  if (/^ip6?tables(?:-(?:nft|legacy))?$/.test(program)) {
    return hasLetter(options, "F", "X") || hasLong(options, "flush") || hasLong(options, "delete-chain");
  }
  if (program === "nft") return options.operands[0] === "flush";
  if (program === "ufw") return options.operands.some((word) => word === "disable" || word === "reset");
  return program === "pfctl" && hasLetter(options, "F", "d");
}

function discardsWork(invocation: Invocation): boolean {
  const command = gitCommand(invocation);
  if (!command) return false;
  const options = readOptions(command.args, { short: "bBs", long: ["source", "orphan", "conflict"] });
  const { operands } = options;
  if (command.verb === "stash") return operands[0] === "drop" || operands[0] === "clear";
  if (command.verb === "checkout") {
    const dashes = command.args.indexOf("--");
    const paths = dashes >= 0 && dashes < command.args.length - 1;
    return paths || operands.includes(".") || hasLetter(options, "f") || hasLong(options, "force", 1);
  }
  if (command.verb === "restore") {
    const staged = hasLetter(options, "S") || hasLong(options, "staged", 2);
    return operands.length > 0 && (!staged || hasLetter(options, "W") || hasLong(options, "worktree", 1));
  }
  return (
    command.verb === "switch" &&
    (hasLetter(options, "f") || hasLong(options, "force", 1) || hasLong(options, "discard-changes", 2))
  );
}

const HOME_REMOTE = /^(?:origin|upstream)$/;

/** What goes to a place that the line itself names is out of hand; a first `origin` is how a repository begins. */
function pushesElsewhere(scene: Scene): boolean {
  return scene.sequences.some((sequence) => {
    const named = new Set<string>();
    return sequence.some((invocation) => {
      const command = gitCommand(invocation);
      const { operands } = readOptions(command?.args ?? [], { short: "tmo", long: ["push-option", "receive-pack"] });
      const [verb = "", name = ""] = operands;
      if (
        command?.verb === "remote" &&
        (/^(?:set-url|rename)$/.test(verb) || (verb === "add" && !HOME_REMOTE.test(name)))
      )
        named.add(name);
      if (command?.verb !== "push") return false;
      if (/^(?:https?|git|ssh|ftp):\/\/|^[\w.-]+@[\w.-]+:/.test(verb)) return true;
      return named.size > 0 && (verb === "" || named.has(verb));
    });
  });
}

const added: RuleGroup = {
  reason: "opens a way in, or throws away protection or work",
  rules: [
    { key: "reverse shell", matches: isReverseShell },
    programRule("remove scheduled jobs", ["crontab", "atrm", "at", "schtasks"], removesJobs),
    { key: "flush firewall rules", matches: (scene) => scene.invocations.some(flushesFirewall) },
    { key: "discard uncommitted work", matches: (scene) => scene.invocations.some(discardsWork) },
    { key: "downloaded file executed", matches: runsDownloadedFile },
    { key: "push to a place that the line names", matches: pushesElsewhere },
  ],
};

/** What is asked about wherever it stands, also inside a text that another program is handed. */
const PLAIN: readonly RuleGroup[] = [
  deletion,
  windows,
  permissions,
  disk,
  sql,
  system,
  remoteCode,
  decodedCode,
  sensitiveWrites,
  copiesAndEdits,
  massDelete,
  ownProcess,
  ownGuards,
  containers,
  inlineCode,
  git,
  chmodRun,
  sudo,
  added,
  loaders,
];

const plainRules = PLAIN.filter((group) => group !== sql).flatMap(({ rules }) => rules);

// Texts and words that look like a command and are handed to a program nobody here knows: it may run them.

/** They show, store, search or send a text, or run none but what other rules already read out of it. */
const INERT = new Set(
  `: . [ [[ ack ag agrep aider alias apropos apt apt-get asciinema at awk banner base64 basename batch bats bc black brew bun cal cargo cat cd chmod chown
  claude clang cmake cmp code codex column comm command composer cowsay cp curl cut date dc dd deno df dialog diff dirname dnf docker docker-compose
  dpkg du echo ed egrep emacs env eslint eval ex exit expand export expr false fd fdfind fgrep figlet file find flake8 fmt fold gawk gcc gdb gemini gh
  git glab go gpg grep groovy gsed gum head help hermes hexdump hg host hostname http https iconv info ipython javac jest jira join jq julia kill
  kubectl ld less let lldb ln local locate logger lolcat ls lua lynx mail mailx make man mapfile markdownlint mawk md5sum mkdir mocha more msgcat
  mutt mv mypy mysql mariadb nano nawk nl node nodejs nosetests notify-send npm npx nvim oc od ollama openssl opencode osascript pacman pandoc paste patch
  perl pgrep php pip pip3 pkill playwright pnpm podman popd prettier printf psql pushd pwd pylint pytest python python3 python2 pypy q read readarray
  readlink readonly realpath redis-cli return rev rg rm rmdir rspec ruby ruff say scp sed seq set sha1sum sha256sum shasum shellcheck shfmt shift sleep
  sort source split sqlite3 ssh stat strings su sudo svn systemctl tac tail tap tee test tig toilet touch tox tput tr trap tree true tsc tslint type
  typeset declare ulimit uniq unset unzip uv vi view vim vitest wait wall wc wget whatis whereis which whiptail write xargs parallel xh xmessage xxd yarn
  yq zenity zgrep zip tar mongosh mongo rsync helm terraform tofu aws gcloud az llm yum zypper apk zcat tmux screen watch watchexec script expect`.split(
    /\s+/,
  ),
);

const isInert = ({ program }: Invocation) => program === "" || INERT.has(program) || isShell(program);

/** Names that are worth a look when they stand among the words of an unknown program. */
const TELLING =
  /^(?:rm|shred|dd|mkfs(?:\..*)?|chmod|chown|kill|pkill|killall|reboot|shutdown|halt|poweroff|(?:ba|z|da|k)?sh|eval|tee|find|xargs|sudo|git|truncate|wipefs|systemctl)$/;
const MAX_STARTS = 3;

/** A phrase with something in it that a command would have. */
const mayBeCommand = (text: string) => /\S\s+\S/.test(text);

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

function textsHandedOn(invocation: Invocation): readonly string[] {
  const runs = PACKAGE_RUNNERS.test(invocation.program);
  if (isInert(invocation) && !runs) return [];
  const args = argTexts(invocation);
  const inputs = invocation.redirects.flatMap(({ operator, heredoc, target }) => {
    if (heredoc) return [heredoc.body];
    return operator === "<<<" ? [target] : [];
  });
  const phrases = [...args.map(behindEquals), ...inputs, ...invocation.assignments.map(({ value }) => value)];
  const starts = args.flatMap((arg, index) => (isTelling(arg) ? [index] : []));
  const words = starts.slice(0, MAX_STARTS).map((start) => {
    const [name = "", ...rest] = args.slice(start);
    return [name, ...(rest[0] === "--" ? rest.slice(1) : rest)].map(quote).join(" ");
  });
  return runs ? words : [...phrases.filter(mayBeCommand), ...words];
}

/** Their texts are names of tests and messages; their words may be a program. */
const PACKAGE_RUNNERS = /^(?:npx|bunx|pnpx)$/;

const isTelling = (arg: string) =>
  TELLING.test(programName(arg)) && /^(?:(?:\/usr)?(?:\/local)?\/s?bin\/)?[^/]+$/.test(arg);

/** Behind `--exec=`. */
const behindEquals = (arg: string) => arg.replace(/^--?[\w:-]+=/, "");

/** Each such text as a line of its own. */
const commandsHandedOn = oncePerScene((scene): readonly Scene[] =>
  scene.invocations.flatMap(textsHandedOn).map((text) => setScene(analyseCommand(text), scene.homes)),
);

const handedOn: RuleGroup = {
  reason: "hands a command to a program that may run it",
  rules: [
    {
      key: "dangerous command handed to another program",
      matches: (scene) =>
        commandsHandedOn(scene).some(
          (inner) => findHardline(inner) !== null || plainRules.some((rule) => rule.matches(inner)),
        ),
    },
  ],
};

const GROUPS: readonly RuleGroup[] = [
  ...PLAIN,
  laterStarts,
  secretReads,
  destroyers,
  publishing,
  prepared,
  unseen,
  handedOn,
];

export interface Danger {
  readonly key: string;
  readonly reason: string;
  /** Place in the table; the lowest wins. */
  readonly rank: number;
}

export const RULES = GROUPS.flatMap((group) => group.rules.map((rule) => ({ rule, reason: group.reason, group })));

/** Rules on which file is meant: a relative name counts by where the command begins. */
const BY_PATH: ReadonlySet<RuleGroup> = new Set([sensitiveWrites, copiesAndEdits, ownGuards, laterStarts, secretReads]);

export function findDanger(scene: Scene): Danger | null {
  const rank = RULES.findIndex(({ rule }) => rule.matches(scene));
  return dangerAt(rank);
}

/** The same for a line that was read with the directory it begins in. */
export function findPathDanger(scene: Scene): Danger | null {
  return dangerAt(RULES.findIndex(({ rule, group }) => BY_PATH.has(group) && rule.matches(scene)));
}

function dangerAt(rank: number): Danger | null {
  const found = RULES[rank];
  return found ? { key: found.rule.key, reason: found.reason, rank } : null;
}
