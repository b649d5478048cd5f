// A connection to an IRC server, from the first byte until we have a nick and are logged in. Lines that come afterwards go to the adapter.
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Logger } from "../../../../home/log.ts";
import type { Clock } from "../../../../kit/clock.ts";
import { codeOf, messageOf } from "../../../../kit/errors.ts";
import { PlatformError } from "../../contract.ts";
import type { IrcSettings } from "./entry.ts";
import { decodeBytes, foldCase, type IrcLine, parseLine } from "./protocol.ts";

/** Lines that are longer come from nobody we want to hear. */
const MAX_LINE = 16_384;
const MAX_NICK_TRIES = 6;
/** The shortest that a server may allow. */
const SHORT_NICK = 9;
const QUIET_MS = 90_000;
const DEAD_MS = 180_000;
const WANTED = ["message-tags", "server-time", "account-tag"];

interface ConnectionOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends it, at whatever stage it is. */
  readonly signal: AbortSignal;
  onLine(line: IrcLine): void;
  /** Once, with the reason, when a connection that was registered is gone. */
  onEnd(error: PlatformError): void;
}

export class IrcConnection {
  readonly #settings: IrcSettings;
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #registered = Promise.withResolvers<void>();
  readonly #offered = new Set<string>();
  readonly #over = new AbortController();
  #nick: string;
  #tries = 0;
  #buffer: Buffer = Buffer.alloc(0);
  #isReady = false;
  #lastHeard: number;
  /** What the server said before it hung up. */
  #farewell = "";
  #mapping: "ascii" | "rfc1459" = "rfc1459";
  #loggedIn = false;

  private constructor(settings: IrcSettings, options: ConnectionOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#nick = settings.nick;
    this.#lastHeard = options.clock.now();
    options.signal.addEventListener("abort", () => this.close(), { once: true });
    const { host, port, tls } = settings;
    const servername = isIP(host) ? {} : { servername: host };
    this.#socket = tls ? connectTls({ host, port, ...servername }) : connectPlain({ host, port });
    this.#socket.on(tls ? "secureConnect" : "connect", () => this.#begin());
    this.#socket.on("data", (data: Buffer) => this.#read(data));
    this.#socket.on("error", (error) => this.#end(error));
    this.#socket.on("close", () => this.#end(new Error(this.#farewell || "the server closed the connection")));
  }

  /** Resolves when the server has welcomed us; rejects with a `PlatformError`. */
  static async open(settings: IrcSettings, options: ConnectionOptions): Promise<IrcConnection> {
    const connection = new IrcConnection(settings, options);
    await connection.#registered.promise;
    return connection;
  }

  get nick(): string {
    return this.#nick;
  }

  /** Logged in to the account of the nick while connecting. */
  get isLoggedIn(): boolean {
    return this.#loggedIn;
  }

  get isOpen(): boolean {
    return this.#isReady && !this.#over.signal.aborted;
  }

  fold(name: string): string {
    return foldCase(name, this.#mapping);
  }

  /** False when nothing can leave any more. */
  write(line: string): boolean {
    if (this.#over.signal.aborted || !this.#socket.writable) return false;
    // Whatever is in it, it stays one line.
    this.#socket.write(`${line.replace(/[\r\n\0]/g, " ")}\r\n`);
    return true;
  }

  close(): void {
    if (this.#over.signal.aborted) return;
    if (this.#isReady) this.write("QUIT :bye");
    this.#over.abort();
    this.#socket.destroySoon();
    this.#registered.reject(new PlatformError("stopped", "the connection was closed", { retryable: true }));
  }

  #begin(): void {
    const { serverPassword } = this.#settings;
    this.write("CAP LS 302");
    if (serverPassword !== "") this.write(`PASS :${serverPassword}`);
    this.write(`NICK ${this.#nick}`);
    const user = this.#settings.nick.replace(/[^a-z0-9]/gi, "").slice(0, 9) || "hermes";
    this.write(`USER ${user} 0 * :Hermes`);
  }

  #read(data: Buffer): void {
    this.#lastHeard = this.#options.clock.now();
    this.#buffer = this.#buffer.length === 0 ? data : Buffer.concat([this.#buffer, data]);
    for (let end = this.#buffer.indexOf(10); end !== -1; end = this.#buffer.indexOf(10)) {
      const line = parseLine(decodeBytes(this.#buffer.subarray(0, end)));
      this.#buffer = this.#buffer.subarray(end + 1);
      if (line) this.#handle(line);
    }
    if (this.#buffer.length > MAX_LINE) this.#buffer = Buffer.alloc(0);
  }

  #handle(line: IrcLine): void {
    const { command, params, from } = line;
    if (command === "PING") return void this.write(`PONG :${params.at(-1) ?? ""}`);
    if (command === "ERROR") this.#farewell = params.at(-1) ?? "";
    if (command === "NICK" && this.fold(from) === this.fold(this.#nick)) this.#nick = params[0] ?? this.#nick;
    if (!this.#isReady) this.#register(line);
    if (command === "005" && params.some((word) => /^CASEMAPPING=ascii$/i.test(word))) this.#mapping = "ascii";
    this.#options.onLine(line);
  }

  #register({ command, params }: IrcLine): void {
    switch (command) {
      case "CAP":
        return this.#negotiate(params);
      case "AUTHENTICATE":
        return this.#authenticate();
      case "903":
        this.#loggedIn = true;
        return void this.write("CAP END");
      case "902":
      case "904":
      case "905":
      case "906":
        return this.#refuse("auth", `refused the password of ${this.#settings.nick}; check IRC_NICKSERV_PASSWORD`);
      case "464":
        return this.#refuse("auth", "refused the password of the server; check IRC_SERVER_PASSWORD");
      case "465":
        return this.#refuse("banned", `does not let us in: ${params.at(-1) ?? "banned"}`);
      case "432":
      case "433":
      case "436":
      case "437":
        return this.#tryAnotherNick(command === "432");
      case "001":
        this.#nick = params[0] ?? this.#nick;
        return;
      case "376":
      case "422":
        this.#isReady = true;
        this.#watch().catch((error) => this.#end(error));
        return this.#registered.resolve();
    }
  }

  #negotiate([, kind = "", ...rest]: readonly string[]): void {
    const names = (rest.at(-1) ?? "").split(" ").map((name) => name.split("=")[0] ?? "");
    if (kind === "LS") {
      for (const name of names) this.#offered.add(name);
      if (rest[0] === "*") return;
      const wanted = [...WANTED, ...(this.#settings.nickservPassword === "" ? [] : ["sasl"])];
      const request = wanted.filter((name) => this.#offered.has(name));
      this.write(request.length === 0 ? "CAP END" : `CAP REQ :${request.join(" ")}`);
    } else if (kind === "ACK" && names.includes("sasl")) this.write("AUTHENTICATE PLAIN");
    else if (kind === "ACK" || kind === "NAK") this.write("CAP END");
  }

  #authenticate(): void {
    const { nick, nickservPassword } = this.#settings;
    const answer = Buffer.from(`${nick}\0${nick}\0${nickservPassword}`).toString("base64");
    for (let at = 0; at < answer.length; at += 400) this.write(`AUTHENTICATE ${answer.slice(at, at + 400)}`);
    if (answer.length % 400 === 0) this.write("AUTHENTICATE +");
  }

  #tryAnotherNick(isTooLong: boolean): void {
    if (++this.#tries > MAX_NICK_TRIES)
      return this.#refuse("nick", `takes no nick like ${this.#settings.nick}; set another one as IRC_NICKNAME`);
    const base = isTooLong ? this.#nick.slice(0, SHORT_NICK) : this.#nick;
    // A name of full length makes room for its mark.
    const next = isTooLong ? base : this.#tries > 2 ? `${base.slice(0, SHORT_NICK - 2)}_${this.#tries}` : `${base}_`;
    if (isTooLong && next === this.#nick)
      return this.#refuse("nick", `does not take the nick ${this.#nick}; set another one as IRC_NICKNAME`);
    this.#nick = next;
    this.write(`NICK ${next}`);
  }

  #refuse(code: string, what: string): void {
    this.#end(new PlatformError(code, `${this.#settings.host} ${what}`, { retryable: false }));
  }

  /** A line that is dead looks like one where nobody writes. */
  async #watch(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#options.clock.sleep(QUIET_MS / 3, signal).catch(() => undefined);
      const quiet = this.#options.clock.now() - this.#lastHeard;
      if (quiet > DEAD_MS) return this.#end(new Error("it no longer answers"));
      if (quiet > QUIET_MS) this.write(`PING :${this.#nick}`);
    }
  }

  #end(error: unknown): void {
    if (this.#over.signal.aborted) return;
    const problem = this.#problem(error);
    this.#over.abort();
    this.#socket.destroy();
    if (this.#isReady) this.#options.onEnd(problem);
    else this.#registered.reject(problem);
    this.#options.log.debug(`the connection to ${this.#settings.host} ended`, error);
  }

  #problem(error: unknown): PlatformError {
    if (error instanceof PlatformError) return error;
    const { host, port } = this.#settings;
    const code = codeOf(error) ?? "";
    if (/CERT|SELF_SIGNED|ERR_TLS/.test(code))
      return new PlatformError(
        "tls",
        `${host}:${port} has a certificate that is not trusted (${code}); check IRC_SERVER, or add the certificate to NODE_EXTRA_CA_CERTS`,
        { retryable: false, cause: error },
      );
    const reason = this.#farewell || messageOf(error);
    // Some say so by number, others only when they hang up.
    if (!this.#isReady && /\bpassword\b/i.test(this.#farewell))
      return new PlatformError(
        "auth",
        `${host} refused the password of the server (${reason}); check IRC_SERVER_PASSWORD`,
        { retryable: false, cause: error },
      );
    return new PlatformError("connection", `${host}:${port} cannot be reached: ${reason}`, {
      retryable: true,
      cause: error,
    });
  }
}
