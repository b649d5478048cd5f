import type { OpenAgent } from "../../agent/opened.ts";
import type { Config } from "../../home/config/schema.ts";
import { recap } from "../recap.ts";
import type { Transcript } from "./transcript.ts";

/** Shows what was said before. */
export function showRecap(conversation: OpenAgent, transcript: Transcript, display: Config["display"]): void {
  const { resumed, history } = conversation;
  if (!resumed) return;
  const origin = resumed.continuationOf ? ` (continuation of ${resumed.continuationOf})` : "";
  transcript.dim(`resumed ${resumed.title ?? resumed.id}${origin}, ${history.length} messages`);
  if (display.resume_display === "minimal") return;
  const { entries, olderExchanges } = recap(history, {
    exchanges: display.resume_exchanges,
    userChars: display.resume_max_user_chars,
    assistantChars: display.resume_max_assistant_chars,
    assistantLines: display.resume_max_assistant_lines,
    skipToolOnly: display.resume_skip_tool_only,
  });
  if (olderExchanges > 0) transcript.dim(`... ${olderExchanges} earlier exchange${olderExchanges === 1 ? "" : "s"}`);
  for (const entry of entries) {
    if (entry.who === "user") transcript.user(entry.text);
    else if (entry.who === "tools") transcript.dim(`┊ ${entry.text}`);
    else transcript.answer(entry.text);
  }
}
