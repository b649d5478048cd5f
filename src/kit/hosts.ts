// Hosts as a setting names them: `example.com`, `*.example.com`, `example.com:8080`, `[::1]:8080`.
import { isIP } from "node:net";
import { domainToASCII } from "node:url";

export interface NamedHost {
  /** In the form it is compared in. */
  readonly name: string;
  readonly withAllBelow: boolean;
  /** Null: the ports of the web. */
  readonly port: string | null;
}

/** Null when it is none: an address with a path, blanks, a lone `*`. */
export function parseHost(entry: string): NamedHost | null {
  const [, wildcard = "", name = "", port = null] =
    /^(\*\.)?(\[[0-9a-f:.]{2,64}\]|[^\s/:@*[\]]{1,253})(?::(\d{1,5}))?$/i.exec(entry.trim()) ?? [];
  const bare = name.replace(/^\[|\]$/g, "");
  const plain = isIP(bare) ? bare.toLowerCase() : domainToASCII(bare.replace(/\.$/, ""));
  if (plain === "" || (port !== null && (Number(port) < 1 || Number(port) > 65_535))) return null;
  return { name: plain, withAllBelow: wildcard !== "", port };
}

/** What is wrong with an entry, and how to write it; null when nothing is. */
export function hostProblem(entry: string): string | null {
  const host = parseHost(entry);
  if (host === null)
    return `${JSON.stringify(entry)} is not a host; use example.com, *.example.com or example.com:8080`;
  if (!isLoopback(host) || host.port !== null) return null;
  return `${JSON.stringify(entry)} needs a port, like ${entry.trim()}:8080: a server of this machine is reached at its own port`;
}

/** This machine, by a name that means another place in another network. */
export const isLoopback = ({ name }: NamedHost) => name === "localhost" || name === "127.0.0.1" || name === "::1";
