// Files go to the upload service of the server (XEP-0363); the message names their address.
import { openAsBlob } from "node:fs";
import type { Logger } from "../../../../home/log.ts";
import { messageOf } from "../../../../kit/errors.ts";
import type { OutgoingFile } from "../../contract.ts";
import { callWeb, isNear } from "../../web-calls.ts";
import type { XmppConnection } from "./connection.ts";

const UPLOAD = "urn:xmpp:http:upload:0";
const DISCO_ITEMS = "http://jabber.org/protocol/disco#items";
/** Those that a service may ask for; it may not set others. */
const HEADERS = new Set(["authorization", "cookie", "expires"]);

type Uploaded = { readonly url: string } | { readonly problem: string; readonly isPassing: boolean };

export async function uploadFile(
  connection: XmppConnection,
  file: OutgoingFile,
  domain: string,
  log: Logger,
): Promise<Uploaded> {
  try {
    const service = await uploadService(connection, domain);
    if (service === null) return { problem: "the server takes no files", isPassing: false };
    const blob = await openAsBlob(file.path);
    const { xml } = connection;
    const request = xml("request", { xmlns: UPLOAD, filename: file.name, size: String(blob.size) });
    const slot = (await connection.request("get", service, request)).getChild("slot", UPLOAD);
    const put = slot?.getChild("put");
    const url = slot?.getChild("get")?.attrs.url;
    const target = URL.parse(put?.attrs.url ?? "");
    if (!put || !url || !target || !(target.protocol === "https:" || isNear(target.hostname)))
      return { problem: "the upload service gave no address that can be used", isPassing: false };
    const headers = put
      .getChildren("header")
      .map((one): [string, string] => [one.attrs.name ?? "", one.getText().replace(/[\r\n]/g, "")]);
    const allowed = Object.fromEntries(headers.filter(([name]) => HEADERS.has(name.toLowerCase())));
    const { status } = await callWeb(target, { method: "PUT", headers: allowed, body: blob, seconds: 120 });
    if (status === 200 || status === 201) return { url };
    return { problem: `the upload service answered with ${status}`, isPassing: status >= 500 };
  } catch (error) {
    log.warn(`${file.name} was not uploaded: ${messageOf(error)}`);
    return { problem: messageOf(error), isPassing: false };
  }
}

async function uploadService(connection: XmppConnection, domain: string): Promise<string | null> {
  const answer = await connection.request("get", domain, connection.xml("query", { xmlns: DISCO_ITEMS }));
  const items = answer.getChild("query", DISCO_ITEMS)?.getChildren("item") ?? [];
  for (const jid of [domain, ...items.flatMap(({ attrs }) => attrs.jid ?? [])])
    if ((await connection.features(jid)).has(UPLOAD)) return jid;
  return null;
}
