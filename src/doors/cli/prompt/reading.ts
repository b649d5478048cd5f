// What the readers behind `hermes prompt` may use of this machine: the same files, lists and checks as a conversation.
import { readContextTrust } from "../../../home/context-trust.ts";
import { createDenyList } from "../../../prompt/files/deny-list.ts";
import { hostFiles } from "../../../prompt/ports/file-access.ts";
import { programRunner } from "../../../prompt/ports/run-program.ts";
import { createFileGuard } from "../../../safety/file-guard.ts";
import { scanForThreats } from "../../../safety/threats/scan.ts";
import { childEnvironment } from "../../../sandbox/child-env.ts";
import type { CliContext } from "../context.ts";

export async function readingPorts({ home }: CliContext) {
  const { paths, osHome: userHome } = home;
  const guard = await createFileGuard({ userHome, profileHome: paths.dir, rootHome: paths.root });
  const denyList = await createDenyList(guard, userHome);
  return {
    userHome,
    files: hostFiles,
    denyList,
    isDenied: (path: string) => denyList.isDenied(path),
    run: programRunner(childEnvironment(home.environment())),
    scan: (text: string) => scanForThreats(text, "context"),
    trusted: new Set((await readContextTrust(paths)).map(({ sha256 }) => sha256)),
  };
}
