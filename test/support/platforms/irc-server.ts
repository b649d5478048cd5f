// ngIRCd on loopback with settings of its own, people who talk there, and a small look-alike for what it does not have: accounts, tags, SASL.
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { access, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const NGIRCD = "/usr/sbin/ngircd";

export async function missingIrcServer(): Promise<string | null> {
  return access(NGIRCD).then(
    () => null,
    () => "no IRC server is installed (apt install ngircd)",
  );
}

export interface IrcServer {
  readonly port: number;
  /** Ends it and every connection; `start` opens it again on the same port. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Somebody with a client of their own. */
  person(nick: string): Promise<IrcPerson>;
  release(): Promise<void>;
}

interface ServerOptions {
  readonly password?: string;
  readonly nickLength?: number;
}

export async function ircServer({ password = "", nickLength = 20 }: ServerOptions = {}): Promise<IrcServer> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-irc-")));
  const port = await freePort();
  const config = join(root, "ngircd.conf");
  await writeFile(
    config,
    `[Global]
Name = irc.test
Info = test
Listen = 127.0.0.1
Ports = ${port}
${password === "" ? "" : `Password = ${password}`}
MotdPhrase = hello
ServerUID = 65534
ServerGID = 65534
[Limits]
MaxConnectionsIP = 0
MaxNickLength = ${nickLength}
MaxJoins = 20
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
SyslogFacility = local1
[Channel]
Name = #secret
Modes = +nk key
`,
    { mode: 0o644 },
  );
  let child: ChildProcess | null = null;
  const people = new Set<IrcPerson>();
  const start = async () => {
    child = spawn(NGIRCD, ["-n", "-f", config], { stdio: "ignore" });
    for (const end = Date.now() + 10_000; !(await accepts(port)); await sleep(20))
      if (child.exitCode !== null || Date.now() > end) throw new Error("ngircd did not start");
  };
  const stop = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child?.once("exit", resolve));
    child.kill("SIGTERM");
    await gone;
  };
  await start();
  return {
    ...{ port, start, stop },
    async person(nick) {
      const person = await IrcPerson.join(port, nick, password);
      people.add(person);
      return person;
    },
    async release() {
      for (const person of people) person.leave();
      await stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** A client as plain as can be: writes lines, remembers lines. */
export class IrcPerson {
  readonly lines: string[] = [];
  readonly #socket: Socket;
  #rest = "";

  private constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1");
    this.#socket.setEncoding("utf8");
    this.#socket.on("error", () => this.#socket.destroy());
    this.#socket.on("data", (text) => {
      const parts = (this.#rest + text).split("\r\n");
      this.#rest = parts.pop() ?? "";
      for (const line of parts) {
        if (line.startsWith("PING")) this.write(line.replace("PING", "PONG"));
        this.lines.push(line);
      }
    });
  }

  static async join(port: number, nick: string, password = ""): Promise<IrcPerson> {
    const person = new IrcPerson(port);
    if (password !== "") person.write(`PASS ${password}`);
    person.write(`NICK ${nick}`);
    person.write(`USER ${nick} 0 * :${nick}`);
    await person.waitFor(/^:\S+ (?:376|422) /);
    return person;
  }

  write(line: string): void {
    this.#socket.write(`${line}\r\n`);
  }

  async enter(channel: string): Promise<void> {
    this.write(`JOIN ${channel}`);
    await this.waitFor(new RegExp(`^:\\S+ 366 \\S+ ${channel.split(" ")[0]} `, "i"));
  }

  say(target: string, text: string): void {
    this.write(`PRIVMSG ${target} :${text}`);
  }

  /** What was said to us or to a channel by a nick, in order. */
  heard(from: string, target?: string): readonly string[] {
    return this.lines.flatMap((line) => {
      const [, nick, to, text] = /^:([^!\s]+)\S* PRIVMSG (\S+) :(.*)$/.exec(line) ?? [];
      return nick === from && (target === undefined || to === target) && text !== undefined ? [text] : [];
    });
  }

  /** The first such line from here on, or already there. */
  async waitFor(pattern: RegExp, ms = 60_000): Promise<string> {
    for (const end = Date.now() + ms; ; await sleep(20)) {
      const found = this.lines.find((line) => pattern.test(line));
      if (found !== undefined) return found;
      if (Date.now() > end) throw new Error(`no line ${pattern}; there were:\n${this.lines.join("\n")}`);
    }
  }

  leave(): void {
    this.#socket.destroy();
  }
}

export interface AccountServer {
  readonly port: number;
  /** Everything clients wrote, in order. */
  readonly lines: readonly string[];
  /** A line from the server to whoever is connected. */
  say(line: string): void;
  /** Hangs up as soon as it has read such a line. */
  hangUpAt(line: RegExp): void;
  release(): Promise<void>;
}

/** A network with accounts, by the rules of IRCv3: capabilities, SASL PLAIN, tags. Without `sasl` it has a NickServ. */
export async function accountServer(account: {
  readonly name: string;
  readonly password: string;
  readonly sasl: boolean;
}): Promise<AccountServer> {
  const lines: string[] = [];
  const sockets = new Set<Socket>();
  let last: RegExp | null = null;
  const expected = Buffer.from(`${account.name}\0${account.name}\0${account.password}`).toString("base64");
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setEncoding("utf8");
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    const reply = (line: string) => socket.write(`${line}\r\n`);
    let [nick, rest] = ["*", ""];
    const welcome = () => {
      reply(`:irc.test 001 ${nick} :Welcome`);
      reply(`:irc.test 005 ${nick} CASEMAPPING=ascii NICKLEN=30 :are supported`);
      reply(`:irc.test 422 ${nick} :no message of the day`);
    };
    const answer = (line: string) => {
      const [command = "", ...words] = line.split(" ");
      if (line === "CAP LS 302") {
        reply(`:irc.test CAP * LS * :message-tags server-time`);
        reply(`:irc.test CAP * LS :account-tag${account.sasl ? " sasl=PLAIN" : ""}`);
      } else if (line.startsWith("CAP REQ :")) reply(`:irc.test CAP * ACK :${line.slice(9)}`);
      else if (line === "CAP END") welcome();
      else if (command === "NICK") nick = words[0] ?? nick;
      else if (line === "AUTHENTICATE PLAIN") reply("AUTHENTICATE +");
      else if (command === "AUTHENTICATE")
        reply(`:irc.test ${words[0] === expected ? "903" : "904"} ${nick} :SASL authentication`);
      else if (command === "PING") reply(`:irc.test PONG irc.test ${words.join(" ")}`);
      else if (command === "JOIN") reply(`:${nick}!b@host JOIN ${words[0]}`);
      else if (line === `PRIVMSG NickServ :IDENTIFY ${account.password}`)
        reply(`:NickServ!s@services NOTICE ${nick} :You are now identified`);
    };
    socket.on("data", (text) => {
      const parts = (rest + text).split("\r\n");
      rest = parts.pop() ?? "";
      for (const line of parts) {
        lines.push(line);
        if (last?.test(line)) {
          last = null;
          socket.destroy();
          return;
        }
        answer(line);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    lines,
    say(line) {
      for (const socket of sockets) socket.write(`${line}\r\n`);
    },
    hangUpAt(line) {
      last = line;
    },
    async release() {
      for (const socket of sockets) socket.destroy();
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
