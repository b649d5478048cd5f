import { missingBubblewrap, openSandbox } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";
import { environmentConformance } from "./support/environment-conformance.ts";
import { fileToolsConformance } from "./support/file-tools-conformance.ts";
import { environmentFiles, filesConformance } from "./support/files-conformance.ts";

await withEngine("bubblewrap", missingBubblewrap, () => {
  environmentConformance("bubblewrap", openSandbox);
  filesConformance("bubblewrap", async () => environmentFiles(await openSandbox()));
  fileToolsConformance("bubblewrap", async () => ({ ...(await openSandbox()), sharesFiles: true }));
});
