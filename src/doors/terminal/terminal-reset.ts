// Whatever happened, the user's terminal must be as it was.
const RESET = [
  "\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l", // mouse
  "\u001b[?1004l", // focus reports
  "\u001b[?2004l", // bracketed paste
  "\u001b[?1047l", // alternate screen; 1049 would also move the cursor
  "\u001b[<u\u001b[>4;0m", // kitty and modifyOtherKeys
  "\u001b[0m\u001b[?25h", // attributes, cursor
].join("");

export function resetTerminal(stream: NodeJS.WriteStream): void {
  if (stream.isTTY) stream.write(RESET);
}
