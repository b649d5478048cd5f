// What the tests of the busy screen share: a model whose answer depends on what was said last.
import type { RecordedRequest, Reply } from "./model-server/script.ts";
import type { ModelServer } from "./model-server/server.ts";

/** The hints for newcomers were given: they would stand between what a test looks for. */
export const SEEN = "onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n";

type Replies = Readonly<Record<string, (request: RecordedRequest) => Reply | Promise<Reply>>>;

/** What the newest message says, with the role in front of it. */
export function newest(request: RecordedRequest): string {
  const { role, content } = request.body.messages.at(-1);
  return `${role}: ${typeof content === "string" ? content : JSON.stringify(content)}`;
}

/** The first key that the newest message contains decides; side calls are answered with a word. */
export function answerBy(server: ModelServer, replies: Replies): void {
  server.otherwise((request) => {
    const said = newest(request);
    const key = Object.keys(replies).find((one) => said.includes(one));
    return (key !== undefined && replies[key]?.(request)) || { text: "ok" };
  });
}

export const askedWith = (server: ModelServer, words: string) =>
  server.requests.filter((request) => newest(request).includes(words));
