// What an IP address is: out on the internet, near, or the place where a cloud machine keeps its keys.
import ipaddr from "ipaddr.js";

/** `none`: not an IP address at all. */
export type AddressKind = "public" | "private" | "metadata" | "none";

const METADATA = new Set(["169.254.169.254", "169.254.170.2", "169.254.169.253", "100.100.100.200", "fd00:ec2::254"]);

export function addressKind(text: string): AddressKind {
  if (!ipaddr.isValid(text)) return "none";
  const address = embedded(ipaddr.process(text));
  if (METADATA.has(address.toString())) return "metadata";
  if (address.range() !== "unicast") return "private";
  // Only this part of IPv6 was ever given out; the rest is reserved though its range has no name.
  return address.kind() === "ipv6" && (address.toByteArray()[0] ?? 0) >> 5 !== 1 ? "private" : "public";
}

/** Gateways reach the IPv4 address that these IPv6 addresses carry inside, so that one counts. */
function embedded(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address.kind() === "ipv4") return address;
  const bytes = address.toByteArray();
  const four = (start: number) => ipaddr.fromByteArray(bytes.slice(start, start + 4));
  switch (address.range()) {
    case "rfc6052":
      return isWellKnownNat64(bytes) ? four(12) : address;
    case "rfc6145":
      return four(12);
    case "6to4": {
      // Relays for this are gone; what is left of it is a disguise.
      const inner = four(2);
      return METADATA.has(inner.toString()) ? inner : address;
    }
    default:
      return address;
  }
}

/** 64:ff9b::/96; its neighbour 64:ff9b:1::/48 is for local use. */
function isWellKnownNat64(bytes: readonly number[]): boolean {
  return bytes.slice(4, 12).every((byte) => byte === 0);
}
