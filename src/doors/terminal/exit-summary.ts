// What is left on the terminal after the screen is gone.
import { exactDuration } from "../../kit/formats.ts";

export interface SummaryFacts {
  readonly sessionId: string;
  readonly title: string | null;
  readonly profile: string;
  readonly seconds: number;
  readonly messages: number;
  readonly userMessages: number;
  readonly toolCalls: number;
}

export function exitSummary(facts: SummaryFacts): string {
  const profile = facts.profile === "default" ? "" : ` -p ${facts.profile}`;
  return [
    "Resume this conversation with:",
    `  hermes --resume ${facts.sessionId}${profile}`,
    ...(facts.title ? [`  hermes -c ${JSON.stringify(facts.title)}${profile}`] : []),
    "",
    `Session:   ${facts.sessionId}`,
    ...(facts.title ? [`Title:     ${facts.title}`] : []),
    `Duration:  ${exactDuration(facts.seconds)}`,
    `Messages:  ${facts.messages} (${facts.userMessages} user, ${facts.toolCalls} tool call${facts.toolCalls === 1 ? "" : "s"})`,
  ].join("\n");
}
