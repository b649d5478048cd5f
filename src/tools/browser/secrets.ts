// Keys of the user never leave through a page: not typed, not in an address.
import { redactPhones } from "../../safety/redact/carriers.ts";
import type { ToolContext } from "../context.ts";

/** A phone number is masked in logs, but typing one is what forms are for. */
export function holdsSecret(text: string, { redact }: Pick<ToolContext, "redact">): boolean {
  return [text, decoded(text)].some((form) => {
    const masked = redact(form);
    return masked !== form && masked !== redactPhones(form);
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a lone percent sign is no escape
  }
}
