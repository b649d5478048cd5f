// Services that plugins bring for tools of ours: pictures, search, browsers, speech. A tool asks here for a name it does not know itself.

export type ExtraKind = "image_gen" | "web_search" | "browser" | "tts" | "transcription";

const registered = new Map<string, () => Promise<unknown>>();

/** The first of a name keeps it. Returns how to take it back. */
export function registerProvider(kind: ExtraKind, name: string, load: () => Promise<unknown>): () => void {
  const key = `${kind}/${name}`;
  if (registered.has(key)) throw new Error(`there is a ${kind} provider called "${name}" already`);
  registered.set(key, load);
  return () => {
    if (registered.get(key) === load) registered.delete(key);
  };
}

export function providerNames(kind: ExtraKind): string[] {
  const lead = `${kind}/`;
  return [...registered.keys()].filter((key) => key.startsWith(lead)).map((key) => key.slice(lead.length));
}

/** Null when no plugin brings one of this name. What comes back is the plugin's: whoever uses it checks it. */
export async function findProvider(kind: ExtraKind, name: string): Promise<unknown> {
  return (await registered.get(`${kind}/${name}`)?.()) ?? null;
}
