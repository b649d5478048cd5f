// Bytes of a text file. UTF-8, or UTF-16 where its mark says so; anything else is not guessed at.

/** With LF line ends and without the mark at its beginning; null when it is no text we can be sure of. */
export function decodeText(bytes: Uint8Array): string | null {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
  try {
    // The mark is kept by the decoder and removed here, once: a second one is for the scanner to see.
    const text = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes);
    return normaliseNewlines(text.startsWith("\ufeff") ? text.slice(1) : text);
  } catch {
    return null;
  }
}

export function normaliseNewlines(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}
