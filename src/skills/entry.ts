// What is known of a skill without opening it again: enough to list it, filter it and find it.

export interface SkillEntry {
  /** The front matter's name; without a usable one, the directory's. */
  readonly name: string;
  readonly dirName: string;
  /** Path of the parent below the root; null directly in it. */
  readonly category: string | null;
  /** Of the skill's directory below the root, with `/`. */
  readonly path: string;
  /** As written, whole. */
  readonly description: string;
  /** The first line of the body that is no heading; stands in for a missing description. */
  readonly summary: string;
  readonly platforms: readonly string[];
  readonly environments: readonly string[];
  readonly conditions: SkillConditions;
  /** `disable-model-invocation`: a command for the user, not an offer to the model. */
  readonly userOnly: boolean;
  readonly problems: readonly string[];
}

export interface SkillConditions {
  readonly requiresToolsets: readonly string[];
  readonly requiresTools: readonly string[];
  readonly fallbackForToolsets: readonly string[];
  readonly fallbackForTools: readonly string[];
}

/** A category as people see it. */
export const categoryLabel = (category: string | null) => category ?? "general";
