// Installations that belong to a package manager: settings and secrets are written there, not here.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Managed {
  /** Who manages this installation, as messages name it. */
  readonly manager: string;
  /** How a setting is changed there. */
  readonly how: string;
}

const known: Readonly<Record<string, Managed>> = {
  nixos: {
    manager: "NixOS",
    how: "change the hermes options in your NixOS configuration and run nixos-rebuild switch",
  },
  nix: { manager: "Nix", how: "change your Nix expression and rebuild the profile" },
  homebrew: { manager: "Homebrew", how: "use brew (brew upgrade, brew uninstall) and its service settings" },
};

/** Who manages the home at `dir`, or null when its user does. */
export function managedBy(dir: string, env: Readonly<Record<string, string | undefined>>): Managed | null {
  const word = env.HERMES_MANAGED?.trim().toLowerCase() ?? "";
  if (word === "true" || word === "1" || word === "yes") return known.nixos ?? null;
  if (word !== "" && word !== "false" && word !== "0" && word !== "no") return named(word);
  const marker = readMarker(join(dir, ".managed"));
  return marker === null ? null : named(marker.trim());
}

function named(name: string): Managed {
  const word = name.toLowerCase();
  const entry = known[word === "brew" ? "homebrew" : word];
  if (entry) return entry;
  const manager = name || "a package manager";
  return { manager, how: `change it where ${manager} keeps its settings` };
}

export function refusal({ manager, how }: Managed, what: string): string {
  return `${what} is managed by ${manager} and is not changed here. To change it, ${how}.`;
}

function readMarker(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EACCES") return ""; // it is there
    return null;
  }
}
