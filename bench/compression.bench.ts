// What keeping a conversation inside its window costs us, the model's own time aside: 1,000 messages, most of them tool results.
import { performance } from "node:perf_hooks";
import { messagesCost } from "../src/agent/compression/boundaries.ts";
import { ContextCompressor } from "../src/agent/compression/compressor.ts";
import { pruneOldToolResults } from "../src/agent/compression/prune.ts";
import type { HistoryMessage } from "../src/llm/messages.ts";
import { median, row } from "./measure.ts";

const ROUNDS = 9;
const TURNS = 250;

/** Fresh objects each time: costs are remembered per message. */
function talk(): HistoryMessage[] {
  return Array.from({ length: TURNS }, (_, i): HistoryMessage[] => [
    { role: "user", content: `please look at /srv/app/file${i}.ts and tell me why port ${3000 + i} is taken` },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: `c${i}`,
          type: "function",
          function: { name: "read_file", arguments: JSON.stringify({ path: `/srv/app/file${i}.ts` }) },
        },
      ],
    },
    { role: "tool", tool_call_id: `c${i}`, content: `line ${i} of the file\n`.repeat(100) },
    {
      role: "assistant",
      content: `In \`file${i}.ts\` the server is started twice; I decided to remove the second call.`,
    },
  ]).flat();
}

async function time(work: (messages: HistoryMessage[]) => unknown): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const messages = talk();
    const begin = performance.now();
    await work(messages);
    times.push(performance.now() - begin);
  }
  return median(times.slice(2));
}

const bytes = JSON.stringify(talk()).length;
const stringify = await time((messages) => JSON.stringify(messages));
const measured = await time((messages) => messagesCost(messages));
const pruned = await time((messages) =>
  pruneOldToolResults(messages, { protectTailCount: 20, protectTailTokens: 20_000 }),
);
const engine = new ContextCompressor({ contextLength: 200_000, summarize: async () => "the summary" });
const compressed = await time((messages) => engine.compress(messages, { force: true }));

const share = (ms: number) => ms / stringify;
row(`JSON.stringify, ${Math.round(bytes / 1024)} KB`, `${stringify.toFixed(2)} ms`, null, null, "baseline");
row("measure 1,000 messages", `${measured.toFixed(2)} ms`, share(measured), 10, "JSON.stringify");
row("prune 1,000 messages", `${pruned.toFixed(2)} ms`, share(pruned), 15, "JSON.stringify");
row("compress 1,000 messages, answer there", `${compressed.toFixed(2)} ms`, share(compressed), 60, "JSON.stringify");
