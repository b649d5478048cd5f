// `hermes gateway status` for people: what is connected, what waits, what is wrong.
import { compactDuration, plural, relativeTime } from "../../kit/formats.ts";
import { cellWidth, padCells } from "../terminal-text.ts";
import type { GatewayStatus, PlatformStatus } from "./state-file.ts";

type Row = readonly [name: string, value: string];

/** Plain text, one fact per line. `read` says a label or a value in the language of who reads it. */
export function statusPage(
  status: GatewayStatus,
  nowMs: number,
  read: (text: string) => string = (text) => text,
): string {
  const now = nowMs / 1000;
  const platforms = Object.entries(status.platforms).map(
    ([name, platform]): Row => [name, platformLine(platform, status.running, now)],
  );
  const rows: readonly Row[] = [
    ["Gateway", gatewayLine(status, now)],
    ["Profile", `${status.profile}, ${status.home}`],
    ...(platforms.length > 0 ? platforms : [["Platforms", "none is set up: hermes gateway setup"] as const]),
    ...queueRows(status),
    ...cronRows(status),
    ...(status.service.installed ? [["Service", serviceLine(status.service)] as const] : []),
  ];
  const width = Math.max(...rows.map(([name]) => cellWidth(read(name)))) + 2;
  const lines = rows.map(([name, value]) => `${padCells(read(name), width)}${read(value)}`);
  const warnings = status.warnings.map((warning) => `⚠ ${warning}`);
  const next = status.running ? [] : ["Start it: hermes gateway start, or in this terminal: hermes gateway run"];
  return `${[...lines, ...warnings, ...next].join("\n")}\n`;
}

function gatewayLine({ running, pid, state, started_at, exit_reason, turns }: GatewayStatus, now: number): string {
  if (!running) return exit_reason === null ? state.replace("_", " ") : `${state.replace("_", " ")} (${exit_reason})`;
  const since = started_at === null ? "" : `, started ${relativeTime(Date.parse(started_at) / 1000, now)}`;
  const waiting = turns.waiting > 0 ? `, ${turns.waiting} waiting` : "";
  return `${state} (process ${pid})${since}, ${plural(turns.running, "turn")} of at most ${turns.max} running${waiting}`;
}

function platformLine(platform: PlatformStatus, isLive: boolean, now: number): string {
  const { enabled, state, account, error_message, retry_at, listening, last_inbound_at, queued, pending } = platform;
  const isWaiting = !isLive && state === "disconnected";
  const facts = [
    !enabled ? "disabled" : isWaiting ? "set up" : state === "connected" && account ? `connected as ${account}` : state,
    listening === null ? "" : `listening on ${listening}`,
    retry_at === null ? "" : `next try in ${compactDuration(Math.max(0, Date.parse(retry_at) / 1000 - now))}`,
    last_inbound_at === null ? "" : `last message ${relativeTime(Date.parse(last_inbound_at) / 1000, now)}`,
    queued > 0 ? `${queued} waiting for an answer` : "",
    pending > 0 ? `${pending} waiting to be sent` : "",
  ];
  const line = facts.filter((fact) => fact !== "").join(", ");
  if (error_message === null || state === "connected") return line;
  return isWaiting ? `${line}, last error: ${error_message}` : `${line}: ${error_message}`;
}

function queueRows({ inbox, outbox }: GatewayStatus): readonly Row[] {
  const age = (seconds: number | null) => (seconds === null ? "" : `, the oldest for ${compactDuration(seconds)}`);
  const unsent = outbox.pending + outbox.sending;
  return [
    ["Inbox", `${inbox.queued} waiting${age(inbox.oldest_seconds)}${inbox.dead > 0 ? `, ${inbox.dead} failed` : ""}`],
    ["Outbox", `${unsent} waiting${age(outbox.oldest_seconds)}${outbox.dead > 0 ? `, ${outbox.dead} failed` : ""}`],
  ];
}

function cronRows({ cron }: GatewayStatus): readonly Row[] {
  if (!cron.ticking) return [];
  const next = cron.next_run_at === null ? "no job planned" : `next run ${cron.next_run_at}`;
  return [["Cron", `${next}, ${cron.running} running${cron.lag_seconds > 0 ? `, ${cron.lag_seconds} s late` : ""}`]];
}

const serviceLine = ({ manager, active }: GatewayStatus["service"]) =>
  `${manager ?? "installed, but its manager is missing"}${manager === null ? "" : active ? ", active" : ", not active"}`;
