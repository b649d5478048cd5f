// Which changes of states are worth a message, and how they read.
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { AdapterHost } from "../../contract.ts";
import { isYes, listIn } from "../../groups.ts";

interface StateChange {
  readonly entity: string;
  readonly text: string;
  /** Milliseconds. */
  readonly at: number;
  readonly updateId: string;
}

/** Of a sensor that went away and came back nothing has changed in the house; after a restart all of them do. */
const NO_STATE = new Set(["unavailable", "unknown", ""]);

/** Null: not a change of a state, or of nothing that is watched. */
export function readChange(event: Json, option: AdapterHost["option"]): StateChange | null {
  const { entity_id: entity, old_state: before, new_state: after } = asRecord(event.data);
  if (event.event_type !== "state_changed" || typeof entity !== "string" || !isWatched(entity, option)) return null;
  const [old, fresh] = [asText(asRecord(before).state), asText(asRecord(after).state)];
  if (NO_STATE.has(old) || NO_STATE.has(fresh) || old === fresh) return null;
  const { friendly_name: name, unit_of_measurement: unit } = asRecord(asRecord(after).attributes);
  const shown = (state: string) => (typeof unit === "string" && unit !== "" ? `${state} ${unit}` : state);
  const fired = asText(event.time_fired);
  const context = asText(asRecord(event.context).id);
  return {
    entity,
    text: `[Home Assistant] ${asText(name) || entity} (${entity}) changed from "${shown(old)}" to "${shown(fresh)}"`,
    at: Date.parse(fired),
    updateId: `${entity}:${context}:${fired}`,
  };
}

function isWatched(entity: string, option: AdapterHost["option"]): boolean {
  const [domain = ""] = entity.split(".");
  if (listIn(option("ignore_entities")).has(entity)) return false;
  if (listIn(option("watch_entities")).has(entity) || listIn(option("watch_domains")).has(domain)) return true;
  return isYes(option("watch_all"), false);
}

/** Without this every step of a dimmer and every draught at a thermometer would be a turn. */
export function watchesAnything(option: AdapterHost["option"]): boolean {
  return (
    isYes(option("watch_all"), false) ||
    [...listIn(option("watch_entities")), ...listIn(option("watch_domains"))].length > 0
  );
}

/** One message of an entity in a while. */
export class Cooldown {
  readonly #last = new Map<string, number>();

  /** Milliseconds. */
  passes(entity: string, now: number, seconds: number): boolean {
    const last = this.#last.get(entity);
    if (last !== undefined && now - last < seconds * 1000) return false;
    this.#last.set(entity, now);
    return true;
  }
}
