// The network of a sandbox that may reach some hosts and no others: it has a network of its own with nothing on it but our filtering proxy,
// which listens inside and connects outside.
import { lookup } from "node:dns/promises";
import { connect, isIP, type Server, type Socket } from "node:net";
import { UserError } from "../kit/errors.ts";
import { hostProblem, isLoopback, type NamedHost, parseHost } from "../kit/hosts.ts";
import { type AddressCheck, openGuardedProxy } from "../safety/guarded-proxy.ts";
import { type ProxySettings, proxySettings } from "../safety/url-fetch.ts";
import { checkUrl, hostOf, UrlRefusedError } from "../safety/url-guard.ts";
import { listenInside, type NamespaceHolder } from "./namespace-holder.ts";

/** Any port would do: nothing else is there when the proxy begins to listen. */
const PROXY_PORTS = [3128, 3129, 3130];

export interface ReachableHosts {
  /** Send programs to the proxy. */
  readonly variables: Readonly<Record<string, string>>;
  /** Listens in the network of this sandbox. */
  attach(holder: NamespaceHolder): Promise<void>;
  /** What was refused since this was asked last, in a sentence each. */
  refusals(): readonly string[];
  close(): Promise<void>;
}

interface HostsOptions {
  /** As the settings name them. */
  readonly hosts: readonly string[];
  /** Which setting that is. */
  readonly setting: string;
  /** Enters the namespaces of a holder. */
  readonly nsenter: string;
  readonly environment: Readonly<Record<string, string>>;
}

export function openReachableHosts({ hosts: entries, setting, nsenter, environment }: HostsOptions): ReachableHosts {
  const hosts = entries.map((entry) => hostIn(entry, setting));
  const network = proxySettings((name) => environment[name]);
  let refused = new Set<string>();
  const { server, close } = openGuardedProxy({
    check: checkHosts(hosts, network, (host) => refusal(host, setting, entries)),
    onRefused: ({ reason }) => refused.add(reason),
    network,
  });
  const here = serversHere(hosts);
  const port = PROXY_PORTS.find((one) => here.every((place) => place.port !== one)) ?? 0;
  let listening: readonly Server[] = [];
  const stop = () => {
    for (const one of listening) one.close();
  };
  const url = `http://127.0.0.1:${port}`;
  const names = ["http_proxy", "https_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
  return {
    variables: {
      ...Object.fromEntries(names.map((name) => [name, url])),
      ...Object.fromEntries(["no_proxy", "NO_PROXY"].map((name) => [name, "localhost,127.0.0.1,::1"])),
      NODE_USE_ENV_PROXY: "1",
    },
    async attach(holder) {
      stop();
      listening = await listenInside(holder, {
        nsenter,
        places: [{ host: "127.0.0.1", port }, ...here.map((place) => ({ host: place.inside, port: place.port }))],
      });
      for (const [index, one] of listening.entries()) {
        const place = here[index - 1];
        one.on("connection", (socket) => (place ? join(socket, place) : server.emit("connection", socket))).unref();
      }
    },
    refusals() {
      const told = [...refused];
      refused = new Set();
      return told;
    },
    async close() {
      stop();
      await close();
    },
  };
}

// Servers of this machine that are listed: inside, `localhost` is the sandbox itself, so they are put there, each at its own port.

interface ServerHere {
  readonly outside: string;
  readonly inside: string;
  readonly port: number;
}

function serversHere(hosts: readonly NamedHost[]): readonly ServerHere[] {
  const found = hosts.flatMap((host) => {
    if (!isLoopback(host) || host.withAllBelow || host.port === null) return [];
    return { outside: host.name, inside: host.name === "::1" ? "::1" : "127.0.0.1", port: Number(host.port) };
  });
  return [...new Map(found.map((place) => [`${place.inside} ${place.port}`, place])).values()];
}

function join(inside: Socket, { outside, port }: ServerHere): void {
  const server = connect({ host: outside, port });
  inside.pipe(server).pipe(inside);
  const end = () => {
    inside.destroy();
    server.destroy();
  };
  for (const socket of [inside, server]) socket.once("error", end).once("close", end);
}

// Which hosts are meant.

const WEB_PORTS = new Set(["80", "443"]);

function checkHosts(
  hosts: readonly NamedHost[],
  network: ProxySettings | undefined,
  refuse: (host: string) => string,
): AddressCheck {
  return async (address) => {
    const url = new URL(address);
    const name = hostOf(url);
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    const found = hosts.find((host) => matches(host, name, port));
    if (!found) return { allowed: false, reason: refuse(url.host) };
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

const refusal = (host: string, setting: string, entries: readonly string[]) =>
  `${host} is not an allowed host of the sandbox (${setting} in config.yaml: ${entries.join(", ") || "none"}).`;

function matches({ name, withAllBelow, port }: NamedHost, host: string, given: string): boolean {
  if (port === null ? !WEB_PORTS.has(given) : port !== given) return false;
  return withAllBelow ? host.endsWith(`.${name}`) : host === name;
}

function hostIn(entry: string, setting: string): NamedHost {
  const host = parseHost(entry);
  const problem = hostProblem(entry);
  // Settings are read with the same eyes; this is for whoever comes by another way.
  if (host === null || problem !== null) throw new UserError(`${setting}: ${problem}`);
  return host;
}
