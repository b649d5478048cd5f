// What signing in leaves behind, one server at a time: tokens, the registered client, what is known of the authority. All 0600.
import { chmod, mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";

export type OAuthFile = "tokens" | "client" | "meta";

const SUFFIX: Readonly<Record<OAuthFile, string>> = { tokens: ".json", client: ".client.json", meta: ".meta.json" };

export class OAuthFiles {
  readonly #dir: string;
  readonly #stem: string;

  constructor(dir: string, server: string) {
    this.#dir = dir;
    // A server's name is the user's; it must not lead out of the folder.
    this.#stem = server.replace(/[^\w.-]/gu, "_").replace(/^\.+/, "_");
  }

  path(file: OAuthFile): string {
    return join(this.#dir, `${this.#stem}${SUFFIX[file]}`);
  }

  /** Null when there is none or it cannot be read as JSON. */
  async read(file: OAuthFile): Promise<Record<string, unknown> | null> {
    try {
      const value: unknown = JSON.parse(await readFile(this.path(file), "utf8"));
      return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
    } catch {
      return null; // not there, or half a file of another program: signing in writes a new one
    }
  }

  async write(file: OAuthFile, value: object): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await chmod(this.#dir, 0o700);
    await writeFileAtomic(this.path(file), `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  }

  async remove(file: OAuthFile): Promise<void> {
    await rm(this.path(file), { force: true });
  }
}
