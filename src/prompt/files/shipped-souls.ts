// SHA-256 of every text that this program ever put into a new SOUL.md (LF, stripped). A file that is still one of them gets the identity
// of today's program. Add a line whenever the default changes; never remove one. Texts of other programs are their user's choice.

export const SHIPPED_SOULS: readonly string[] = [
  "05d328538929a28532a468a68991936e2bcae01586a25ba90e931502bd786741", // 0.1.0
];
