import type { Environment } from "../sandbox/environment.ts";
import type { ResultStore } from "./toolset/results.ts";

/** Saves long results inside the environment, below its temp directory, one folder per session (call ids repeat between sessions). */
export function environmentResultStore(environment: Environment, sessionId: string): ResultStore {
  const folder = `${environment.tempDir}/hermes-results/${sessionId.replace(/[^A-Za-z0-9_.-]/g, "_").replace(/^\.+/, "_")}`;
  return {
    async save(fileName, text) {
      const path = `${folder}/${fileName}`;
      const files = environment.files ?? (await import("./files/access.ts")).localFiles;
      await files.makeDirectory(folder);
      await files.write(path, text);
      return path;
    },
  };
}
