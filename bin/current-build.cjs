// Which build of a clone runs, for the launcher and for `npm start`. Plain JavaScript that any Node from 18 on can read.
const { existsSync, readdirSync, statSync } = require("node:fs");
const { join } = require("node:path");

/**
 * The newest of what `npm run build` (dist/) and `npm start` (.cache/build/) have made, as long as it is newer than everything it was made
 * of; null: the source runs.
 */
exports.currentBuild = (root) => {
  const own = join(root, ".cache", "build");
  const kept = existsSync(own) ? readdirSync(own).filter((name) => /^\d+$/.test(name)) : [];
  const [newest] = [join(root, "dist"), ...kept.map((name) => join(own, name))]
    .map((folder) => ({ path: join(folder, "main.js"), time: changedAt(join(folder, "main.js")) }))
    .filter(({ time }) => time > 0)
    .sort((a, b) => b.time - a.time);
  if (newest === undefined) return null;
  const wanted = process.env.HERMES_FROM_SOURCE;
  if (wanted === "1" || wanted === "0") return wanted === "0" ? newest.path : null;
  const { path, time } = newest;
  return changedAt(join(root, "package-lock.json")) >= time || newerInside(join(root, "src"), time) ? null : path;
};

function newerInside(folder, time) {
  if (changedAt(folder) >= time) return true; // the folder itself tells of files that are gone
  return readdirSync(folder, { withFileTypes: true }).some((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return newerInside(path, time);
    return !entry.name.endsWith(".test.ts") && changedAt(path) >= time;
  });
}

/** 0 for what is not there, such as the target of an editor's lock file. */
function changedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
