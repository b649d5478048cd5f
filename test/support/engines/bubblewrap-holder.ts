// A program that opens a sandbox, starts something in it, says which process that is, and waits to be killed.
import { descendantsOf } from "../../../src/sandbox/processes.ts";
import { cleared } from "../cleared.ts";
import { openSandbox } from "./bubblewrap.ts";

const { environment } = await openSandbox();
const child = await environment.spawn(cleared("sleep 300 & wait"), {});
let family: number[] = [];
while (family.length < 2) {
  family = await descendantsOf(child.pid);
  await new Promise((resolve) => setTimeout(resolve, 10));
}
process.stdout.write(`${family.at(-1)}\n`);
await child.exited;
