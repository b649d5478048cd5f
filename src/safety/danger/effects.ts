// What a command does that a stranger's text may be after, whatever the verdict on it: it changes the agent, or talks to another
// machine and hands something over. Loopback is this machine.
import { argTexts, hasLetter, type Invocation, type Options, readOptions } from "../analysis/invocation.ts";
import type { CommandVerdict } from "../decision.ts";
import { optionsOf, pathOf, type Scene } from "../scene.ts";
import { codeTalksOut } from "./code.ts";
import { filesWrittenBy } from "./files.ts";
import { hermesWords } from "./own.ts";

type Effects = NonNullable<CommandVerdict["effects"]>;

export function effectsOf(scenes: readonly Scene[]): Effects {
  const found: Effects[number][] = [];
  if (scenes.some(changesAgent)) found.push("changes the agent");
  if (scenes.some(sendsData)) found.push("sends data out");
  return found;
}

/** Verbs that only show. */
const SHOWS =
  /^(?:list|ls|show|status|get|path|search|info|view|inspect|test|check|doctor|diff|help|export|log|history|trusted|blame)?$/;
/** What such a command changes outlives the conversation. */
const NOUNS =
  /^(?:memory|skills|cron|plugins|mcp|config|prompt|hooks|approvals|safety|pairing|trust|tools|profile|auth|login|logout|model|personality|soul|setup|webhook|gateway|update|uninstall|import|restore)$/;

const isOwn = (path: string) =>
  /^~\/\.hermes(?:\/|$)/.test(path) && !/^~\/\.hermes\/(?:profiles\/[^/]+\/)?(?:workspace|cache|logs)\//.test(path);
/** Tells the agent what to do, wherever it lies. */
const isRule = (path: string) =>
  /(?:^|\/)(?:soul\.md|agents\.md|claude\.md|\.hermes\.md|\.cursorrules|memory\.md|user\.md)$/.test(path);

const REMOVERS = /^(?:rm|unlink|shred|rmdir|mv|truncate|touch|mkdir|chmod|chown|ln|sqlite3|git)$/;

function changesAgent(scene: Scene): boolean {
  return scene.invocations.some((invocation) => {
    const [noun = "", verb = ""] = hermesWords(invocation);
    if (
      NOUNS.test(noun) &&
      (!SHOWS.test(verb) || /^(?:setup|login|logout|update|uninstall|import|restore)$/.test(noun))
    )
      return true;
    const named = REMOVERS.test(invocation.program) ? optionsOf(invocation).operands : [];
    const written = filesWrittenBy(invocation).map((file) => pathOf(file, invocation, scene));
    return (
      written.some((path) => isOwn(path) || isRule(path)) ||
      named.some((file) => isOwn(pathOf(file, invocation, scene)))
    );
  });
}

function sendsData(scene: Scene): boolean {
  const fed = new Set(scene.pipelines.flatMap((stages) => stages.slice(1).flat()));
  return scene.invocations.some((invocation) => sendsOut(invocation, fed.has(invocation)) || opensPage(invocation));
}

/** A browser that is told an address put together from what is here. */
const opensPage = (invocation: Invocation) =>
  /^(?:open|xdg-open|lynx|w3m|links|firefox|chromium|google-chrome)$/.test(invocation.program) &&
  invocation.args.some(
    ({ text, marked, substitutions }) => /^https?:/.test(text) && (marked !== undefined || substitutions.length > 0),
  );

// Talking to other machines.

const LOOPBACK =
  /^(?:[a-z+]+:\/\/)?(?:[^/@]*@)?(?:localhost|127\.[0-9.]+|0\.0\.0\.0|\[?::1\]?|host\.docker\.internal)(?::[0-9]+)?(?:[/?#]|$)/i;
const NETCATS = /^(?:nc|ncat|netcat|nc\.traditional|nc\.openbsd|telnet|socat)$/;
const DOWNLOADERS = /^(?:curl|wget|wget2|http|https|xh|xhs|httpie|aria2c|curlie)$/;
const MAILERS = /^(?:mail|mailx|mutt|neomutt|sendmail|msmtp|swaks|ssmtp|s-nail)$/;
const SENDERS =
  /^(?:ftp|lftp|sftp|tftp|ncftp(?:put)?|ftp-upload|wput|smbclient|cadaver|dig|nslookup|host|drill|ping|ngrok|cloudflared|bore|gist|pastebinit|ix|sprunge|termbin|telegram-send|slackcat|ffsend|onionshare-cli|transfer|gdrive|mega-put|s5cmd)$/;
const REMOTE = /^(?!\/|\.{1,2}\/|~|[a-z]:\\)(?:[\w.-]+@)?[\w.-]+:(?!\/\/)|^rsync:\/\//i;

const CURL = {
  short: "oHdAbceFmuxXTwKrECDYyQPtzU",
  long: [
    "header",
    "data",
    "data-raw",
    "data-binary",
    "data-urlencode",
    "json",
    "form",
    "upload-file",
    "request",
    "output",
    "user",
    "user-agent",
    "max-time",
    "url",
    "cookie",
    "proxy",
    "cacert",
    "cert",
    "key",
  ],
};

function isLocal(operands: readonly string[]): boolean {
  const hosts = operands.filter((operand) => operand !== "" && !operand.startsWith("-"));
  return hosts.length > 0 && hosts.every((host) => LOOPBACK.test(host));
}

/** Talks to another machine, in whichever direction. */
export function reachesOut(invocation: Invocation): boolean {
  const { program } = invocation;
  const args = argTexts(invocation);
  if (DOWNLOADERS.test(program)) return !isLocal(readOptions(args, CURL).operands);
  if (NETCATS.test(program)) return !isLocal(readOptions(args, { short: "pswiqX" }).operands.slice(0, 1));
  if (MAILERS.test(program) || SENDERS.test(program)) return true;
  if (program === "scp" || program === "rsync" || program === "rclone") return args.some((arg) => REMOTE.test(arg));
  if (program === "ssh" || codeTalksOut(invocation)) return true;
  if (program === "openssl") return args[0] === "s_client";
  if (program === "git") return args.includes("send-email");
  return invocation.redirects.some(({ target }) => /^\/dev\/(?:tcp|udp)\//.test(target)) || sendsByVerb(invocation);
}

const VERBS: Readonly<Record<string, RegExp>> = {
  gh: /^(?:(?:gist|issue|pr|release|repo|discussion) (?:create|comment|edit|review|upload|merge|close|fork|sync|rename)|(?:secret|variable) set|workflow run|api )/,
  glab: /^(?:issue|mr|release|snippet|repo) (?:create|note|update|upload|merge)/,
  npm: /^(?:publish|unpublish|deprecate|dist-tag add|owner add|access )/,
  pnpm: /^publish/,
  yarn: /^(?:npm )?publish/,
  bun: /^publish/,
  cargo: /^(?:publish|owner|yank)/,
  twine: /^upload/,
  poetry: /^publish/,
  uv: /^publish/,
  gem: /^push/,
  docker: /^(?:(?:image|compose) )?push|^buildx build .*--push/,
  podman: /^(?:image )?push/,
  skopeo: /^copy/,
  helm: /^push/,
  gsutil: /^(?:-m )?(?:cp|mv|rsync)\b.*gs:\/\/\S*$/,
  gcloud: /^storage (?:cp|mv|rsync)\b.*gs:\/\/\S*$/,
  aws: /^(?:s3 (?:cp|mv|sync)\b.*s3:\/\/\S*(?: --.*)?$|s3api put-object|\S+ (?:send-|publish|put-))/,
  az: /^storage (?:blob|file) upload/,
  s3cmd: /^(?:put|sync)/,
  mc: /^(?:cp|mirror|pipe)/,
  rclone: /^(?:copy|copyto|sync|move|moveto|rcat|bisync)/,
  b2: /^(?:upload|file upload|sync)/,
  vercel: /^(?:deploy|--prod|$)/,
  netlify: /^deploy/,
  wrangler: /^(?:deploy|publish)/,
  firebase: /^deploy/,
  surge: /^/,
  wormhole: /^send/,
  croc: /^send/,
  magic: /^wormhole/,
  "transfer.sh": /^/,
  ipfs: /^add/,
  hf: /^upload/,
  "huggingface-cli": /^upload/,
  kaggle: /^(?:datasets|kernels) (?:create|push|version)/,
  vsce: /^publish/,
  svn: /^(?:commit|ci|import)/,
  hg: /^push/,
  ...Object.fromEntries(["kubectl", "oc"].map((name) => [name, /^cp /])),
};

function sendsByVerb(invocation: Invocation): boolean {
  const { program } = invocation;
  const words = argTexts(invocation).filter(
    (arg, index, args) => !/^-[CR]$/.test(args[index - 1] ?? "") && !/^-[CR]$/.test(arg),
  );
  const verb = Object.hasOwn(VERBS, program) ? VERBS[program] : undefined;
  return verb?.test(words.slice(0, 40).join(" ")) ?? false;
}

const computed = (invocation: Invocation, text: string) =>
  invocation.args.some((arg) => arg.text === text && (arg.marked !== undefined || arg.substitutions.length > 0));

/** A request that carries something along: a body, an upload, or an address that is put together from what is here. */
function uploads(invocation: Invocation, options: Options): boolean {
  if (invocation.program === "wget" || invocation.program === "wget2")
    return (
      options.longs.some((name) => /^(?:post|body)-(?:data|file)$|^method$/.test(name)) || addressComputed(invocation)
    );
  if (/^(?:http|https|xh|xhs|httpie|curlie)$/.test(invocation.program)) {
    const [first = "", ...rest] = options.operands;
    const asks = /^(?:post|put|patch|delete)$/i.test(first);
    return asks || rest.some((item) => /[^:]=|@/.test(item)) || addressComputed(invocation);
  }
  const methods = options.values.filter(({ name }) => name === "X" || name === "request").map(({ value }) => value);
  return (
    hasLetter(options, "d", "F", "T") ||
    options.longs.some((name) => /^(?:data|json|form|upload-file)/.test(name)) ||
    methods.some((method) => /^(?:post|put|patch)$/i.test(method)) ||
    addressComputed(invocation)
  );
}

/** The host or what follows it comes from a variable or another program. */
const addressComputed = (invocation: Invocation) =>
  invocation.args.some(
    ({ text, marked, substitutions }) =>
      /^(?:[a-z]+:\/\/|[\w-]+\.[\w.-]+\/)/i.test(text) && (marked !== undefined || substitutions.length > 0),
  );

/** Hands something of this machine to another one. */
function sendsOut(invocation: Invocation, isFed: boolean): boolean {
  const { program } = invocation;
  const args = argTexts(invocation);
  const hasInput = isFed || invocation.redirects.some(({ operator }) => operator.startsWith("<"));
  if (DOWNLOADERS.test(program)) {
    const options = readOptions(args, CURL);
    return !isLocal(options.operands) && uploads(invocation, options);
  }
  if (NETCATS.test(program)) return reachesOut(invocation) && !hasLetter(readOptions(args, { short: "pswiqX" }), "z");
  if (MAILERS.test(program) || /^(?:ftp|lftp|sftp|tftp|ngrok|cloudflared|gist)$/.test(program)) return true;
  if (program === "scp" || program === "rsync") return REMOTE.test(lastOperand(args));
  if (program === "ssh") return hasInput;
  if (program === "openssl") return args[0] === "s_client" && isFed;
  if (/^(?:dig|nslookup|host|drill|ping)$/.test(program)) return args.some((text) => computed(invocation, text));
  if (program === "git") return gitSends(args);
  if (codeTalksOut(invocation)) return true;
  if (/^python[0-9.]*$/.test(program)) return /\b-m (?:twine upload|http\.server)/.test(` ${args.join(" ")}`);
  if (
    invocation.redirects.some(({ operator, target }) => operator.includes(">") && /^\/dev\/(?:tcp|udp)\//.test(target))
  )
    return true;
  return sendsByVerb(invocation);
}

const lastOperand = (args: readonly string[]) =>
  readOptions(args, { short: "eiFJlPSX", long: ["rsh", "exclude", "include", "filter"] }).operands.at(-1) ?? "";

function gitSends(args: readonly string[]): boolean {
  const { operands } = readOptions(args, { short: "Cc", long: ["git-dir", "work-tree"], stopAtOperand: true });
  return operands[0] === "push" || operands[0] === "send-email" || (operands[0] === "lfs" && operands[1] === "push");
}
