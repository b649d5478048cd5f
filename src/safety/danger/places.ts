// Which places the table of the file tools protects, as a rule asks about a path written on a command line.
import {
  covers,
  coversAnywhere,
  HERMES_PATHS,
  PROJECT_PATHS,
  type ProtectedPath,
  SHELL_SYSTEM_PATHS,
  SYSTEM_PATHS,
  USER_PATHS,
} from "../file-guard.ts";
import { isBlockDevice } from "../hardline.ts";
import { matchGlob } from "../paths.ts";
import { SECRET_PLACES } from "../secret-places.ts";

/** Every spelling of a home directory that `canonicalPath` may leave. */
const IN_HOME = /^(?:~|\/root|\/home\/[^/]+|\/users\/[^/]+)\/(.+)$/;
const IN_HERMES_HOME = /^~\/\.hermes\/(?:profiles\/[^/]+\/)?(.+)$/;

const isLater = ({ holds }: ProtectedPath) => holds === "later start";
const HERMES = HERMES_PATHS.filter(({ write }) => write !== "allow");
const HERMES_SECRETS = HERMES_PATHS.filter(({ read }) => read === "deny");
const SYSTEM = [
  ...SYSTEM_PATHS.filter((place) => place.type === "directory" && !isLater(place)),
  ...SHELL_SYSTEM_PATHS,
];
const USER = USER_PATHS.filter((place) => !isLater(place));
const USER_LATER = USER_PATHS.filter(isLater);
const SYSTEM_LATER = SYSTEM_PATHS.filter(isLater);

type Place = Pick<ProtectedPath, "path" | "type">;

const isCovered = (path: string | undefined, places: readonly Place[]) => {
  if (path === undefined) return false;
  const match = /[*?[]/.test(path) ? coversByGlob : covers;
  return places.some((place) => match(place, path));
};

/** `~/.ss?/authorized_keys`: the shell finds the file. */
function coversByGlob({ path, type }: Place, candidate: string): boolean {
  const wanted = path.toLowerCase().split("/");
  const given = candidate.split("/");
  if (given.length < wanted.length || (type === "file" && given.length > wanted.length)) return false;
  return wanted.every((part, index) => {
    const glob = given[index] ?? "";
    // As in a shell, `*` leaves hidden files alone.
    return glob === part || (glob.startsWith(".") === part.startsWith(".") && matchGlob(glob, part));
  });
}

export const isSystemConfig = (path: string) => isCovered(path, SYSTEM);

export const isHermesFile = (path: string) => isCovered(IN_HERMES_HOME.exec(path)?.[1], HERMES);

export const isCredentialOrStartFile = (path: string) => isCovered(IN_HOME.exec(path)?.[1], USER);

export const isSystemFile = (path: string) =>
  isSystemConfig(path) || isBlockDevice(path) || isCredentialOrStartFile(path) || isHermesFile(path);

/** `.env`, `.env.local`, `config.yaml` of whatever project; a template of one holds no secret and is read by nobody. */
export const isProjectSetting = (path: string) =>
  /(?:^|\/)(?:\.env(?:\.[^/]+)?|config\.yaml)$/.test(path) &&
  !/(?:^|\/)\.env\.(?:[\w-]+\.)?(?:example|sample|template|dist|tpl|defaults?)(?:\.[^/]+)?$/.test(path);

/** Python runs a line of a `.pth` that begins with `import`, whatever program it was started for. */
const PYTHON_START = /(?:(?:site|dist)-packages|^\$\([^/]*\))\/[^/]+\.pth$/;

const isLaterPlace = (path: string) =>
  PYTHON_START.test(path) ||
  isCovered(IN_HOME.exec(path)?.[1], USER_LATER) ||
  PROJECT_PATHS.some((place) => coversAnywhere(place, path));

export const runsLater = (path: string) => isLaterPlace(path) || isCovered(path, SYSTEM_LATER);

/** A link gives these a second name, under which no later check would know them. */
export const isLinkedAway = (path: string) => isLaterPlace(path) || isCredentialOrStartFile(path);

export const isOwnSecret = (path: string) =>
  isCovered(IN_HERMES_HOME.exec(path)?.[1], HERMES_SECRETS) || /^\/proc\/(?!self\/)[^/]+\/environ$/.test(path);

const PUBLIC = /\.pub$|\/known_hosts$|\/\.ssh\/config$/;
const SECRET_NAME =
  /(?:^|\/)(?:\.env(?:\.(?:local|development|production|test|staging))?|id_(?:rsa|ed25519|ecdsa|dsa)|[^/]*\.(?:pem|key|kdbx|p12|pfx|jks)|credentials(?:\.json)?|service-account[^/]*\.json|wallet\.dat|\.htpasswd)$|^\/etc\/shadow$/;

/** By its name alone, wherever it lies: what one does not put into a repository. */
export const isKeyFile = (path: string) =>
  /(?:^|\/)(?:\.env(?:\.(?:local|production|prod|staging))?|id_(?:rsa|ed25519|ecdsa|dsa)|[^/]*\.(?:key|kdbx|p12|pfx|jks|ppk|gpg)|(?![^/]*(?:ca|cert|chain|pub))[^/]*\.pem|credentials(?:\.json)?|service-account[^/]*\.json|client_secret[^/]*\.json|\.netrc|\.pgpass|\.htpasswd|\.git-credentials|\.vault-token|terraform\.tfvars|kubeconfig|secrets?\.(?:ya?ml|json|toml|env))$/.test(
    path,
  ) || isCovered(IN_HOME.exec(path)?.[1], SECRET_PLACES);

/** Of a user's home, and not for others to see. */
export const isHomeKey = (path: string) => !PUBLIC.test(path) && isCovered(IN_HOME.exec(path)?.[1], SECRET_PLACES);

export const isCredential = (path: string) =>
  !PUBLIC.test(path) &&
  (isCovered(IN_HOME.exec(path)?.[1], SECRET_PLACES) || SECRET_NAME.test(path) || isOwnSecret(path));
