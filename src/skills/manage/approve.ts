// The user's answer to writes that wait.
import { diffOf, dropPending, listPending, type PendingWrite } from "../pending.ts";
import { manageSkill, planChange } from "./manage.ts";
import type { ManageCall } from "./request.ts";

type Ground = Pick<ManageCall, "place" | "ports" | "run">;

export interface Answered {
  readonly write: PendingWrite;
  /** Null when it went through. */
  readonly error: string | null;
}

/** Makes the change, or all of them, oldest first. What fails stays pending. */
export async function approvePending(which: string, ground: Ground): Promise<readonly Answered[]> {
  const answered: Answered[] = [];
  // It was read when it was staged, and the user has looked at it since.
  const ports = { ...ground.ports, views: { wasRead: () => true } };
  for (const write of await select(which, ground)) {
    const run = { ...ground.run, origin: write.origin };
    const result = await manageSkill({ ...ground, run, request: write.payload, ports }, { approved: true });
    if (result.success) await dropPending(ground.place, write.id);
    answered.push({ write, error: result.success ? null : String(result.error) });
  }
  return answered;
}

export async function rejectPending(which: string, ground: Pick<Ground, "place">): Promise<readonly PendingWrite[]> {
  const writes = await select(which, ground);
  for (const { id } of writes) await dropPending(ground.place, id);
  return writes;
}

/** The waiting change as a unified diff against the disk; a sentence when it no longer applies. */
export async function diffPending(id: string, ground: Ground): Promise<string | null> {
  const [write] = await select(id, ground);
  if (!write) return null;
  const planned = await planChange({ ...ground, request: write.payload, run: { ...ground.run, origin: "foreground" } });
  if (planned.type === "refused") return String(planned.result.error ?? planned.result.message);
  return write.action === "create" ? (planned.after ?? "") : diffOf(planned);
}

async function select(which: string, { place }: Pick<Ground, "place">): Promise<readonly PendingWrite[]> {
  const all = await listPending(place);
  return which === "all" ? all : all.filter(({ id }) => id === which.trim());
}
