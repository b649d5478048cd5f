// What readers of project files may use of this machine: its files behind the deny list, the scan, the user's trust, git.
import { readContextTrust } from "../home/context-trust.ts";
import type { OpenHome } from "../home/open.ts";
import { createFileGuard } from "../safety/file-guard.ts";
import { scanForThreats } from "../safety/threats/scan.ts";
import { childEnvironment } from "../sandbox/child-env.ts";
import { localFiles } from "../tools/files/access.ts";
import { createDenyList } from "./files/read.ts";
import { programRunner } from "./ports.ts";

export async function readingPorts(home: OpenHome) {
  const { paths, osHome } = home;
  const environment = childEnvironment(home.environment());
  const userHome = environment.HOME ?? osHome;
  const guard = await createFileGuard({ userHome, profileHome: paths.dir, rootHome: paths.root });
  const denyList = await createDenyList(guard, userHome);
  return {
    userHome,
    environment,
    files: localFiles,
    denyList,
    isDenied: (path: string) => denyList.isDenied(path),
    run: programRunner(environment),
    scan: (text: string) => scanForThreats(text, "context"),
    trusted: new Set((await readContextTrust(paths)).map(({ sha256 }) => sha256)),
  };
}
