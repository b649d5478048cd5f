// The program that ours is held against: pi, where it is installed. `npm run bench -- --table` installs it; elsewhere it is the one on PATH
// or in PI.
import { accessSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";

export const pi = process.env.PI ?? onPath("pi");

export function onPath(name: string): string | null {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    try {
      accessSync(join(folder, name));
      return join(folder, name);
    } catch {
      // the next one
    }
  }
  return null;
}

/** What follows Node on the command line of a run that asks once. */
export const piAsked = [String(pi), "-p", "--provider", "local", "--model", "fake-model", "go"];

/** Tells pi of the model server. */
export async function piKnows(userHome: string, url: string): Promise<void> {
  const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const model = { id: "fake-model", name: "fake", reasoning: false, input: ["text"], cost: free };
  const models = [{ ...model, contextWindow: 1_000_000, maxTokens: 4096 }];
  const providers = { local: { baseUrl: url, api: "openai-completions", apiKey: "none", models } };
  await mkdir(join(userHome, ".pi", "agent"), { recursive: true });
  await writeFile(join(userHome, ".pi", "agent", "models.json"), JSON.stringify({ providers }));
}
