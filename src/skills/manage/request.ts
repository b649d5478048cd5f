import type { Skill } from "../catalogue.ts";
import type { SkillsPlace } from "../roots.ts";
import type { SkillResult, SkillRun } from "../run.ts";

export const ACTIONS = ["create", "patch", "edit", "delete", "write_file", "remove_file"] as const;
export type Action = (typeof ACTIONS)[number];

export interface ManageRequest {
  readonly action: Action;
  readonly name: string;
  readonly content?: string | undefined;
  readonly old_string?: string | undefined;
  readonly new_string?: string | undefined;
  readonly replace_all?: boolean | undefined;
  readonly category?: string | undefined;
  readonly file_path?: string | undefined;
  readonly file_content?: string | undefined;
  readonly absorbed_into?: string | undefined;
}

export interface ManagePorts {
  /** What a run has read itself. */
  readonly views: { wasRead(taskId: string, file: string): boolean };
  /** Looks at a skill that was just written. Absent: nothing is looked at. */
  readonly scan?: GuardScan | undefined;
}

export type GuardScan = (
  skillDir: string,
) => Promise<
  { readonly allowed: true } | { readonly allowed: false; readonly reason: string; readonly report: string }
>;

export interface ManageCall {
  readonly request: ManageRequest;
  readonly place: SkillsPlace;
  readonly run: Pick<SkillRun, "origin" | "taskId" | "sessionId">;
  readonly ports: ManagePorts;
}

/**
 * A change that passed every check and only has to be made.
 *
 * - `before` and `after` are the text of the file it changes, for showing a diff; null = no such file.
 * - `commit` is all or nothing.
 */
export interface Plan {
  readonly type: "ready";
  readonly file: string;
  readonly before: string | null;
  readonly after: string | null;
  commit(): Promise<SkillResult>;
  /** What the usage file is told afterwards. */
  readonly effect: "created" | "patched" | "archived";
  readonly skillName: string;
  readonly skill?: Skill;
}

export type Planned = Plan | { readonly type: "refused"; readonly result: SkillResult };
