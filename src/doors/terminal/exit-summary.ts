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
  /** It was held in memory only. */
  readonly lost?: boolean;
}

export function exitSummary(facts: SummaryFacts): string {
  const profile = facts.profile === "default" ? "" : ` -p ${facts.profile}`;
  const goingOn = [
    "Resume this conversation with:",
    `  hermes --resume ${facts.sessionId}${profile}`,
    ...(facts.title ? [`  hermes -c ${JSON.stringify(facts.title)}${profile}`] : []),
  ];
  return [
    ...(facts.lost ? ["This conversation was kept in memory only and is gone."] : goingOn),
    "",
    `Session:   ${facts.sessionId}`,
    ...(facts.title ? [`Title:     ${facts.title}`] : []),
    `Duration:  ${exactDuration(facts.seconds)}`,
    `Messages:  ${facts.messages} (${facts.userMessages} user, ${facts.toolCalls} tool call${facts.toolCalls === 1 ? "" : "s"})`,
  ].join("\n");
}
