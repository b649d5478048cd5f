// Files that are open in the user's editor: what stands there counts, saved or not, and what is written appears there at once.
import { createHash } from "node:crypto";
import { messageOf } from "../../kit/errors.ts";
import type { EnvironmentFiles } from "../../sandbox/environment.ts";
import type { EditorFiles } from "../toolset/context.ts";

/** No editor holds larger ones as text. */
const MOST_BYTES = 10 * 1024 * 1024;

/**
 * The files of an environment with those of an editor laid over them, for one call. `confined`: commands run in a sandbox and could exchange
 * a folder under the editor's hands; there it writes only what it holds unsaved.
 */
export function withEditor(files: EnvironmentFiles, editor: EditorFiles, { confined }: { readonly confined: boolean }) {
  /** An editor may format what it saves; for this call it holds what it was given. */
  const written = new Map<string, string>();
  const textAt = async (path: string): Promise<string | null> => {
    const own = written.get(path);
    if (own !== undefined) return own;
    if (!editor.covers(path)) return null;
    const facts = await files.facts(path);
    if (facts?.type !== "file" || facts.size > MOST_BYTES) return null;
    return editor.read(path).catch(() => null); // not a text of the editor's: the disk is asked
  };
  const isUnsaved = async (path: string): Promise<boolean> => {
    const text = await textAt(path);
    return text !== null && text !== (await files.read(path)).toString("utf8");
  };
  const layered: EnvironmentFiles = {
    ...files,
    async facts(path) {
      const facts = await files.facts(path);
      const text = facts?.type === "file" ? await textAt(path) : null;
      if (!facts || text === null) return facts;
      const version = `editor:${createHash("sha256").update(text).digest("hex").slice(0, 24)}`;
      return { ...facts, size: Buffer.byteLength(text), version };
    },
    async *chunks(path, signal) {
      const text = await textAt(path);
      if (text === null) yield* files.chunks(path, signal);
      else yield Buffer.from(text);
    },
    async read(path) {
      const text = await textAt(path);
      return text === null ? files.read(path) : Buffer.from(text);
    },
    async write(path, data) {
      if (!editor.covers(path) || (confined && !(await isUnsaved(path)))) await files.write(path, data);
      else {
        try {
          await editor.write(path, data);
        } catch (error) {
          throw new Error(`The editor did not write ${path}: ${messageOf(error)}`);
        }
      }
      if (editor.covers(path)) written.set(path, data);
    },
    async remove(path) {
      written.delete(path);
      await files.remove(path);
    },
    async move(from, to) {
      written.delete(from);
      written.delete(to);
      await files.move(from, to);
    },
  };
  return layered;
}
