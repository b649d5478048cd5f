// node scripts/draw-rooms.mjs: draws who imports whom, room by room, into docs/rooms.md, from the real imports.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { rooms } from "../.dependency-cruiser.mjs";
import { projectNode, root, setup } from "./setup.mjs";

/** The page as it should be. */
export function drawRooms() {
  const cruiser = join(root, "node_modules", "dependency-cruiser", "bin", "dependency-cruiser.mjs");
  const args = [cruiser, "--config", ".dependency-cruiser.mjs", "--output-type", "json", "src"];
  const found = JSON.parse(execFileSync(projectNode(), args, { cwd: root, maxBuffer: 1 << 28, encoding: "utf8" }));
  const edges = new Set();
  for (const { source, dependencies } of found.modules) {
    if (/[.]test[.]ts$/.test(source)) continue;
    for (const { resolved } of dependencies) {
      const [from, to] = [roomOf(source), roomOf(resolved)];
      if (from && to && from !== to) edges.add(`  ${from} --> ${to}`);
    }
  }
  return `# Who imports whom

Drawn from the imports by \`node scripts/draw-rooms.mjs\`. The rooms stand in the order of the list, arrows point down only; \`npm run check\` fails otherwise.

\`\`\`mermaid
flowchart TD
${rooms.map((room) => `  ${room}`).join("\n")}
${[...edges].sort().join("\n")}
\`\`\`
`;
}

function roomOf(path) {
  if (path === "src/main.ts") return "main";
  return /^src\/([^/]+)\//.exec(path)?.[1] ?? null;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  setup();
  writeFileSync(join(root, "docs", "rooms.md"), drawRooms());
  process.stdout.write(readFileSync(join(root, "docs", "rooms.md"), "utf8"));
}
