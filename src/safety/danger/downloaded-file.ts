import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { readOptions } from "../analysis/options.ts";
import { type Scene, writtenFiles } from "../scene.ts";
import { isDownload } from "./code-sources.ts";
import { runsPreparedFile } from "./run-of-file.ts";

/** True when a file is fetched and a later command of the same line runs it. */
export const runsDownloadedFile = (scene: Scene): boolean => runsPreparedFile(scene, downloadedFiles);

function downloadedFiles(invocation: Invocation): readonly string[] {
  if (!isDownload(invocation)) return [];
  const isCurl = invocation.program === "curl";
  const options = readOptions(argTexts(invocation), {
    short: isCurl ? "oHdAbceFmuxXTwKrECDYyQPtz" : "oOaPUe",
    long: [
      "output",
      "output-document",
      "header",
      "data",
      "user",
      "user-agent",
      "request",
      "max-time",
      "output-dir",
      "dir",
      "out",
    ],
  });
  const named = options.values
    .filter(({ name }) => /^(?:output|output-document|out)$/.test(name) || name === (isCurl ? "o" : "O"))
    .map(({ value }) => value);
  const remote = options.operands
    .map((url) => url.replace(/[?#].*$/, "").replace(/.*\//, ""))
    .filter((name) => name !== "");
  return [...named, ...writtenFiles(invocation), ...remote];
}
