// Which files a shell command must not change without a question.
import { isBlockDevice } from "./hardline.ts";

/** Every spelling of a home directory that `placePath` may leave. */
const IN_HOME = /^(?:~|\/root|\/home\/[^/]+|\/users\/[^/]+)\/(.+)$/;

const START_FILES =
  /^(?:\.bashrc|\.bash_profile|\.bash_login|\.bash_logout|\.bash_aliases|\.profile|\.zshrc|\.zshenv|\.zprofile|\.zlogin|\.zlogout|\.kshrc|\.cshrc|\.tcshrc|\.config\/fish\/config\.fish)$/;

const CREDENTIALS =
  /^(?:\.(?:netrc|pgpass|npmrc|pypirc|git-credentials)$|\.(?:ssh|aws|gnupg|kube|docker|azure)(?:\/|$)|\.config\/(?:gh|gcloud)(?:\/|$))/;

const HERMES_FILES = /^~\/\.hermes\/(?:profiles\/[^/]+\/)?(?:\.env|config\.yaml|auth\.json|\.anthropic_oauth\.json)$/;

export const isSystemConfig = (path: string) =>
  /^\/(?:private\/)?etc(?:\/|$)/.test(path) || isPrivate(path) || isBoot(path);

const isPrivate = (path: string) => /^\/private\/(?:var|tmp|home)(?:\/|$)/.test(path);
const isBoot = (path: string) => /^\/(?:boot|usr\/lib\/systemd)(?:\/|$)/.test(path);

export const isHermesFile = (path: string) => HERMES_FILES.test(path);

export function isCredentialOrStartFile(path: string): boolean {
  const rest = IN_HOME.exec(path)?.[1];
  return rest !== undefined && (START_FILES.test(rest) || CREDENTIALS.test(rest));
}

export const isSystemFile = (path: string) =>
  isSystemConfig(path) || isBlockDevice(path) || isCredentialOrStartFile(path) || isHermesFile(path);

/** `.env`, `.env.local`, `config.yaml` of whatever project. */
export const isProjectSetting = (path: string) => /(?:^|\/)(?:\.env(?:\.[^/]+)?|config\.yaml)$/.test(path);
