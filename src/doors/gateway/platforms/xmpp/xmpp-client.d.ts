// The part of @xmpp/client that is used here; the package has no types of its own.
declare module "@xmpp/client" {
  type Attributes = Readonly<Record<string, string | undefined>>;
  type Child = XmlElement | string | undefined | readonly XmlElement[];

  interface XmlElement {
    readonly name: string;
    readonly attrs: Record<string, string | undefined>;
    is(name: string, xmlns?: string): boolean;
    getChild(name: string, xmlns?: string): XmlElement | undefined;
    getChildren(name: string, xmlns?: string): XmlElement[];
    getChildElements(): XmlElement[];
    getChildText(name: string, xmlns?: string): string | null;
    getText(): string;
    toString(): string;
  }

  interface Entity {
    isSecure(): boolean;
  }

  interface XmppClient extends Entity {
    readonly jid: { toString(): string; bare(): { toString(): string } } | null;
    readonly status: string;
    readonly socket: { destroy?(): void; end(): void } | null;
    readonly reconnect: { stop(): void };
    readonly streamManagement: { readonly enabled: boolean };
    readonly iqCaller: { request(stanza: XmlElement, timeoutMs?: number): Promise<XmlElement> };
    readonly parser: { write(text: string): void } | null;
    start(): Promise<unknown>;
    stop(): Promise<unknown>;
    send(element: XmlElement): Promise<void>;
    /** Reads bytes of the socket. */
    _onData(data: Uint8Array | string): void;
    on(event: "stanza" | "nonza", listener: (element: XmlElement) => void): this;
    on(event: "error", listener: (error: Error) => void): this;
    on(event: "disconnect", listener: () => void): this;
  }

  type Authenticate = (
    credentials: { readonly username: string; readonly password: string },
    mechanism: string | undefined,
    userAgent?: XmlElement,
  ) => Promise<void>;

  interface ClientOptions {
    readonly service: string;
    readonly domain: string;
    readonly resource: string;
    /** Milliseconds for each step of opening a stream. */
    readonly timeout: number;
    readonly username: string;
    credentials(
      authenticate: Authenticate,
      mechanisms: readonly string[],
      fast: unknown,
      entity: Entity,
    ): Promise<void>;
  }

  function client(options: ClientOptions): XmppClient;
  function xml(name: string, attributes?: Attributes, ...children: readonly Child[]): XmlElement;
}
