// What every file tool needs before it touches a file: the path, the guards, what the agent already knows.
import { join, posix } from "node:path";
import { findForbiddenDevice, isKernelPlace } from "../../safety/device-guard.ts";
import { createFileGuard, type FileGuard } from "../../safety/file-guard.ts";
import { expandPath } from "../../safety/paths.ts";
import { fileMarks } from "../../safety/redact/marks.ts";
import { redactPrivateKeys } from "../../safety/redact/private-keys.ts";
import { FileActivity, fileActivity } from "../file-activity.ts";
import type { ToolContext } from "../toolset/context.ts";
import { type FileAccess, localFiles } from "./access.ts";

export interface Workspace {
  readonly files: FileAccess;
  readonly guard: FileGuard;
  readonly activity: FileActivity;
  /** Absolute, relative to where the environment stands. */
  absolute(path: string): string;
  /** Null, or why this file may not be read. */
  refuseRead(path: string): Promise<string | null>;
  /** Null, or why this file may not be written; may ask the user. */
  refuseWrite(path: string, crossProfile: boolean): Promise<string | null>;
  /** Text of a file as the model may see it, line for line. */
  redact(text: string, path: string): string;
}

export async function openWorkspace(ctx: ToolContext): Promise<Workspace> {
  const { environment } = ctx;
  const elsewhere = environment.files !== undefined;
  const files = followingOnce(environment.files ?? localFiles);
  // Where commands have a home of their own, the user's is protected all the same.
  const userHome = ctx.env?.("HOME") ?? environment.home;
  const guard = await createFileGuard({
    userHome: environment.home,
    otherUserHomes: [userHome],
    profileHome: ctx.home.dir,
    rootHome: ctx.home.root,
    // Inside a container or on another machine things are laid out as they are here.
    otherHermesHomes: [posix.join(environment.home, ".hermes"), join(userHome, ".hermes")],
    ...(elsewhere && { follow: files.follow }),
    ...(ctx.writeSafeRoots && { writeSafeRoots: ctx.writeSafeRoots }),
  });
  return {
    files,
    guard,
    activity: ctx.forScript ? new FileActivity() : ctx.state.of(fileActivity),
    absolute: (path) => expandPath(path, environment.cwd, environment.home, elsewhere ? posix : undefined),
    async refuseRead(path) {
      const device = await findForbiddenDevice(path, files.follow);
      if (device !== null)
        return `Cannot read ${path}: ${device} is a device or a window into a process; it never ends, waits for input or shows secrets.`;
      const verdict = await guard.canRead(path);
      return verdict.type === "deny" ? verdict.message : null;
    },
    async refuseWrite(path, crossProfile) {
      const device = await findForbiddenDevice(path, files.follow);
      if (device !== null) return `Cannot write ${path}: ${device} is a device.`;
      const kernel = isKernelPlace(path) ? path : (await files.follow(path)).find(isKernelPlace);
      if (kernel !== undefined)
        return `Cannot write ${path}: ${kernel} is no ordinary file but a part of the running system.`;
      const verdict = await guard.canWrite(path, { crossProfile });
      if (verdict.type === "deny") return verdict.message;
      if (verdict.type === "allow") return null;
      const outcome = await ctx.guard.decide(verdict.command, ctx.signal);
      return outcome.approved ? null : outcome.message;
    },
    redact: (text, path) =>
      ctx.redactFile ? ctx.redactFile(text, path) : ctx.redact(redactPrivateKeys(text, fileMarks)),
  };
}

/** What the guards were shown is what is then opened: each path is followed once in a call. */
function followingOnce(files: FileAccess): FileAccess {
  const known = new Map<string, Promise<readonly string[]>>();
  const follow = (path: string) => {
    const hops = known.get(path) ?? files.follow(path);
    known.set(path, hops);
    return hops;
  };
  return { ...files, follow, resolve: async (path) => (await follow(path)).at(-1) ?? path };
}
