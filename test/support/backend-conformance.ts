// Everything an environment owes, over one that was opened once.
import { after, before, describe } from "node:test";
import { type ConformanceSubject, environmentConformance } from "./environment-conformance.ts";
import { fileToolsConformance } from "./file-tools-conformance.ts";
import { environmentFiles, filesConformance } from "./files-conformance.ts";
import { oneOf } from "./sample.ts";
import { scriptsConformance } from "./scripts-conformance.ts";

export function backendConformance(
  kind: string,
  open: () => Promise<ConformanceSubject>,
  { sharesFiles, slow = false }: { readonly sharesFiles: boolean; readonly slow?: boolean },
): void {
  describe(kind, () => {
    let opened: ConformanceSubject;
    before(async () => {
      opened = await open();
    });
    after(() => opened?.release());
    const borrow = async (): Promise<ConformanceSubject> => ({
      environment: opened.environment,
      directory: opened.directory,
      release: async () => opened.environment.setCwd(opened.directory),
    });
    describe("commands", () => environmentConformance(kind, borrow, { part: slow ? 3 : 1 }));
    const suites = {
      files: () => filesConformance(kind, async () => environmentFiles(await borrow())),
      "file tools": () => fileToolsConformance(kind, async () => ({ ...(await borrow()), sharesFiles })),
      scripts: () => scriptsConformance(kind, borrow),
    };
    // What is slow to start runs one of the three, another one each time, and some of the commands; the others run them all, on the same code.
    for (const [name, suite] of slow ? oneOf(Object.entries(suites), kind) : Object.entries(suites))
      describe(name, suite);
  });
}
