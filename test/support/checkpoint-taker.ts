// Takes one checkpoint after the other until it is killed. Arguments: home, project.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/kit/clock.ts";
import { storeAt } from "./checkpoint-store.ts";

const [home = "", root = ""] = process.argv.slice(2);
const limits = {
  max_snapshots: 5,
  max_total_size_mb: 500,
  max_file_size_mb: 1,
  retention_days: 7,
  delete_orphans: true,
};
const store = storeAt(home, () => ({ limits, secrets: [], now: systemClock.now() }));
for (let n = 0; ; n++) {
  await writeFile(join(root, "d1", "1.txt"), `${process.pid} ${n}`);
  await store.take(root, { why: `killed ${n}` });
  if (n === 0) process.stdout.write("begun\n");
}
