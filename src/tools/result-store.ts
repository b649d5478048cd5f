import type { Environment } from "../sandbox/environment.ts";
import { quote } from "../sandbox/quote.ts";
import type { ResultStore } from "./result-size.ts";

/** Saves long results inside the environment, below its temp directory, one folder per session (call ids repeat between sessions). */
export function environmentResultStore(environment: Environment, sessionId: string): ResultStore {
  const folder = `${environment.tempDir}/hermes-results/${sessionId.replace(/[^A-Za-z0-9_.-]/g, "_").replace(/^\.+/, "_")}`;
  return {
    async save(fileName, text) {
      const path = `${folder}/${fileName}`;
      const { exitCode, output } = await environment.execute(
        `umask 077 && mkdir -p -- ${quote(folder)} && cat > ${quote(path)}`,
        { stdin: text, timeoutMs: 30_000, signal: AbortSignal.timeout(30_000), stateless: true, cwd: "/" },
      );
      if (exitCode !== 0) throw new Error(output.trim() || `exit code ${exitCode}`);
      return path;
    },
  };
}
