// The stream to the server. A stanza counts as received when it was dealt with, not when it was read: what is lost with us, the server still has.
import type { XmlElement, XmppClient } from "@xmpp/client";
import type { Logger } from "../../../../home/log.ts";
import { type Clock, within } from "../../../../kit/clock.ts";
import { codeOf, messageOf } from "../../../../kit/errors.ts";
import { type AdapterHost, PlatformError } from "../../contract.ts";
import type { XmppSettings } from "./entry.ts";

const CONNECT_MS = 30_000;
const STEP_MS = 15_000;
const IQ_MS = 30_000;
const PING_EVERY_MS = 60_000;
const STOP_MS = 2000;

const SM = "urn:xmpp:sm:3";
const PING = "urn:xmpp:ping";

export type Xml = typeof import("@xmpp/client").xml;

interface ConnectionOptions {
  /** Its promise resolves when the stanza may be acknowledged. */
  onStanza(stanza: XmlElement): Promise<void> | null;
  /** Once, when the stream is gone. */
  onEnd(error: PlatformError): void;
}

export class XmppConnection {
  readonly xml: Xml;
  /** Without the resource. */
  readonly address: string;
  readonly #client: XmppClient;
  readonly #settings: XmppSettings;
  readonly #options: ConnectionOptions;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #over = new AbortController();
  /** Stanzas since both sides began to count. */
  #received = 0;
  /** Numbers of those that are not dealt with yet, in order. */
  readonly #open = new Set<number>();
  #owesAck = false;
  #isReady = false;
  #error: unknown = null;

  private constructor(
    library: typeof import("@xmpp/client"),
    settings: XmppSettings,
    host: AdapterHost,
    options: ConnectionOptions,
  ) {
    this.xml = library.xml;
    this.#settings = settings;
    this.#options = options;
    this.#log = host.log;
    this.#clock = host.clock;
    const { service, domain, resource, username, password } = settings;
    this.address = `${username}@${domain}`;
    this.#client = library.client({
      ...{ service, domain, resource, username, timeout: STEP_MS },
      credentials: async (authenticate, mechanisms, _fast, entity) => {
        const isSecure = entity.isSecure();
        if (!isSecure && !settings.mayBePlain)
          throw new PlatformError("tls", `${service} offers no encryption; the password was not sent`, {
            retryable: false,
          });
        const known = mechanisms.filter((name) => name !== "ANONYMOUS");
        await authenticate({ username, password }, known.find((name) => isSecure || name !== "PLAIN") ?? known[0]);
      },
    });
    this.#prepare(this.#client);
  }

  /** Resolves when the account is online; nobody sees that before it says so. */
  static async open(host: AdapterHost, settings: XmppSettings, options: ConnectionOptions): Promise<XmppConnection> {
    const library = await host.package("@xmpp/client", () => import("@xmpp/client"));
    const connection = new XmppConnection(library, settings, host, options);
    await connection.#start();
    return connection;
  }

  #prepare(client: XmppClient): void {
    // The gateway connects again, with a new adapter.
    client.reconnect.stop();
    // The package turns each chunk into text by itself, and breaks characters that lie across two of them.
    const decoder = new TextDecoder();
    client._onData = (data) =>
      client.parser?.write(typeof data === "string" ? data : decoder.decode(data, { stream: true }));
    // It also acknowledges what it has read, and counts wrong when much comes at once; we count for ourselves, and only what is stored.
    const send = client.send.bind(client);
    client.send = (element) => {
      if (element.is("a", SM)) element.attrs.h = String(this.#handled());
      return send(element);
    };
    client.on("error", (error) => {
      this.#error = error;
      this.#log.debug("xmpp", error);
    });
    client.on("disconnect", () => this.#end(this.#error ?? new Error("the server closed the connection")));
    client.on("stanza", (stanza) => this.#receive(stanza));
    client.on("nonza", (element) => {
      if (element.is("enabled", SM)) this.#received = 0;
    });
  }

  async #start(): Promise<void> {
    try {
      await within(() => this.#client.start(), CONNECT_MS, this.#clock);
      // Answered behind what opens the stream: the counters of both sides begin now.
      await this.ping();
    } catch (error) {
      this.#over.abort();
      await this.#shut();
      throw this.#problem(this.#error ?? error);
    }
    this.#isReady = true;
    if (!this.#client.streamManagement.enabled) this.#watch().catch((error) => this.#end(error));
  }

  get isOpen(): boolean {
    return this.#isReady && !this.#over.signal.aborted && this.#client.status === "online";
  }

  /** Rejects when it cannot leave; then nobody knows how much of it did. */
  async send(stanza: XmlElement): Promise<void> {
    await this.#client.send(stanza);
  }

  /** The answer of a request; rejects with the error that the other side names, or when none comes. */
  request(type: "get" | "set", to: string | undefined, ...children: readonly XmlElement[]): Promise<XmlElement> {
    return this.#client.iqCaller.request(this.xml("iq", { type, to }, ...children), IQ_MS);
  }

  /** Resolves when the server has dealt with everything that was sent before. */
  async ping(): Promise<void> {
    const { domain } = this.#settings;
    try {
      await this.request("get", domain, this.xml("ping", { xmlns: PING }));
    } catch (error) {
      // A server that knows no pings has answered too.
      if (!(error instanceof Error) || error.name !== "StanzaError") throw error;
    }
  }

  /** Features of a server, an account or a room. */
  async features(of: string): Promise<ReadonlySet<string>> {
    const query = this.xml("query", { xmlns: "http://jabber.org/protocol/disco#info" });
    try {
      const answer = await this.request("get", of, query);
      const found = answer.getChild("query")?.getChildren("feature") ?? [];
      return new Set(found.flatMap(({ attrs }) => (attrs.var === undefined ? [] : [attrs.var])));
    } catch (error) {
      this.#log.debug(`${of} does not say what it can do`, error);
      return new Set();
    }
  }

  async close(): Promise<void> {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    await this.#shut();
  }

  async #shut(): Promise<void> {
    try {
      await within(() => this.#client.stop(), STOP_MS, this.#clock);
    } catch (error) {
      this.#log.debug("the stream did not end gently", error);
      this.#client.socket?.destroy?.();
    }
  }

  #receive(stanza: XmlElement): void {
    if (this.#over.signal.aborted) return;
    const number = ++this.#received;
    const work = this.#options.onStanza(stanza);
    if (work === null) return;
    this.#open.add(number);
    work.then(
      () => {
        this.#open.delete(number);
        if (this.#owesAck && this.isOpen) this.#acknowledge();
      },
      (error) => {
        const about = { retryable: true, cause: error };
        this.#end(new PlatformError("store", `a message could not be stored: ${messageOf(error)}`, about));
      },
    );
  }

  /** How many stanzas were dealt with, without a gap. */
  #handled(): number {
    const [first] = this.#open;
    this.#owesAck = first !== undefined;
    return first === undefined ? this.#received : first - 1;
  }

  /** The server asked while we were still at work. */
  #acknowledge(): void {
    this.#owesAck = false;
    this.#client
      .send(this.xml("a", { xmlns: SM, h: "0" }))
      .catch((error) => this.#log.debug("xmpp acknowledgement", error));
  }

  /** Servers without stream management do not tell that a line is dead. */
  async #watch(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#clock.sleep(PING_EVERY_MS, signal).catch(() => undefined);
      if (!signal.aborted) await this.ping();
    }
  }

  #end(error: unknown): void {
    if (this.#over.signal.aborted || !this.#isReady) return;
    this.#over.abort();
    this.#client.socket?.destroy?.();
    this.#options.onEnd(this.#problem(error));
  }

  #problem(error: unknown): PlatformError {
    if (error instanceof PlatformError) return error;
    const { service } = this.#settings;
    const about = { retryable: false, cause: error };
    if (error instanceof Error && error.name === "SASLError")
      return new PlatformError(
        "auth",
        `${service} refused the login of ${this.address}; check XMPP_JID and XMPP_PASSWORD`,
        about,
      );
    const code = codeOf(error) ?? "";
    if (/CERT|SELF_SIGNED|ERR_TLS/.test(code))
      return new PlatformError(
        "tls",
        `${service} has a certificate that is not trusted (${code}); check XMPP_SERVICE, or add the certificate to NODE_EXTRA_CA_CERTS`,
        about,
      );
    return new PlatformError("connection", `${service} cannot be reached: ${messageOf(error)}`, {
      retryable: true,
      cause: error,
    });
  }
}
