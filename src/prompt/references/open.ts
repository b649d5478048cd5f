// `@file:`, `@diff` and the like in what a user typed, with the files and programs of this machine behind them.
import type { OpenHome } from "../../home/open.ts";
import { rulesAbove } from "../../tools/files/search.ts";
import { readingPorts } from "../reading-ports.ts";
import { type Expansion, expandReferences, expandsReferences, isFitForRemote } from "./expand.ts";

interface TypedContext {
  readonly home: OpenHome;
  readonly cwd: string;
  readonly platform: string;
  /** The model's window in tokens; 0 when it is not known. */
  readonly contextLength: number;
  /** The text of a page, fenced as untrusted. Absent: `@url:` says that pages cannot be fetched. */
  readPage?(url: string): Promise<string>;
}

/** The message with what it points at; null where references are plain text. Never rejects for what a reference points at. */
export async function attachReferences(text: string, context: TypedContext): Promise<Expansion | null> {
  const { home, cwd, platform, contextLength, readPage } = context;
  if (!expandsReferences(platform, home.config().context_references)) return null;
  const { userHome, files, denyList, run } = await readingPorts(home);
  const advice: string[] = [];
  const readAndJudge = async (url: string, read: NonNullable<TypedContext["readPage"]>) => {
    const page = await read(url);
    const { adviseOn, describeAdvice } = await import("../threat-advice.ts");
    const found = await adviseOn(page);
    if (found?.risk === "high") advice.push(describeAdvice(`@url:${url}`, found));
    return page;
  };
  const options = {
    ...{ cwd, userHome, contextLength, files, denyList, run, ignoreRules: rulesAbove },
    readPage: readPage && ((url: string) => readAndJudge(url, readPage)),
  };
  const remote = !expandsReferences(platform, { remote: false });
  if (remote && !(await isFitForRemote(options))) return null;
  const expansion = await expandReferences(text, options);
  if (expansion.references.length === 0) return null;
  return { ...expansion, warnings: [...expansion.warnings, ...advice] };
}
