/** What a user allowed for the rest of a conversation. Kept in memory only and gone when the conversation ends. */
export interface SessionApprovals {
  allows(sessionKey: string, key: string): boolean;
  allow(sessionKey: string, key: string): void;
  /** Nothing is asked in this conversation. */
  isYolo(sessionKey: string): boolean;
  setYolo(sessionKey: string, on: boolean): void;
  /** The approving model said no so often in a row that the user is asked instead. */
  isJudgeDistrusted(sessionKey: string): boolean;
  noteJudgement(sessionKey: string, verdict: "approve" | "deny" | "escalate"): void;
  clear(sessionKey: string): void;
}

const MAX_DENIALS = 3;

export function createSessionApprovals(): SessionApprovals {
  const allowed = new Map<string, Set<string>>();
  const yolo = new Set<string>();
  const denials = new Map<string, number>();
  return {
    allows: (sessionKey, key) => allowed.get(sessionKey)?.has(key) ?? false,
    allow: (sessionKey, key) => {
      const keys = allowed.get(sessionKey) ?? new Set();
      allowed.set(sessionKey, keys.add(key));
    },
    isYolo: (sessionKey) => yolo.has(sessionKey),
    setYolo: (sessionKey, on) => {
      if (on) yolo.add(sessionKey);
      else yolo.delete(sessionKey);
    },
    isJudgeDistrusted: (sessionKey) => (denials.get(sessionKey) ?? 0) >= MAX_DENIALS,
    noteJudgement: (sessionKey, verdict) => {
      if (verdict === "deny") denials.set(sessionKey, (denials.get(sessionKey) ?? 0) + 1);
      else denials.delete(sessionKey);
    },
    clear: (sessionKey) => {
      denials.delete(sessionKey);
      allowed.delete(sessionKey);
      yolo.delete(sessionKey);
    },
  };
}
