// hermes config migrate, last part: settings that skills declare and nobody has set yet.
import type { CliContext } from "./context.ts";
import { placeOf } from "./skills-place.ts";

export async function askForSkillSettings(ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const { allSettings } = await import("../../skills/all-settings.ts");
  for (const { skill, setting, isSet, value } of await allSettings(await placeOf(ctx), "cli")) {
    if (isSet) continue;
    const otherwise = value === "" ? "Enter to skip" : `Enter for ${value}`;
    const typed = await io.question(`${setting.prompt} (skill ${skill}, ${otherwise}): `);
    if (typed === null) return; // gone, or wants no more questions
    if (typed.trim() === "") continue;
    const path = ["skills", "config", ...setting.key.split(".")];
    await home.setConfigKey(path, typed.trim());
    io.out(`✓ Set ${path.join(".")} in ${home.display(home.paths.configFile)}\n`);
  }
}
