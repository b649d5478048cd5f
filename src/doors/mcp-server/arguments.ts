// Kinds of arguments that several tools take.
import { z } from "zod";

/** A whole number; one out of range is moved into it, one that is none becomes the default. */
export function wholeNumber(
  about: string,
  limits: { readonly from: number; readonly to: number; readonly usual: number },
) {
  const { from, to, usual } = limits;
  const moved = (given: unknown) => {
    const number = typeof given === "string" && given.trim() === "" ? Number.NaN : Number(given ?? usual);
    return Number.isNaN(number) ? usual : Math.trunc(Math.min(to, Math.max(from, number)));
  };
  return z
    .preprocess(moved, z.int().min(from).max(to).default(usual).describe(about))
    .optional()
    .transform((n) => n ?? usual);
}

const LONGEST_ID = 512;
const LONGEST_QUERY = 1_000;

const short = (about: string, most: number) => z.string().min(1).max(most).describe(about);

export const id = (about: string) => short(about, LONGEST_ID);
export const query = (about: string) => short(about, LONGEST_QUERY);
export const platform = () => id("only this platform, e.g. telegram, cli").optional();
export const sessionKey = () => id("a session_key of conversations_list");
