// One picture, made smaller on a thread of its own.
import { parentPort, workerData } from "node:worker_threads";
import type { ImageLimit } from "./fit.ts";
import { smallerPicture } from "./smaller.ts";

const { base64, limit } = workerData as { readonly base64: string; readonly limit: ImageLimit }; // what fit-pictures.ts hands over
parentPort?.postMessage(smallerPicture(Buffer.from(base64, "base64"), limit)?.toString("base64") ?? null);
