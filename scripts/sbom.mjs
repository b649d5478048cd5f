// npm run -s sbom > sbom.cdx.json: what a build contains, as CycloneDX. npm knows the packages; which of them are inside, the build knows.
// An argument names a build that is there already.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectNode, root, setup } from "./setup.mjs";

setup();
const output = { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 26 };
const options = ["--sbom-format=cyclonedx", "--package-lock-only", "--workspaces=false", "--loglevel=error"];
const sbom = JSON.parse(execFileSync("npm", ["sbom", ...options], output));
const product = sbom.metadata.component;
product.name = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).name;
product.type = "application";

const inside = namesInside();
const isForDevelopment = ({ name }) => name === "cdx:npm:package:development";
sbom.components = sbom.components.filter(
  (part) => inside.has(part["bom-ref"]) || !part.properties.some(isForDevelopment),
);
for (const part of sbom.components) {
  if (!inside.has(part["bom-ref"])) continue;
  // For npm it is a tool of developers; in the package it is part of the program.
  part.scope = "required";
  part.properties = part.properties.filter((property) => !isForDevelopment(property));
}
const known = new Set([product["bom-ref"], ...sbom.components.map((part) => part["bom-ref"])]);
const missing = [...inside].filter((name) => !known.has(name));
if (missing.length > 0)
  throw new Error(`package-lock.json does not know ${missing.join(", ")}, which the build contains`);
sbom.dependencies = sbom.dependencies
  .filter(({ ref }) => known.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((name) => known.has(name)) }));
process.stdout.write(`${JSON.stringify(sbom, null, 2)}\n`);

/** `name@version` of each package, as the headings of the notices in the build have it. */
function namesInside() {
  const dist = process.argv[2] ?? mkdtempSync(join(tmpdir(), "hermes-sbom-"));
  try {
    if (!process.argv[2]) execFileSync(projectNode(), [join(root, "scripts", "build.mjs"), dist], output);
    const notices = readFileSync(join(dist, "THIRD-PARTY-NOTICES.txt"), "utf8");
    return new Set([...notices.matchAll(/^===== (.+) =====$/gm)].map(([, name]) => name));
  } finally {
    if (!process.argv[2]) rmSync(dist, { recursive: true, force: true });
  }
}
