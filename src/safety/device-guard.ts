// Files that never end, wait for a keyboard, or show a process from inside.
import { followLinks } from "./paths.ts";

const DEVICES = /^\/dev\/(?:zero|random|urandom|full|stdin|tty|console|stdout|stderr|fd\/[012])$/;
const PROCESS =
  /^\/proc\/[^/]+\/(?:task\/[^/]+\/)?(?:fd\/[012]|environ|cmdline|maps|smaps[^/]*|numa_maps|mem|auxv|pagemap)$/;

export function isForbiddenDevice(path: string): boolean {
  return DEVICES.test(path) || PROCESS.test(path);
}

/** Nothing there is a file that could be written whole; `/dev/shm` is memory with files in it. */
export function isKernelPlace(path: string): boolean {
  return /^\/(?:dev|proc|sys)\/(?!shm\/)/.test(path);
}

/** The forbidden device a path leads to, links followed one by one; null if it leads to none. */
export async function findForbiddenDevice(
  path: string,
  follow: (path: string) => Promise<readonly string[]> = followLinks,
): Promise<string | null> {
  // As written first: `/dev/stdin` is refused without being touched.
  if (isForbiddenDevice(path)) return path;
  return (await follow(path)).find(isForbiddenDevice) ?? null;
}
