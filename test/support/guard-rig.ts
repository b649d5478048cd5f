// A command guard with everything a test does not care about filled in, and a user who answers as told.
import { type Config, defaultConfig } from "../../src/home/config/schema.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { createApprovalStore, createSessionApprovals } from "../../src/safety/approvals.ts";
import type { ApprovalChoice, ApprovalQuestion, Ask } from "../../src/safety/decision.ts";
import { createGuard, type GuardOptions } from "../../src/safety/guard.ts";
import { recordedLog } from "./session-store.ts";

type Rigged = Partial<GuardOptions> & { readonly yolo?: boolean };

export function guardRig({ yolo = false, ...over }: Rigged = {}, settings: (config: Config) => void = () => undefined) {
  const config = defaultConfig();
  settings(config);
  const asked: ApprovalQuestion[] = [];
  const saved: string[] = [];
  let next: { choice: ApprovalChoice; reason?: string; timedOut?: boolean } = { choice: "deny" };
  const approvals = createSessionApprovals();
  approvals.setYolo("s", yolo);
  const guard = createGuard({
    settings: () => config,
    homes: { home: "/home/me/.hermes", osHome: "/home/me" },
    sudoPasswordSet: () => false,
    interactive: true,
    origin: "foreground",
    sessionKey: "s",
    ask: (async (question: ApprovalQuestion) => {
      asked.push(question);
      return next;
    }) as unknown as Ask, // the guard asks for approvals only
    approvals,
    questions: createApprovalStore({ clock: systemClock }),
    isolated: () => false,
    saveAllowlist: async (key) => void saved.push(key),
    log: recordedLog(),
    ...over,
  });
  const answer = (given: typeof next) => {
    next = given;
  };
  return { guard, config, asked, saved, approvals, answer };
}
