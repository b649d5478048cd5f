// What the prefix check costs a request: 1,000 messages, one megabyte, held against the request before. The baseline is writing the same
// body as JSON, which every request does anyway.
import { performance } from "node:perf_hooks";
import { PrefixWatch } from "../src/llm/prefix/watch.ts";
import { writeBody } from "../src/llm/wires/drive.ts";
import { aRequest, aTarget } from "../test/support/model-target.ts";
import { median, row } from "./measure.ts";

const ROUNDS = 150;
const said = (index: number) => ({
  role: index % 2 === 0 ? "user" : "assistant",
  content: `message ${index}: ${"some words of a long conversation, ".repeat(28)}`,
});
const bodyOf = (messages: number) => ({
  model: "m",
  messages: [{ role: "system", content: "p".repeat(15_000) }, ...Array.from({ length: messages }, (_, i) => said(i))],
  tools: Array.from({ length: 20 }, (_, i) => ({ name: `tool ${i}`, description: "d".repeat(900) })),
});
const request = aRequest(aTarget("chat_completions"));
const purpose = { task: "main", sessionId: "s" } as const;

function time(work: () => void): number {
  const begin = performance.now();
  work();
  return performance.now() - begin;
}

function measure(messages: number) {
  const body = bodyOf(messages);
  const watch = new PrefixWatch({ memory: { read: async () => null, write: async () => undefined } });
  void watch.check(request, purpose, writeBody(body)).answered();
  const whole: number[] = [];
  const pieces: number[] = [];
  const check: number[] = [];
  const keep: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    whole.push(time(() => void JSON.stringify(body)));
    pieces.push(time(() => void writeBody(body)));
    body.messages.push(said(round), said(round + 1));
    const sent = writeBody(body);
    const checked: { answered?: () => Promise<void> } = {};
    check.push(time(() => void Object.assign(checked, watch.check(request, purpose, sent))));
    keep.push(time(() => void checked.answered?.()));
  }
  return { whole: median(whole), pieces: median(pieces), check: median(check), keep: median(keep) };
}

measure(1000);
const { whole, pieces, check, keep } = measure(1000);
const ms = (value: number) => `${value.toFixed(2)} ms`;
row("1 MB body, written whole", ms(whole), null, null, "");
row("1 MB body, written for the check", ms(pieces), pieces / whole, 1.5, "whole");
row("prefix check over 1,000 messages", ms(check), check / whole, 0.5, "whole");
row("remembering it for the next process", ms(keep), keep / whole, 1, "whole");
