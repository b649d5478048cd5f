// Whose text the output of a command is: what came over the network, and which files and folders had a say in it.
import { analyseCommand } from "./analysis/analyse.ts";
import { argTexts, type Invocation } from "./analysis/invocation.ts";

/** Programs that bring text from elsewhere whatever they are told. */
const FETCHERS = new Set(
  "curl wget wget2 aria2c http https xh httpie lynx w3m links elinks yt-dlp youtube-dl gallery-dl whois dig nslookup nc ncat netcat telnet ftp sftp lftp rsync scp ssh mosh mutt himalaya".split(
    " ",
  ),
);

/** Programs of which some words do; the rest of them work on what is here. */
const FETCHING_WORDS: Readonly<Record<string, RegExp>> = {
  git: /^(?:clone|ls-remote)$/,
  gh: /^(?:issue|pr|api|release|gist|search|run|discussion|browse|repo|workflow)$/,
  glab: /^(?:issue|mr|api|release|snippet|ci|repo)$/,
  npm: /^(?:view|info|show|search|v|audit)$/,
  pnpm: /^(?:view|info|show|search|audit)$/,
  yarn: /^(?:info|npm)$/,
  pip: /^(?:index|search|download)$/,
  pip3: /^(?:index|search|download)$/,
  cargo: /^(?:search|info)$/,
  gem: /^(?:search|specification)$/,
  brew: /^(?:search|info|desc)$/,
  docker: /^(?:pull|search|logs)$/,
  podman: /^(?:pull|search|logs)$/,
  kubectl: /^(?:logs)$/,
  openssl: /^(?:s_client)$/,
};

/** Programs that run code given on the line, or print a page given by URL. */
const ADDRESS = /\b(?:https?|ftp|wss?):\/\/(?:[^\s/@'"]*@)?(\[[^\]\s]*\]|[^\s/:'"?#)\]]+)/gi;
const NETWORK_CODE =
  /\b(?:urllib|requests|httpx|aiohttp|http\.client|http\.get|https\.get|socket|fetch\s*\(|axios|net\.connect|URLSession|LWP|Net::HTTP|open-uri)/;
/** They print or keep their words; an address among those is not visited. */
const ONLY_SAYS = new Set(
  "echo printf grep egrep fgrep rg ag sed awk gawk test [ true false cd pwd export alias unset git cat tee jq sh bash dash zsh ksh env xargs".split(
    " ",
  ),
);

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0|[\w.-]+\.localhost)$/i;

/** What brings text from elsewhere, in words for a person; null when nothing on the line does. */
export function bringsOutsideText(command: string): string | null {
  for (const invocation of analyseCommand(command).invocations) {
    const words = outsideWords(invocation);
    if (words !== null) return words;
  }
  return null;
}

function outsideWords(invocation: Invocation): string | null {
  const { program } = invocation;
  const args = argTexts(invocation);
  const hosts = args.flatMap(hostsIn);
  const bare = FETCHERS.has(program) ? args.flatMap(bareHost) : [];
  const named = [...hosts, ...bare];
  // A server of this machine is the user's own.
  if (named.length > 0 && named.every((host) => LOOPBACK.test(host))) return null;
  const where = named.find((host) => !LOOPBACK.test(host));
  const what = where === undefined ? program : `${program} ${where}`;
  if (FETCHERS.has(program)) return asksForVersion(args) ? null : what;
  const verb = args.find((arg) => !arg.startsWith("-")) ?? "";
  if (FETCHING_WORDS[program]?.test(verb))
    return where === undefined ? `${program} ${verb}` : `${program} ${verb} ${where}`;
  if (ONLY_SAYS.has(program)) return null;
  return where !== undefined && program !== "" && program in FETCHING_WORDS === false ? what : codeWords(program, args);
}

const asksForVersion = (args: readonly string[]) =>
  args.length === 1 && /^(?:-V|--version|-h|--help)$/.test(args[0] ?? "");

const hostsIn = (text: string) => [...text.matchAll(ADDRESS)].map(([, host = ""]) => host);

/** `curl example.com/x` and `ssh me@example.com`: a host without a scheme. */
function bareHost(arg: string): string[] {
  const found = /^(?:[\w.-]+@)?(localhost|\[::1\]|[\w-]+(?:\.[\w-]+)+)(?::\d*)?(?:[/?#:].*)?$/i.exec(arg);
  return found?.[1] === undefined ? [] : [found[1]];
}

const INTERPRETERS = /^(?:python[0-9.]*|node|deno|bun|ruby|perl|php|tsx|ts-node)$/;

function codeWords(program: string, args: readonly string[]): string | null {
  return INTERPRETERS.test(program) && args.some(fetchesByCode) ? `a ${program} script` : null;
}

/** Code that speaks to the network by the look of it. */
export function fetchesByCode(code: string): boolean {
  const hosts = hostsIn(code);
  if (hosts.length > 0 && hosts.every((host) => LOOPBACK.test(host))) return false;
  return hosts.length > 0 || NETWORK_CODE.test(code);
}

/** Files that code names by their whole path. */
export function pathsInCode(code: string): readonly string[] {
  return [...code.matchAll(/["'`]((?:\/|~\/)[^"'`\n]{1,300})["'`]/g)].map(([, path = ""]) => path);
}

/** What they print is what the line says, or what this machine knows of itself; no file has a say in it. */
const OWN_WORDS = new Set(
  "echo printf true false : pwd cd date whoami id hostname uname sleep mkdir touch rm rmdir cp mv ln chmod export unset alias set test [ kill which type command nproc uptime free df du".split(
    " ",
  ),
);

/** Which folders and files have a say in what a line prints, and which files it writes. Paths as they stand there, or absolute. */
export function placesOf(command: string): {
  readonly reads: readonly { readonly path: string; readonly from: string | null }[];
  readonly writes: readonly { readonly path: string; readonly from: string | null }[];
} {
  const { invocations, ok } = analyseCommand(command);
  const reads = invocations.filter(isMoreThanItsWords).flatMap((invocation) => [
    { path: ".", from: invocation.cwd },
    ...argTexts(invocation)
      .flatMap(pathIn)
      .map((path) => ({ path, from: invocation.cwd })),
  ]);
  const redirects = invocations.flatMap(({ redirects: all, cwd }) =>
    all.flatMap(({ operator, target, heredoc }) => (heredoc ? [] : [{ operator, path: target, from: cwd }])),
  );
  const opened = redirects.filter(({ operator }) => operator === "<");
  return {
    // What cannot be read may do anything where it stands.
    reads: ok ? [...reads, ...opened] : [{ path: ".", from: null }, ...reads, ...opened],
    writes: redirects.filter(({ operator }) => /^(?:&?>{1,2}|>\|)$/.test(operator)),
  };
}

const isMoreThanItsWords = ({ program, dynamic, path }: Invocation) =>
  dynamic || path !== program || !OWN_WORDS.has(program);

/** Of an argument, the path that leads elsewhere; one below the folder goes with the folder. */
function pathIn(arg: string): string[] {
  const path = arg.replace(/^--?[\w-]{1,40}=/, "");
  return /^(?:\/(?!dev\/)|~|\.\.(?:\/|$))|\/\.\.\//.test(path) ? [path] : [];
}
