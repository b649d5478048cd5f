// The prompts of a batch: one JSON object per line.
import { readFile } from "node:fs/promises";
import { UserError } from "../../../kit/errors.ts";

export interface DatasetItem {
  /** Number of its line among the readable ones, from 0. */
  readonly index: number;
  readonly prompt: string;
  /** Commands of this prompt run in a container of this image. */
  readonly image?: string;
  readonly cwd?: string;
}

export interface Dataset {
  readonly items: readonly DatasetItem[];
  /** Lines that hold no prompt, or a place that is no text. */
  readonly corrupt: number;
}

export async function readDataset(path: string): Promise<Dataset> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new UserError(
      `The dataset ${path} cannot be read: ${error instanceof Error ? error.message : error}. --dataset_file takes a file with one {"prompt": "..."} per line.`,
    );
  }
  const items: DatasetItem[] = [];
  let corrupt = 0;
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const item = parseItem(line, items.length);
    if (item) items.push(item);
    else corrupt++;
  }
  return { items, corrupt };
}

function parseItem(line: string, index: number): DatasetItem | null {
  const value = parseLine(line);
  const prompt = value?.prompt;
  if (typeof prompt !== "string" || prompt.trim() === "") return null;
  // A place that cannot be read must not become another one.
  if (![value?.image, value?.docker_image, value?.cwd].every(isTextOrAbsent)) return null;
  const image = textIn(value?.image) ?? textIn(value?.docker_image);
  const cwd = textIn(value?.cwd);
  return { index, prompt, ...(image ? { image } : {}), ...(cwd ? { cwd } : {}) };
}

/** One line of a JSONL file; null when it is damaged. */
export function parseLine(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>) // read field by field
      : null;
  } catch {
    return null; // counted by whoever reads the file
  }
}

const textIn = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value.trim() : undefined);
const isTextOrAbsent = (value: unknown) => value === undefined || value === null || typeof value === "string";
