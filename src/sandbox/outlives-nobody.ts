// Process groups of ours that must not outlive this process, whichever way it ends.
import { signalTree } from "./process-tree.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const alive = new Set<number>();
let watching = false;

/** The group is killed when this process ends: by itself, by a crash, or by a signal that nobody else takes care of. Returns how to let go of it. */
export function endWithUs(leader: number): () => void {
  alive.add(leader);
  watch();
  return () => void alive.delete(leader);
}

function watch(): void {
  if (watching) return;
  watching = true;
  process.on("exit", endAll);
  for (const signal of SIGNALS) {
    const onSignal = () => {
      // A door that listens as well closes what there is in its own time.
      if (process.listenerCount(signal) > 1) return;
      endAll();
      process.off(signal, onSignal);
      process.kill(process.pid, signal);
    };
    process.on(signal, onSignal);
  }
}

function endAll(): void {
  for (const leader of alive) signalTree(leader, [], "SIGKILL");
}
