// Open questions of this process, where other processes of the home can answer them.
import type { ApprovalTable } from "../safety/approval-store.ts";
import type { SessionStore } from "../sessions/store.ts";

export function sharedQuestions(store: () => Promise<SessionStore>, redact: (text: string) => string): ApprovalTable {
  return {
    async insert({ id, sessionKey, sessionId, question, askedAt, expiresAt }) {
      const payload = JSON.parse(JSON.stringify(question), (_key, value) =>
        typeof value === "string" ? redact(value) : value,
      );
      const seconds = (ms: number | null) => (ms === null ? null : ms / 1000);
      const times = { askedAt: seconds(askedAt) ?? 0, expiresAt: seconds(expiresAt) };
      await (await store()).putQuestion({ id, sessionKey, sessionId, kind: question.kind, payload, ...times });
    },
    answerOf: async (id) => (await store()).answerTo(id),
    remove: async (id) => (await store()).removeQuestion(id),
  };
}
