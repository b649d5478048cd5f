// Which DevTools commands a model may send. The protocol can also read files, hand files to pages, change where traffic goes and end the
// browser: only parts that concern the page itself are open.

const DOMAINS = new Set(
  (
    "Accessibility Animation CSS DOM DOMDebugger DOMSnapshot DOMStorage Emulation Input LayerTree Log Network Overlay Page Performance " +
    "PerformanceTimeline Profiler Runtime Media Audits"
  ).split(" "),
);
const CLOSED = new Set([
  "DOM.setFileInputFiles",
  "DOM.getFileInfo",
  "Page.setDownloadBehavior",
  "Page.setInterceptFileChooserDialog",
  "Page.crash",
  "Page.close",
  "Page.handleJavaScriptDialog",
  "Page.addScriptToEvaluateOnNewDocument",
  "Page.setBypassCSP",
  "Network.loadNetworkResource",
  "Network.setRequestInterception",
  "Runtime.terminateExecution",
]);

/** Null, or why this command is not sent. */
export function refuseCommand(method: string, params: Readonly<Record<string, unknown>>): string | null {
  const match = /^([A-Za-z]+)\.([A-Za-z]+)$/.exec(method);
  if (!match) return `"${method}" is no command; they are named Domain.command, e.g. Page.reload.`;
  if (!DOMAINS.has(match[1] ?? "")) {
    return `Commands of ${match[1]} are not sent: only those that concern the open page (${[...DOMAINS].slice(0, 8).join(", ")}, …).`;
  }
  if (CLOSED.has(method)) return `${method} is not sent: it reaches beyond the open page.`;
  const foreign = addressesIn(params).find((address) => !/^(?:https?|about|data|blob):/i.test(address));
  return foreign === undefined
    ? null
    : `${method} is not sent: only http and https addresses are opened, not ${foreign.slice(0, 100)}`;
}

/** Parameters named like an address, wherever they stand. */
export function addressesIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (typeof inner === "string") return /^(?:url|referrer|origin)$/i.test(key) && inner !== "" ? [inner] : [];
    return addressesIn(inner);
  });
}
