// From bytes to text. What a server says about the alphabet of a page is often missing and sometimes wrong.

/** A mark at the beginning decides, then the server's word, then the page's own, then what the bytes allow. */
export function decodeText(body: Uint8Array, contentType: string): string {
  const label = markOf(body) ?? charsetOf(contentType) ?? declaredIn(body);
  const named = label === undefined ? null : decoderFor(label);
  if (named) return named.decode(body);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return new TextDecoder("windows-1252").decode(body); // every byte means something there
  }
}

function markOf(body: Uint8Array): string | undefined {
  const [first, second, third] = body;
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return undefined;
}

const charsetOf = (text: string) => /charset\s*=\s*["']?\s*([\w.:-]+)/i.exec(text)?.[1];

/** In `<meta>` or an XML declaration near the beginning, which are plain ASCII in every alphabet in use. */
function declaredIn(body: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(body.subarray(0, 2048));
  const meta = /<meta\b[^>]{0,300}/gi;
  for (const [tag] of head.matchAll(meta)) {
    const label = charsetOf(tag);
    if (label) return label;
  }
  return /^\s*<\?xml[^>]{0,200}encoding\s*=\s*["']([\w.:-]+)/i.exec(head)?.[1];
}

function decoderFor(label: string): TextDecoder | null {
  try {
    return new TextDecoder(label);
  } catch {
    return null; // a name nobody knows says nothing
  }
}
