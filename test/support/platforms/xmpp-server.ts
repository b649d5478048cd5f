// Prosody on loopback with settings and accounts of its own, people who chat there, and a line to it that can break.
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { access, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { client, type XmlElement, type XmppClient, xml } from "@xmpp/client";

const PROSODY = "/usr/bin/prosody";
export const XMPP_PASSWORD = "an xmpp password";
export const ROOM = "team@rooms.xmpp.test";

export async function missingXmppServer(): Promise<string | null> {
  return access(PROSODY).then(
    () => null,
    () => "no XMPP server is installed (apt install prosody)",
  );
}

export interface XmppServer {
  /** `XMPP_SERVICE`: the line that can break. */
  readonly service: string;
  /** With `tls`: its certificate, for `NODE_EXTRA_CA_CERTS`. */
  readonly certificate: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Cuts the bot off, once the next message of its own has been read by the server. */
  breakAfterNextMessage(): void;
  /** Cuts the bot off without a word. */
  breakLine(): void;
  /** Somebody with a client of their own: `ann` or `ben` of xmpp.test. */
  person(name: string): Promise<XmppPerson>;
  release(): Promise<void>;
}

interface ServerOptions {
  readonly archive?: boolean;
  readonly tls?: boolean;
  /** An upload service. */
  readonly files?: boolean;
  /** Logins are hashed ten thousand times, as the protocol likes it: a quarter of a second of CPU for everyone who comes. */
  readonly hashed?: boolean;
}

export async function xmppServer({
  archive = true,
  tls = false,
  files = false,
  hashed = tls,
}: ServerOptions = {}): Promise<XmppServer> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-xmpp-")));
  const at = (...names: string[]) => join(root, ...names);
  const [port, linePort, httpPort] = [await freePort(), await freePort(), await freePort()];
  const accounts = at("data", "xmpp%2etest", "accounts");
  await mkdir(accounts, { recursive: true });
  for (const name of ["bot", "ann", "ben"])
    await writeFile(join(accounts, `${name}.dat`), `return { ["password"] = "${XMPP_PASSWORD}" };\n`);
  if (tls)
    await run("openssl", [
      ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=xmpp.test".split(" "),
      ...["-addext", "subjectAltName=DNS:xmpp.test", "-keyout", at("key.pem"), "-out", at("cert.pem")],
    ]);
  await writeFile(at("prosody.cfg.lua"), config({ at, port, httpPort, archive, tls, files, hashed }));
  let child: ChildProcess | null = null;
  const start = async () => {
    child = spawn(PROSODY, ["-F", "--config", at("prosody.cfg.lua")], { stdio: "ignore" });
    for (const end = Date.now() + 20_000; !(await accepts(port)); await sleep(20))
      if (child.exitCode !== null || Date.now() > end)
        throw new Error(`prosody did not start: ${await readFile(at("log"), "utf8").catch(() => "")}`);
  };
  const stop = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child?.once("exit", resolve));
    child.kill("SIGTERM");
    const timer = setTimeout(() => child?.kill("SIGKILL"), 5000);
    await gone;
    clearTimeout(timer);
  };
  await start();
  const line = await breakableLine(linePort, port);
  const people = new Set<XmppPerson>();
  return {
    service: `xmpp://127.0.0.1:${linePort}`,
    certificate: at("cert.pem"),
    ...{ start, stop },
    breakAfterNextMessage: line.breakAfterNextMessage,
    breakLine: line.breakNow,
    async person(name) {
      const person = await XmppPerson.connect(port, name);
      people.add(person);
      return person;
    },
    async release() {
      await Promise.all([...people].map((person) => person.leave()));
      await line.close();
      await stop();
      await rm(root, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

interface ConfigPlace extends Required<ServerOptions> {
  at(...names: string[]): string;
  readonly port: number;
  readonly httpPort: number;
}

function config({ at, port, httpPort, archive, tls, files, hashed }: ConfigPlace): string {
  return `run_as_root = true
daemonize = false
pidfile = "${at("pid")}"
data_path = "${at("data")}"
certificates = "${at()}"
interfaces = { "127.0.0.1" }
c2s_ports = { ${port} }
c2s_direct_tls_ports = {}
s2s_ports = {}
http_ports = { ${files ? httpPort : ""} }
http_interfaces = { "127.0.0.1" }
https_ports = {}
modules_enabled = { "roster", "saslauth", "disco", "presence", "message", "iq", "ping", "smacks", "offline"${archive ? ', "mam"' : ""}${tls ? ', "tls"' : ""} }
modules_disabled = { "s2s", "posix"${tls ? "" : ', "tls"'} }
authentication = "internal_plain"
c2s_require_encryption = ${tls}
allow_unencrypted_plain_auth = true
${hashed ? "" : 'disable_sasl_mechanisms = { "SCRAM-SHA-1", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS" }'}
storage = "internal"
log = { info = "${at("log")}" }
archive_expires_after = "1d"
smacks_hibernation_time = 3
${tls ? `ssl = { key = "${at("key.pem")}", certificate = "${at("cert.pem")}" }` : ""}
VirtualHost "xmpp.test"
Component "rooms.xmpp.test" "muc"
  ${archive ? 'modules_enabled = { "muc_mam" }' : ""}
  muc_room_default_public_jids = true
  muc_room_default_persistent = true
  muc_room_locking = false
  muc_log_by_default = true
${files ? `Component "files.xmpp.test" "http_file_share"\n  http_external_url = "http://127.0.0.1:${httpPort}/"\n  http_host = "127.0.0.1"\n` : ""}`;
}

/** A client that remembers every message it gets. */
export class XmppPerson {
  readonly address: string;
  readonly messages: XmlElement[] = [];
  /** Who lets us see them. */
  readonly presences: XmlElement[] = [];
  readonly #client: XmppClient;

  private constructor(port: number, name: string) {
    this.address = `${name}@xmpp.test`;
    this.#client = client({
      service: `xmpp://127.0.0.1:${port}`,
      ...{ domain: "xmpp.test", resource: "test", timeout: 10_000, username: name },
      credentials: (authenticate, mechanisms) =>
        authenticate(
          { username: name, password: XMPP_PASSWORD },
          mechanisms.find((one) => one !== "ANONYMOUS"),
        ),
    });
    this.#client.reconnect.stop();
    // The package miscounts what comes at once, and is thrown out for it: no counting here.
    const send = this.#client.send.bind(this.#client);
    this.#client.send = async (element) => {
      if (!element.is("enable", "urn:xmpp:sm:3")) await send(element);
    };
    this.#client.on("error", () => undefined);
    this.#client.on("stanza", (stanza) => {
      if (stanza.is("message")) this.messages.push(stanza);
      if (stanza.is("presence")) this.presences.push(stanza);
    });
  }

  static async connect(port: number, name: string): Promise<XmppPerson> {
    const person = new XmppPerson(port, name);
    await person.#client.start();
    await person.#client.send(xml("presence"));
    return person;
  }

  /** Without what was said there before, which was heard already. */
  async enter(room: string): Promise<void> {
    const nick = this.address.split("@")[0];
    const history = xml("history", { maxstanzas: "0" });
    await this.#client.send(
      xml("presence", { to: `${room}/${nick}` }, xml("x", { xmlns: "http://jabber.org/protocol/muc" }, history)),
    );
    await this.waitFor((stanza) => stanza.getChild("subject") !== undefined, "the subject of the room");
  }

  async say(to: string, text: string, { id, type = "chat", more }: SayOptions = {}): Promise<void> {
    await this.#client.send(xml("message", { to, type, id }, xml("body", {}, text), more));
  }

  async send(stanza: XmlElement): Promise<void> {
    await this.#client.send(stanza);
  }

  /** Texts that somebody wrote, in order, without what only corrects another. */
  heard(from: string): readonly string[] {
    return this.messages
      .filter((stanza) => stanza.attrs.from?.startsWith(from) && stanza.attrs.type !== "error")
      .filter((stanza) => !stanza.getChild("replace"))
      .flatMap((stanza) => stanza.getChildText("body") ?? []);
  }

  async waitFor(matches: (stanza: XmlElement) => boolean, what: string, ms = 60_000): Promise<XmlElement> {
    for (const end = Date.now() + ms; ; await sleep(20)) {
      const found = this.messages.find(matches);
      if (found) return found;
      if (Date.now() > end) throw new Error(`${what} did not come; there were:\n${this.messages.join("\n")}`);
    }
  }

  async leave(): Promise<void> {
    await this.#client.stop().catch(() => undefined);
  }
}

interface SayOptions {
  readonly id?: string;
  readonly type?: "chat" | "groupchat";
  readonly more?: XmlElement;
}

async function breakableLine(port: number, to: number) {
  const open = new Set<Socket>();
  let isArmed = false;
  const server = createServer((bot) => {
    const behind = connect(to, "127.0.0.1");
    let isMute = false;
    for (const socket of [bot, behind]) {
      open.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        open.delete(socket);
        bot.destroy();
        behind.destroy();
      });
    }
    bot.on("data", (data) => {
      behind.write(data);
      if (!isArmed || !data.includes("<body")) return;
      isArmed = false;
      isMute = true;
      // Long enough for the server to read it; its answers go nowhere.
      setTimeout(() => bot.destroy(), 300);
    });
    behind.on("data", (data) => {
      if (!isMute) bot.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    breakAfterNextMessage: () => {
      isArmed = true;
    },
    breakNow() {
      for (const socket of open) socket.destroy();
    },
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** Below those that the system hands out: while the server is down nobody else is given its port. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_240, 32_768);
    if (!(await accepts(port))) return port;
  }
}

function run(program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "ignore" });
    child.once("error", reject);
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${program} ended with code ${code}`))));
  });
}
