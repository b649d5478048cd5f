import { join } from "node:path";
import { installRoot } from "../home/product.ts";
import type { SkillsPlace } from "./roots.ts";

/** Where the skills lie that come with the program. */
export const bundledDir = (place: Pick<SkillsPlace, "env">) =>
  place.env("HERMES_BUNDLED_SKILLS") || join(installRoot(), "skills");
