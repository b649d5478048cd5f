import { choice, type Field } from "../field.ts";

export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"] as const;

/** How hard a model thinks. */
export function effort(meaning: string): Field<"" | (typeof EFFORTS)[number]> {
  return choice(["", ...EFFORTS], "", meaning, { aliases: { max: "xhigh" } });
}
