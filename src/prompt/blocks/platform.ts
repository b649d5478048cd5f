// Where the answer is read. Platforms without a hint get none.

const HINTS: Readonly<Record<string, string>> = {
  cli: "You are a CLI agent: your answers are read in a terminal. Prefer plain text over Markdown. There is no way to attach files here: never write `MEDIA:` tags, give absolute paths instead. Scheduled jobs created here deliver to files only, unless `deliver` names a messaging platform.",
  tui: "You are read in a terminal interface; keep Markdown simple. There is no way to attach files here: give absolute paths. Scheduled jobs created here deliver to files only, unless `deliver` names a messaging platform.",
};

export function platformHint(platform: string): string | null {
  return HINTS[platform.toLowerCase()] ?? null;
}
