// What is never copied: what can be made again, and what nobody should find a copy of.

/** Why a file that would belong to a checkpoint is not in it. */
export type LeftOutReason = "too large" | "holds a secret" | "cannot be read";

export interface LeftOut {
  readonly path: string;
  readonly why: LeftOutReason;
}

const FOLDERS: ReadonlySet<string> = new Set([
  ".git",
  ".hg",
  ".svn",
  ".jj",
  "node_modules",
  "bower_components",
  ".venv",
  "venv",
  "__pycache__",
  ".mypy_cache",
  ".pytest_cache",
  ".ruff_cache",
  ".tox",
  ".nox",
  ".gradle",
  ".terraform",
  ".cache",
  ".parcel-cache",
  ".turbo",
  ".next",
  ".nuxt",
  ".svelte-kit",
  ".idea",
]);

export function isSkippedFolder(name: string): boolean {
  return FOLDERS.has(name) || isRepositoryName(name);
}

/** git keeps nothing under this name, in whatever case. */
export function isRepositoryName(name: string): boolean {
  return /^\.git$/i.test(name);
}

const SECRET_NAME =
  /^(?:\.env(?:\..+)?|\.envrc|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx)|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|\.netrc|_netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|auth\.json|credentials(?:\.json)?|service[-_]account.*\.json)$/i;
const PATTERN_OF_ONE = /\.(?:example|sample|template|dist|defaults?)$/i;

/** A name that says "secret": such a file is not even opened. */
export function isSecretFile(name: string): boolean {
  return SECRET_NAME.test(name) && !PATTERN_OF_ONE.test(name);
}
