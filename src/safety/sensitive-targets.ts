// Which files a shell command must not change without a question.
import { isBlockDevice } from "./hardline.ts";
import {
  covers,
  HERMES_PLACES,
  type ProtectedPlace,
  SYSTEM_PLACES,
  SYSTEM_PLACES_OF_SHELLS,
  USER_PLACES,
} from "./protected-places.ts";

/** Every spelling of a home directory that `placePath` may leave. */
const IN_HOME = /^(?:~|\/root|\/home\/[^/]+|\/users\/[^/]+)\/(.+)$/;
const IN_HERMES_HOME = /^~\/\.hermes\/(?:profiles\/[^/]+\/)?(.+)$/;

const guarded = (places: readonly ProtectedPlace[]) => places.filter(({ write }) => write !== "allow");
const HERMES = guarded(HERMES_PLACES);
const SYSTEM = [...SYSTEM_PLACES.filter(({ type }) => type === "directory"), ...SYSTEM_PLACES_OF_SHELLS];

const isCovered = (path: string | undefined, places: readonly ProtectedPlace[]) =>
  path !== undefined && places.some((place) => covers(place, path));

export const isSystemConfig = (path: string) => isCovered(path, SYSTEM);

export const isHermesFile = (path: string) => isCovered(IN_HERMES_HOME.exec(path)?.[1], HERMES);

export const isCredentialOrStartFile = (path: string) => isCovered(IN_HOME.exec(path)?.[1], USER_PLACES);

export const isSystemFile = (path: string) =>
  isSystemConfig(path) || isBlockDevice(path) || isCredentialOrStartFile(path) || isHermesFile(path);

/** `.env`, `.env.local`, `config.yaml` of whatever project. */
export const isProjectSetting = (path: string) => /(?:^|\/)(?:\.env(?:\.[^/]+)?|config\.yaml)$/.test(path);
