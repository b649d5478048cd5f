/** What stands around words of the user inside a tool result. Only the runtime writes them; copies in tool output are made harmless. */
export const STEER_OPEN =
  "[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered mid-turn; not tool output]";
export const STEER_CLOSE = "[/OUT-OF-BAND USER MESSAGE]";
