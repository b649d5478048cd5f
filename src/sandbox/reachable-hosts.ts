// The network of a sandbox that may reach some hosts and no others: it has a network of its own with nothing on it but our filtering proxy,
// which listens inside and connects outside.
import { lookup } from "node:dns/promises";
import { isIP, type Server } from "node:net";
import { UserError } from "../kit/errors.ts";
import { type NamedHost, notHost, parseHost } from "../kit/hosts.ts";
import { type AddressCheck, openGuardedProxy } from "../safety/guarded-proxy.ts";
import { type ProxySettings, proxySettings } from "../safety/url-fetch.ts";
import { checkUrl, hostOf, UrlRefusedError } from "../safety/url-guard.ts";
import { listenInside, type NamespaceHolder } from "./namespace-holder.ts";

/** Any port would do: nothing else is there when the proxy begins to listen. */
const PORT = 3128;

export interface ReachableHosts {
  /** Send programs to the proxy. */
  readonly variables: Readonly<Record<string, string>>;
  /** Listens in the network of this sandbox. */
  attach(holder: NamespaceHolder): Promise<void>;
  close(): Promise<void>;
}

interface HostsOptions {
  /** As the settings name them. */
  readonly hosts: readonly string[];
  /** Enters the namespaces of a holder. */
  readonly nsenter: string;
  readonly environment: Readonly<Record<string, string>>;
}

export function openReachableHosts({ hosts, nsenter, environment }: HostsOptions): ReachableHosts {
  const network = proxySettings((name) => environment[name]);
  const { server, close } = openGuardedProxy({
    check: checkHosts(hosts, network),
    onRefused: () => undefined,
    network,
  });
  let listening: Server | null = null;
  const url = `http://127.0.0.1:${PORT}`;
  const names = ["http_proxy", "https_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
  return {
    variables: {
      ...Object.fromEntries(names.map((name) => [name, url])),
      ...Object.fromEntries(["no_proxy", "NO_PROXY"].map((name) => [name, "localhost,127.0.0.1,::1"])),
      NODE_USE_ENV_PROXY: "1",
    },
    async attach(holder) {
      listening?.close();
      listening = await listenInside(holder, { nsenter, port: PORT });
      listening.on("connection", (socket) => server.emit("connection", socket)).unref();
    },
    async close() {
      listening?.close();
      await close();
    },
  };
}

// Which hosts are meant.

const WEB_PORTS = new Set(["80", "443"]);

function checkHosts(entries: readonly string[], network: ProxySettings | undefined): AddressCheck {
  const hosts = entries.map(hostIn);
  return async (address) => {
    const url = new URL(address);
    const name = hostOf(url);
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    const found = hosts.find((host) => matches(host, name, port));
    if (!found) return { allowed: false, reason: refusal(url.host, entries) };
    try {
      // An address of the local network may be meant only by whoever wrote it down as such; names may lead anywhere.
      const { addresses, isPrivate } = await checkUrl(url, {
        allowPrivate: isIP(found.name) !== 0,
        proxied: network !== undefined,
        resolve: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
      });
      return { allowed: true, addresses, isPrivate };
    } catch (error) {
      if (error instanceof UrlRefusedError) return { allowed: false, reason: error.message };
      throw error;
    }
  };
}

const refusal = (host: string, entries: readonly string[]) =>
  `${host} is not among the hosts that the sandbox may reach (terminal.sandbox_network in config.yaml: ${entries.join(", ") || "none"}).`;

function matches({ name, withAllBelow, port }: NamedHost, host: string, given: string): boolean {
  if (port === null ? !WEB_PORTS.has(given) : port !== given) return false;
  return withAllBelow ? host.endsWith(`.${name}`) : host === name;
}

function hostIn(entry: string): NamedHost {
  const host = parseHost(entry);
  // The settings were read with the same eyes; this is for whoever comes by another way.
  if (host === null) throw new UserError(`terminal.sandbox_network: ${notHost(entry)}`);
  return host;
}
