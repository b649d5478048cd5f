// Which toolsets a prompt gets: each is drawn by its own percentage, so that the data shows agents with different hands.
import type { Clock } from "../../../kit/clock.ts";
import { UserError } from "../../../kit/errors.ts";

/** Toolset -> percent. */
type Distribution = Readonly<Record<string, number>>;

export const DISTRIBUTIONS: Readonly<Record<string, Distribution>> = {
  default: {
    web: 100,
    browser: 100,
    vision: 100,
    terminal: 100,
    file: 100,
    code_execution: 100,
    skills: 100,
    todo: 100,
  },
  research: { web: 90, browser: 70, vision: 50, terminal: 10, file: 40 },
  development: { terminal: 90, file: 90, code_execution: 60, web: 40, todo: 60, vision: 20 },
  balanced: { web: 50, browser: 50, vision: 50, terminal: 50, file: 50, code_execution: 50, todo: 50 },
  minimal: { web: 100 },
  terminal_only: { terminal: 100, file: 100 },
  safe: { web: 80, browser: 70, vision: 60 },
};

export function distributionNamed(name: string): Distribution {
  const found = Object.hasOwn(DISTRIBUTIONS, name) ? DISTRIBUTIONS[name] : undefined;
  if (found) return found;
  throw new UserError(`There is no distribution "${name}". There are: ${Object.keys(DISTRIBUTIONS).join(", ")}.`);
}

/** At least one: when nothing was drawn, the likeliest. */
export function drawToolsets(distribution: Distribution, clock: Pick<Clock, "random">): readonly string[] {
  const entries = Object.entries(distribution);
  const drawn = entries.filter(([, percent]) => clock.random() * 100 < percent).map(([name]) => name);
  if (drawn.length > 0) return drawn;
  const [likeliest] = entries.toSorted(([, one], [, other]) => other - one);
  return likeliest ? [likeliest[0]] : [];
}
