// SHA-256 of every text that ever stood in a SOUL.md nobody had edited (LF, stripped). A file that is still one of them gets the identity
// of today's program. Add a line whenever the default changes; never remove one.

export const SHIPPED_SOULS: readonly string[] = [
  "05d328538929a28532a468a68991936e2bcae01586a25ba90e931502bd786741", // 0.1.0
  "2765a846e1bb371d78d3b93b403dfb0f8d1ba1a9895edb5f608367abfe81194d", // the Python original
];
