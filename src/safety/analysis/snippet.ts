// What a piece of code in another language does, as far as its text shows: whether it only computes and prints, or starts programs,
// removes, writes, talks to other machines, or hides what it runs. Words count wherever they stand, in strings too: better a question
// too many than a quote that hides a call.

type Language = "python" | "javascript" | "perl" | "ruby" | "php" | "go" | "other";

interface Reach {
  /** Something only a person should let through, or that cannot be read. */
  readonly asks: boolean;
  /** Files it writes by a name in its text; what else it writes is a reason to ask. */
  readonly writes: readonly string[];
  /** Talks to another machine. */
  readonly network: boolean;
}

export function languageOf(program: string): Language {
  const family = program.replace(/(?<![0-9.])[0-9.]+$/, "");
  if (/^(?:i?python|pypy)$/.test(family)) return "python";
  if (/^(?:node|nodejs|deno|bun|tsx|ts-node)$/.test(family)) return "javascript";
  return family === "perl" || family === "ruby" || family === "php" || family === "go" ? family : "other";
}

/** The language of a file, for programs that run files by themselves (`pytest`, `pip install .`). */
export function languageOfFile(name: string): Language {
  if (/\.pyw?$/.test(name)) return "python";
  if (/\.[cm]?[jt]sx?$/.test(name)) return "javascript";
  if (/\.go$/.test(name)) return "go";
  return /\.p[lm]$/.test(name) ? "perl" : /\.rb$|(?:^|\/)rakefile$/i.test(name) ? "ruby" : "other";
}

/** Longer programs are not judged by their words. */
const MAX_CHARS = 20_000;

export function reachOf(language: Language, text: string): Reach {
  const unread = { asks: true, writes: [], network: false };
  if (text.length > MAX_CHARS || OWN_HOME.test(text)) return unread;
  if (language === "other") return { ...unread, asks: !onlyPrints(text) };
  if (ASKS[language].some((sign) => [sign].flat().every((pattern) => pattern.test(text)))) return unread;
  const writes = language === "python" ? pythonWrites(text) : namedWrites(text);
  if (writes === null) return unread;
  const network = NETWORK[language].test(text) && !isLoopback(text);
  return { asks: network && (SECRETS.test(text) || !/https?:\/\//.test(text)), writes, network };
}

const OWN_HOME = /\.hermes\b|HERMES_HOME/i;

/** Of languages that are not known here: nothing but words that show something. */
const INERT =
  /^(?:print|println|puts|echo|cat|show|display|format|string|paste|paste0|version|_VERSION|VERSION|R|Sys|time|date|now|sessionInfo|sum|mean|sqrt|abs|max|min|length|pi|io|write|math|floor|ceil|sin|cos|log|exp|TRUE|FALSE|true|false|nil|null)$/;
const onlyPrints = (text: string) =>
  !/[`|\\&<>]/.test(text) && text.length < 500 && (text.match(/[A-Za-z_]\w*/g) ?? []).every((word) => INERT.test(word));

/** One expression, or several that must all match. */
type Sign = RegExp | readonly RegExp[];

const PYTHON: readonly Sign[] = [
  /(?<![.\w"'])(?:eval|exec|execfile|__import__)\b(?!["'])/,
  /(?<![.\w])(?:compile|globals|locals|vars|breakpoint)\s*\(/,
  /\bgetattr\s*\((?!\s*[\w.]{1,80}\s*,\s*["']\w+["']\s*[,)])|\b(?:set|del)attr\s*\(|\b(?:attrgetter|methodcaller)\b/,
  /\bgetattr\s*\(\s*(?:os|sys|posix|builtins)\b/,
  /__(?:builtins|subclasses|bases?|mro|globals|getattribute|loader|spec|code|reduce(?:_ex)?)__|__dict__\s*\[|\bsys\s*\.\s*modules\b|\bbuiltins\b/,
  /\b(?:import|from)\s(?:[\w ,.]{0,200}[ ,])?(?:subprocess|ctypes|cffi|pty|socket|socketserver|multiprocessing|_posixsubprocess|posix|nt|runpy|c?[pP]ickle|dill|shelve|marshal|code|codeop|commands|pexpect|sh|plumbum|fabric|invoke|paramiko|ftplib|smtplib|telnetlib|imaplib|poplib|webbrowser|winreg|fcntl|mmap|gc|pip|ensurepip|venv|xmlrpc|keyring|sqlite3)\b/,
  /\bimportlib\b(?!\s*\.\s*(?:metadata|resources|util)\b)|\b(?:import_module|exec_module|load_module|run_module|run_path|SourceFileLoader)\b/,
  /\bimport\s+os\s+as\b|=\s*os\b(?!\s*\.)|[([]\s*os\s*[\])]|\bfrom\s+(?:os|shutil)\s+import\s+(?:\*|\()/,
  /\bos\s*\.\s*(?:system|popen|exec\w+|spawn\w+|posix_spawn\w*|fork\w*|unlink|rmdir|truncate|chmod|lchmod|chown|symlink|startfile|remove\w*|replace|rename\w*|open|write|link|kill\w*|putenv|set\w*id|dup2?|abort|mk\w+|p?write\w*|sendfile|environ\s*\[[^\]]{0,80}\]\s*=[^=])/,
  /\bfrom\s+(?:os|shutil)\s+import\s[\w ,]{0,200}\b(?:system|popen|exec\w*|spawn\w*|fork|remove\w*|unlink|rmdir|rename\w*|replace|rmtree|move|copy\w*|chmod|chown|kill|truncate|link|symlink|open|write)\b/,
  /\bshutil\s*\.\s*(?!which\b|disk_usage\b|get_terminal_size\b)|=\s*shutil\b(?!\s*\.)/,
  /(?<!\bplatform)\.\s*(?:system|popen|execv?[elp]{0,3}|spawn[lv]\w*|posix_spawn\w*|fork|forkpty|unlink|rmdir|rmtree|removedirs|renames|truncate|chmod|lchmod|chown|symlink|symlink_to|hardlink_to|link_to|startfile|copytree|urlretrieve|extractall|create_subprocess_\w+|subprocess_\w+|Popen|check_output|check_call|copyfile)\s*\(/,
  [/\bpathlib\b/, /\.\s{0,9}(?:rename|replace|touch|mkdir)\s{0,9}\(/],
  /\bfileinput\b|\bunsafe_load\b|\bLoader\s{0,9}=\s{0,9}(?:yaml\s{0,9}\.\s{0,9})?(?:Unsafe)?Loader\b/,
];

const JAVASCRIPT: readonly Sign[] = [
  /\b(?:child_process|worker_threads|inspector|repl|dgram|node-pty|shelljs|execa|zx|cross-spawn|rimraf|del|fs-extra|ssh2|vm2?|cluster)["'`]/,
  /\b(?:node:)?(?:net|tls|module|process)["'`]\s*\)/,
  /(?<![\w"'])eval\b(?!["'])|\bFunction\s*\(|\bnew\s+Function\b|\.\s*constructor\b|\bReflect\b|\bWebAssembly\b/,
  /\brequire\b(?!\s*\(\s*["'`][^"'`$+]*["'`]\s*\)|\s*\.\s*resolve|["'])|\bimport\s*\(\s*(?!["'][^"':]*["']\s*\)|["']node:)/,
  /\b(?:global|globalThis|process|window|self|this|Deno|Bun)\s{0,9}(?:\?\.\s{0,9})?\[|\]\s{0,9}(?:\?\.\s{0,9})?[(`]/,
  /\bprocess\s*\.\s*(?:binding|dlopen|kill|_linkedBinding|mainModule|getBuiltinModule|chdir|setuid|setgid)\b|=\s*process\b(?!\s*\.)/,
  /\b(?:rm|rmdir|unlink|rename|truncate|ftruncate|chmod|fchmod|chown|symlink|link|cp|copyFile|open|mkdtemp|write|writev|utimes)Sync\b|\bcreateWriteStream\b|\b(?:exec|spawn|execFile)Sync\b|\bcreateRequire\b/,
  [/\bfs\b/, /[.{,\s](?:rm|rmdir|unlink|rename|truncate|chmod|chown|symlink|link|cp|copyFile|open)\s{0,9}[(},]/],
  /\bDeno\s*\.\s*(?:remove|run|Command|rename|truncate|chmod|chown|symlink|link|copyFile|open|create|kill|dlopen|write|make)/,
  /\bBun\s*\.\s*(?:\$|spawn|spawnSync|write|file|plugin|dlopen|connect|listen)|\\u\{?0{0,4}[4-7][0-9a-f]/i,
  /\b(?:import|from)\s*["'](?:https?|data|file):/,
];

const PERL: readonly Sign[] = [
  /`|\bqx\b|\b(?:system|exec|readpipe)\b\s*[({"'$@[\w]|\beval\b|\bsyscall\b|\bfork\b|\bkill\s*[('"\w$]/,
  /\b(?:unlink|rename|rmdir|truncate|chmod|chown|symlink|sysopen|dbmopen|mkfifo)\b|\blink\s*\(|\brequire\b|\bdo\s*[("'$]/,
  /\bopen\b(?!\s{0,9}\(?\s{0,9}(?:my\s{1,9})?[$\w]{1,40}\s{0,9},\s{0,9}["']<[^"'|>]{0,80}["'])/,
  /\b(?:IO::|LWP|HTTP::|Net::|IPC::|File::(?:Path|Copy|Temp|Find|Slurp)|Path::Tiny|Socket|Inline|DynaLoader|XSLoader|POSIX::(?:system|exec|open|remove|rename|unlink))\b|\bsocket\s*\(/,
  /&\s*[{$]|->\s*[$(]|\*\s*\{|\(\?\??\{|[/#|}!,][a-z]{0,8}e[a-z]{0,8}e[a-z]{0,8}\b/,
];

const RUBY: readonly Sign[] = [
  /`|%x|\b(?:system|exec|spawn|fork|syscall|eval|instance_eval|class_eval|module_eval|instance_exec|binding|send|__send__|public_send|const_get|define_method|load|autoload|trap|at_exit)\b\s*[("'\s:[{]/,
  /\b(?:popen\w*|Open3|PTY|Kernel|Process|Fiddle|FileUtils|ObjectSpace|Marshal|DRb|Socket|TCPSocket|TCPServer|UDPSocket|UNIXSocket|Pathname|Tempfile|RubyVM|TOPLEVEL_BINDING)\b|open-uri|URI\s*\.\s*open|\bmethod\s*\(/,
  /\bfileutils\b|\bopen3\b|net\/(?:ssh|ftp|smtp|telnet)|(?<![\w.])sh\s{0,9}[("']/,
  /(?<![.\w])open\s*[( ]|\b(?:File|IO|Dir)\s*\.\s*(?:delete|unlink|rename|open|new|chmod|chown|lchown|symlink|link|truncate|binwrite|sysopen|rmdir|mkfifo|send|method)\b|=\s*(?:File|Dir|IO)\b(?!\s*[.:])/,
];

const PHP: readonly Sign[] = [
  /`|\b(?:system|exec|shell_exec|passthru|popen|proc_open|pcntl_\w+|eval|assert|create_function|call_user_func\w*|unlink|rmdir|rename|copy|fopen|fwrite|fputs|file_put_contents|move_uploaded_file|chmod|chown|chgrp|symlink|link|mail|fsockopen|pfsockopen|stream_socket_\w+|dl|putenv|ini_set|posix_\w+|array_map|array_filter|usort|uasort|register_shutdown_function|ob_start|unserialize|extract|parse_str)\s*\(/,
  /\$\w+\s*\(|\$\s*[{$]|\]\s*\(|\)\s*\(|\bnew\s+\$|\bReflection\w+/,
  /\b(?:include|require)(?:_once)?\b(?!\s{0,9}\(?\s{0,9}["']vendor\/)/,
];

const GO: readonly Sign[] = [
  /"os\/exec"|"syscall"|"unsafe"|"plugin"|"net(?:\/\w+)*"|golang\.org\/x\/sys|\bos\s*\.\s*(?:Remove\w*|Rename|WriteFile|Create|OpenFile|Chmod|Chown|Symlink|Link|Truncate|StartProcess)\b|import\s+"C"/,
];

const ASKS = { python: PYTHON, javascript: JAVASCRIPT, perl: PERL, ruby: RUBY, php: PHP, go: GO };

const NETWORK = {
  python:
    /\b(?:requests|httpx|session|client)\s*\.\s*(?:get|post|put|patch|delete|request|head|stream)\s*\(|\burlopen\s*\(|\bhttp\s*\.\s*client\b|\b(?:aiohttp|urllib3|websockets?)\b|\bfrom\s+(?:requests|httpx)\s+import/,
  javascript:
    /\bfetch\s*\(|\bhttps?["'`]\s*\)|\bfrom\s*["'](?:node:)?https?["']|\b(?:axios|got|undici|node-fetch|superagent|ws)["'`]|\b(?:WebSocket|XMLHttpRequest)\b/,
  perl: /https?:\/\//,
  ruby: /net\/http|Net::HTTP|\b(?:Faraday|HTTParty|RestClient|Excon)\b/,
  php: /\bcurl_|file_get_contents\s*\(\s*["']https?:/,
  go: /https?:\/\//,
};

/** What is not for other machines: variables, files, what was typed in. */
const SECRETS =
  /environ|getenv|\.env\b|\bENV\b|open\s*\(|read(?:File|_text|_bytes)|File\.read|expanduser|homedir|Path\.home|stdin|STDIN|getpass|netrc|\/etc\/|\.ssh|\.aws|id_rsa|credentials|file_get_contents\s*\(\s*["'](?!https?:)/;

const isLoopback = (text: string) => {
  const hosts = text.match(/\b(?:https?|wss?):\/\/[^\s"'`/)]*/g) ?? [];
  return (
    hosts.length > 0 && hosts.every((host) => /^\w+:\/\/(?:localhost|127\.[0-9.]+|\[::1\])(?::[0-9]+)?$/.test(host))
  );
};

/** A string, and then more arguments: `writeFile("out.json", …`. */
const TARGET = /^\s*["'`]([^"'`$+\n]+)["'`]\s*,/;

/** The files that calls of this kind name; null when one is not named by a plain string. */
function targetsOf(text: string, call: RegExp): readonly string[] | null {
  const found: string[] = [];
  for (const match of text.matchAll(call)) {
    const target = TARGET.exec(text.slice(match.index + match[0].length, match.index + match[0].length + 300))?.[1];
    if (target === undefined) return null;
    found.push(target);
  }
  return found;
}

const namedWrites = (text: string) =>
  targetsOf(text, /\b(?:(?:write|append|output)(?:File|Json|JSON)(?:Sync)?|(?:File|IO)\s*\.\s*write)\s*\(?/g);

const WRITE_MODE = /^["'](?=[^"']*[wax+])[rwaxbtU+]{1,4}["']$/;

function pythonWrites(text: string): readonly string[] | null {
  const found: string[] = [];
  for (const match of text.matchAll(/\b(open|write_text|write_bytes)\s*\(/g)) {
    const target = match[1] === "open" ? openedForWriting(text, match.index) : pathWritten(text, match.index);
    if (target === null) return null;
    if (target !== "") found.push(target);
  }
  return found;
}

const LITERAL = /^[rbu]?["']([^"'\n]*)["']$/;

/** The name that `open` is given for writing; "" when it reads, null when that cannot be told. */
function openedForWriting(text: string, at: number): string | null {
  const args = argumentsAt(text, text.indexOf("(", at));
  if (args === null) return null;
  const named = args.map((arg) => arg.replace(/^mode\s*=\s*/, ""));
  const isMethod =
    text[at - 1] === "." && !/\b(?:io|codecs|gzip|bz2|lzma|builtins)\.$/.test(text.slice(Math.max(0, at - 10), at));
  const [first = "", second = "'r'"] = named;
  if (isMethod) return named.some((arg) => WRITE_MODE.test(arg)) ? null : "";
  const given = named.slice(1).filter((arg) => !/^\w+\s*=/.test(arg));
  if (named.some((arg, index) => index > 0 && WRITE_MODE.test(arg))) return LITERAL.exec(first)?.[1] ?? null;
  return given.length === 0 || LITERAL.test(second) ? "" : null;
}

const pathWritten = (text: string, at: number): string | null =>
  /\bPath\s*\(\s*["']([^"'\n]{1,200})["']\s*\)\s*\.\s*$/.exec(text.slice(Math.max(0, at - 240), at))?.[1] ?? null;

const MAX_ARGUMENT_CHARS = 400;

/** The arguments of a call, cut at its own commas; null when its end is not near. */
function argumentsAt(text: string, open: number): readonly string[] | null {
  const args: string[] = [];
  let depth = 0;
  let quote = "";
  let from = open + 1;
  for (let at = open; at < text.length && at < open + MAX_ARGUMENT_CHARS; at++) {
    const char = text[at] ?? "";
    if (quote !== "") {
      if (char === "\\") at++;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if ("([{".includes(char)) depth++;
    else if (")]}".includes(char)) {
      depth--;
      if (depth > 0) continue;
      args.push(text.slice(from, at).trim());
      return args.filter((arg) => arg !== "");
    } else if (char === "," && depth === 1) {
      args.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return null;
}
