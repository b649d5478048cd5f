// The page behind an `@url:` that the user typed, read and fenced like the result of the web tools.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { sizeLimits } from "../tools/toolset/results.ts";
import { cutMiddle, readWebPage } from "../tools/web/extract.ts";
import { wrapUntrusted } from "./result-messages.ts";

interface PageReader {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly contextLength: number;
  readonly signal: AbortSignal;
}

/** Rejects with a sentence for the user. */
export async function readPageFor(url: string, { home, clock, contextLength, signal }: PageReader): Promise<string> {
  const { title, content } = await readWebPage(url, {
    config: home.config(),
    home: home.paths,
    clock,
    log: home.log.child("web"),
    signal,
    redact: home.redact,
    env: (name) => home.env(name),
  });
  const text = cutMiddle(
    home.redact(content),
    sizeLimits(contextLength).perResult,
    (left) => `[... ${left} characters left out ...]`,
  );
  return wrapUntrusted("web_extract", `${title === "" ? "" : `# ${title}\n`}${url}\n\n${text}`);
}
