// The check in front of commands for one conversation: what this home allows, whom to ask, and what "always" writes.
import { homedir } from "node:os";
import { createApprovalStore, createSessionApprovals } from "../safety/approvals.ts";
import type { CommandGuard, Question } from "../safety/decision.ts";
import { type GuardOptions, saveBlockedScript } from "../safety/guard.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { Assembly } from "./assembly.ts";
import type { OpenRequest } from "./open-request.ts";

interface ConversationGuard {
  /** "Do not ask" for this conversation. */
  yolo: boolean;
  readonly ports: Pick<Assembly, "guardFor" | "askTimeoutMs">;
}

export function openGuard(opening: OpenRequest, environment: Environment, sessionId: () => string): ConversationGuard {
  const { home, clock } = opening;
  const approvals = createSessionApprovals();
  const questions = createApprovalStore({
    clock,
    table: () => opening.store(),
    redact: (text) => home.redact(text),
    report: (problem, error) => home.log.warn(problem, error),
  });
  // One guard serves one conversation, whatever id it goes on under.
  const sessionKey = sessionId();
  return {
    get yolo() {
      return opening.yolo === true || approvals.isYolo(sessionKey);
    },
    set yolo(on) {
      approvals.setYolo(sessionKey, on);
    },
    ports: {
      askTimeoutMs: (question, run) => timeoutOf(question, home.config(), run.chat !== undefined),
      guardFor: (run, ask, auxiliary) =>
        lazyGuard({
          settings: () => home.config(),
          homes: { home: home.paths.dir, osHome: home.environment().HOME ?? homedir() },
          sudoPasswordSet: () => home.env("SUDO_PASSWORD") !== undefined,
          interactive: run.interactive,
          origin: run.origin,
          remote: run.chat !== undefined,
          sessionKey,
          sessionId: run.sessionId,
          ask,
          approvals,
          questions,
          yolo: opening.yolo === true,
          isolated: () => environment.isolated,
          // Loaded with the first command that is to be judged.
          smart: async (request, signal) => {
            const { approvalJudge } = await import("./approval-judge.ts");
            const judged = { sessionId: run.sessionId, turn: run.turn, redact: home.redact };
            return approvalJudge(auxiliary, judged)(request, signal);
          },
          saveAllowlist: (key) => addToAllowlist(opening, key),
          saveBlocked: (script) => saveBlockedScript(home.paths.at("cache", "blocked-scripts"), script, clock),
          log: home.log.child("safety"),
        }),
    },
  };
}

/** The command parser and its tables are loaded with the first command. */
function lazyGuard(options: GuardOptions): CommandGuard {
  let opened: Promise<Required<CommandGuard>> | null = null;
  const guard = () => {
    opened ??= import("../safety/guard.ts").then(({ createGuard }) => createGuard(options));
    return opened;
  };
  return {
    decide: async (...question) => (await guard()).decide(...question),
    decideCode: async (...question) => (await guard()).decideCode(...question),
  };
}

async function addToAllowlist({ home }: OpenRequest, key: string): Promise<void> {
  const present = home.config().command_allowlist;
  if (!present.includes(key)) await home.setConfigKey("command_allowlist", [...present, key]);
}

/** Silence is an answer too; how long it takes is a setting. */
function timeoutOf(question: Question, config: ReturnType<OpenRequest["home"]["config"]>, inChat: boolean): number {
  const { approvals } = config;
  if (question.kind === "approval") return (inChat ? approvals.gateway_timeout : approvals.timeout) * 1000;
  if (question.kind === "clarify") return config.clarify.timeout * 1000;
  return question.kind === "sudo" ? 45_000 : 120_000;
}
