// Where a path written on a command line points, as far as the line alone tells.

export interface Places {
  /** The resolved HERMES home; folded to `~/.hermes`. */
  readonly home: string;
  /** The resolved home of the user; folded to `~`. */
  readonly osHome: string;
}

/** One canonical spelling: `~` for the home, no `//`, `/./` or `x/..`, no slash at the end, lower case. */
export function placePath(written: string, cwd: string | null, places: Places): string {
  const path = expandHome(written);
  const anchored = isAnchored(path) || cwd === null ? path : `${expandHome(cwd)}/${path}`;
  // Collapsed before folding: `/home/x/../me` is `/home/me`.
  const plain = collapse(anchored).replace(PROCESS_ROOT, "/");
  return collapse(fold(fold(plain, places.home, "~/.hermes"), places.osHome, "~")).toLowerCase();
}

/** The root as a process sees it, which is the root. */
const PROCESS_ROOT = /^(?:\/proc\/(?:self|thread-self|[0-9]+)(?:\/task\/[0-9]+)?\/root(?=\/|$))+\/?/;

const isAnchored = (path: string) => /^[/~$\\]|^[A-Za-z]:/.test(path);

function expandHome(path: string): string {
  return path
    .replaceAll("\\", "/")
    .replace(/^\$\{?HERMES_HOME\}?(?=\/|$)/i, "~/.hermes")
    .replace(/^\$\{?HOME\}?(?=\/|$)/i, "~")
    .replace(/^~\+(?=\/|$)/, ".")
    .replace(/^~root(?=\/|$)/, "/root")
    .replace(/^~([a-z_][a-z0-9_.-]*)(?=\/|$)/i, "/home/$1");
}

/** A root or one-part directory is never folded: `/root` would hide every path below it. */
function fold(path: string, directory: string, name: string): string {
  const prefix = directory.replaceAll("\\", "/").replace(/\/+$/, "");
  if (prefix.split("/").filter(Boolean).length < 2) return path;
  const lower = path.toLowerCase();
  const wanted = prefix.toLowerCase();
  if (lower === wanted) return name;
  return lower.startsWith(`${wanted}/`) ? name + path.slice(prefix.length) : path;
}

function collapse(path: string): string {
  const absolute = path.startsWith("/");
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    const last = parts.at(-1);
    if (part !== "..") parts.push(part);
    else if (last !== undefined && last !== ".." && last !== "~") parts.pop();
    else if (!absolute) parts.push("..");
  }
  return (absolute ? "/" : "") + parts.join("/");
}
