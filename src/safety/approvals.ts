/** What a user allowed for the rest of a conversation. Kept in memory only and gone when the conversation ends. */
export interface SessionApprovals {
  allows(sessionKey: string, key: string): boolean;
  allow(sessionKey: string, key: string): void;
  /** Nothing is asked in this conversation. */
  isYolo(sessionKey: string): boolean;
  setYolo(sessionKey: string, on: boolean): void;
  clear(sessionKey: string): void;
}

export function createSessionApprovals(): SessionApprovals {
  const allowed = new Map<string, Set<string>>();
  const yolo = new Set<string>();
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
    clear: (sessionKey) => {
      allowed.delete(sessionKey);
      yolo.delete(sessionKey);
    },
  };
}
