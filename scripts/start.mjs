// npm start [-- arguments]: sets a clone up if need be, then runs hermes where the user stands.
import { join } from "node:path";
import { projectNode, root, run, setup } from "./setup.mjs";

setup("run");
// npm changes into the package folder; INIT_CWD is where the user typed the command.
process.exitCode = await run(projectNode(), [join(root, "bin", "hermes.mjs"), ...process.argv.slice(2)], {
  cwd: process.env.INIT_CWD ?? process.cwd(),
});
