import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { CheckpointStore } from "./store.ts";

/** The checkpoints of a home. Nothing is made on disk before the first one is taken. */
export function openCheckpoints(home: OpenHome, clock: Clock): CheckpointStore {
  return new CheckpointStore({
    directory: home.paths.at("checkpoints"),
    searchPath: home.env("PATH") ?? "",
    clock,
    limits: () => home.config().checkpoints,
    secrets: () => home.secrets(),
    except: [home.paths.dir, home.paths.root],
  });
}
