// What kind of file it is, from its name and its first bytes.

const IMAGES = /\.(?:png|jpe?g|gif|webp|bmp|ico|tiff?|heic|heif|avif)$/i;

const BINARIES = new RegExp(
  `\\.(?:${[
    "pdf|docx?|xlsx?|pptx?|odt|ods|odp|epub",
    "zip|tar|gz|tgz|bz2|xz|zst|7z|rar|jar|war|whl|deb|rpm|dmg|iso|apk|ipa",
    "exe|dll|so|dylib|a|o|obj|lib|class|pyc|pyo|wasm|node|bin|dat",
    "mp3|wav|flac|ogg|oga|opus|m4a|aac|mp4|m4v|mkv|mov|avi|webm|wmv",
    "ttf|otf|woff2?|eot|psd|ai|sketch|blend",
    "sqlite3?|db|mdb|parquet|npy|npz|pkl|h5|onnx|safetensors|gguf|pt|pth",
  ].join("|")})$`,
  "i",
);

export function isImage(path: string): boolean {
  return IMAGES.test(path);
}

export function isBinaryName(path: string): boolean {
  return BINARIES.test(path);
}

export const SNIFFED_BYTES = 8192;

/** Bytes that no text has: not UTF-8, or mostly control characters. Takes the beginning of a file. */
export function looksBinary(head: Uint8Array): boolean {
  let text: string;
  try {
    // As a stream: a character cut off at the end is no error.
    text = new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
  } catch {
    return true;
  }
  let control = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0) return true;
    if ((code < 32 && !(code >= 7 && code <= 13) && code !== 27) || code === 0x7f) control++;
  }
  return control > text.length * 0.3;
}
