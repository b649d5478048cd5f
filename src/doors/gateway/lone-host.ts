// A bot without a gateway: it sends, or is asked who it is, and nothing comes in. For `hermes send` and `hermes gateway setup`.
import type { CliContext } from "../cli-context.ts";
import type { AdapterHost, PlatformEntry } from "./contract.ts";
import { chatFiles } from "./media-in.ts";
import { loadPackage } from "./packages.ts";

export function loneHost(
  entry: PlatformEntry,
  option: AdapterHost["option"],
  { home, clock }: Pick<CliContext, "home" | "clock">,
): AdapterHost {
  const files = chatFiles(home, clock);
  return {
    ...{ clock, log: home.log.child(entry.name), option },
    receive: async (messages) => messages.map(() => false),
    changed: async () => undefined,
    pressed: async () => undefined,
    cursor: async () => null,
    knownChats: async () => [],
    keepFile: files.keepFile,
    download: files.download,
    package: (name, load) => loadPackage(entry, name, load, home),
    lost: () => undefined,
  };
}
