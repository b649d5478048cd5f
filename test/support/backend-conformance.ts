// Everything an environment owes, over one that was opened once.
import { after, before, describe } from "node:test";
import { type ConformanceSubject, environmentConformance } from "./environment-conformance.ts";
import { fileToolsConformance } from "./file-tools-conformance.ts";
import { environmentFiles, filesConformance } from "./files-conformance.ts";
import { scriptsConformance } from "./scripts-conformance.ts";

export function backendConformance(
  kind: string,
  open: () => Promise<ConformanceSubject>,
  { sharesFiles }: { readonly sharesFiles: boolean },
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
    describe("commands", () => environmentConformance(kind, borrow));
    describe("files", () => filesConformance(kind, async () => environmentFiles(await borrow())));
    describe("file tools", () => fileToolsConformance(kind, async () => ({ ...(await borrow()), sharesFiles })));
    describe("scripts", () => scriptsConformance(kind, borrow));
  });
}
