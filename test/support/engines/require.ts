// Suites that need a program of the system: skipped with a loud line where it is missing, failed where everything must be there.

/** Registers the suite if its engine available. `engine` resolves to why it does not, or null. */
export async function withEngine(name: string, engine: () => Promise<string | null>, suite: () => void): Promise<void> {
  const problem = await engine();
  if (problem === null) {
    suite();
    return;
  }
  if (process.env.HERMES_REQUIRE_ENGINES === "1") throw new Error(`${name} is required here: ${problem}`);
  process.stderr.write(`\n!!! SKIPPED: every test that needs ${name}. ${problem}\n\n`);
}

/** For tests that download what they need: a reason to skip them, or false where everything must be there. */
export function downloadsUnwanted(what: string): string | false {
  if (process.env.HERMES_REQUIRE_ENGINES === "1" || process.env.CI === "true") return false;
  return `it downloads ${what}: runs with HERMES_REQUIRE_ENGINES=1 or CI=true`;
}
