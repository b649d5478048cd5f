// Prints the prompt of a folder, its parts in a shuffled order: `node print-prompt.ts <folder>`.
import { buildSystemPromptParts } from "../../src/prompt/build.ts";
import { gatherPromptInputs } from "../../src/prompt/gather.ts";
import { promptRequest } from "./prompt-request.ts";

const { request, ports } = promptRequest(process.argv[2] ?? ".");
const shuffled = [...request.known.toolNames].sort(() => Math.random() - 0.5);
const known = { ...request.known, toolNames: shuffled };
const entries: typeof ports.files.entries = async (directories, signal) =>
  new Map([...(await ports.files.entries(directories, signal))].map(([at, found]) => [at, found.toReversed()]));
const files = Math.random() < 0.5 ? ports.files : { ...ports.files, entries };
process.stdout.write(buildSystemPromptParts(await gatherPromptInputs({ ...request, known }, { ...ports, files })).full);
