// A real mail system on loopback: Exim takes mail, Dovecot hands it out, both with folders and settings of their own. What the bot sends
// passes a proxy that can break the line at the worst moment.
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { access, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { createTransport, type SendMailOptions } from "nodemailer";
import PostalMime, { type Email } from "postal-mime";

export interface MailServers {
  readonly root: string;
  readonly imapPort: number;
  /** Plain, and what may break. */
  readonly smtpPort: number;
  readonly imapsPort: number;
  /** The certificate of both, for `NODE_EXTRA_CA_CERTS`. */
  readonly certificate: string;
  /** Hands a mail in, as anybody could: nothing of it is checked. */
  send(mail: SendMailOptions & { readonly envelopeFrom?: string }): Promise<void>;
  /** What arrived at an address, oldest first. */
  inbox(user: string): Promise<readonly Email[]>;
  /** The same, once there are so many. */
  waitForMail(user: string, count: number, seconds?: number): Promise<readonly Email[]>;
  /** Throws away what arrived there. */
  empty(user: string): Promise<void>;
  /** Breaks the line to the bot after its next mail was accepted, before it hears so. */
  loseNextReceipt(): void;
  /** Refuses connections of the bot that hand in mail. */
  refuseMail(refuse: boolean): void;
  /** As large providers do: what the bot sends is put into its Sent folder. */
  keepSentMail(): Promise<void>;
  /** While IMAP is stopped: the mails get new numbers, as after a move to another machine. */
  renumber(user: string): Promise<void>;
  stopImap(): Promise<void>;
  startImap(): Promise<void>;
  release(): Promise<void>;
}

export const MAIL_PASSWORD = "a mail password";
const USERS = ["bot", "alice", "bob"];
const DOVECOT = "/usr/sbin/dovecot";
const EXIM = "/usr/sbin/exim4";

export async function missingMailServers(): Promise<string | null> {
  try {
    await Promise.all([DOVECOT, EXIM].map((program) => access(program)));
    return null;
  } catch {
    return "no mail servers are installed (apt install dovecot-imapd exim4-daemon-light)";
  }
}

/** Users `bot`, `alice` and `bob` of `mail.test`. */
export async function mailServers({ idle = true, authResults = false } = {}): Promise<MailServers> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-mail-")));
  const at = (...names: string[]) => join(root, ...names);
  // Neither server touches mail as root.
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? "nobody" : userInfo().username;
  const group = isRoot ? "nogroup" : String(userInfo().gid);
  for (const name of ["mail", "run", "spool", "log"]) await mkdir(at(name), { recursive: true, mode: 0o755 });
  if (isRoot) {
    await run("chmod", ["755", root]);
    await run("chown", ["-R", `${user}:${group}`, at("mail"), at("spool"), at("log")]);
  }
  await run("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(" "),
    ...["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", at("key.pem"), "-out", at("cert.pem")],
  ]);
  await run("chmod", ["644", at("key.pem")]);
  const [imapPort, imapsPort, eximPort, smtpPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  await writeFile(at("users"), USERS.map((name) => `${name}@mail.test:{PLAIN}${MAIL_PASSWORD}::::::\n`).join(""));
  await writeFile(at("dovecot.conf"), dovecotConfig({ at, user, group, imapPort, imapsPort, idle }));
  await writeFile(at("exim.conf"), eximConfig({ at, user, group, port: eximPort, authResults }));

  const startDovecot = () => start(DOVECOT, ["-F", "-c", at("dovecot.conf")], imapPort, at("log", "dovecot.log"));
  const dovecot = { child: await startDovecot() };
  const exim = await start(EXIM, ["-bdf", "-q1s", "-C", at("exim.conf")], eximPort, at("log", "exim-mainlog"));
  /** The copy in the Sent folder comes a moment after the mail was taken. */
  const copied = async () => {
    if (
      !(await access(at("keep-sent")).then(
        () => true,
        () => false,
      ))
    )
      return;
    const copies = () => readdir(at("mail", "bot", ".Sent", "new")).catch(() => []);
    for (const end = Date.now() + 20_000; Date.now() < end && (await copies()).length === 0; )
      await new Promise((resolve) => setTimeout(resolve, 20));
  };
  const line = await breakableLine(smtpPort, eximPort, copied);
  const inbox = async (name: string) => {
    const files = await Promise.all(
      ["cur", "new"].map(async (part) => {
        const folder = at("mail", name, part);
        return (await readdir(folder).catch(() => [])).map((file) => join(folder, file));
      }),
    );
    const inOrder = files.flat().sort((a, b) => arrivalOf(a) - arrivalOf(b));
    return Promise.all(inOrder.map(async (file) => PostalMime.parse(await readFile(file))));
  };
  return {
    root,
    ...{ imapPort, imapsPort, smtpPort, inbox },
    certificate: at("cert.pem"),
    async send({ envelopeFrom, ...mail }) {
      const transport = createTransport({ host: "127.0.0.1", port: eximPort, ignoreTLS: true });
      const from = envelopeFrom ?? String(mail.from);
      await transport.sendMail({ ...mail, envelope: { from, to: String(mail.to ?? "bot@mail.test") } });
      transport.close();
    },
    async waitForMail(name, count, seconds = 20) {
      for (const end = Date.now() + seconds * 1000; ; ) {
        const mails = await inbox(name);
        if (mails.length >= count) return mails;
        if (Date.now() > end) throw new Error(`${name} has ${mails.length} of ${count} mails after ${seconds} seconds`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    async empty(name) {
      for (const part of ["cur", "new"]) {
        const folder = at("mail", name, part);
        for (const file of await readdir(folder).catch(() => [])) await rm(join(folder, file));
      }
    },
    loseNextReceipt: line.loseNextReceipt,
    refuseMail: line.refuse,
    keepSentMail: () => writeFile(at("keep-sent"), "yes"),
    async renumber(name) {
      for (const file of await readdir(at("mail", name)))
        if (file.startsWith("dovecot")) await rm(at("mail", name, file), { force: true });
    },
    stopImap: () => end(dovecot.child),
    async startImap() {
      dovecot.child = await startDovecot();
    },
    async release() {
      await Promise.all([end(dovecot.child), end(exim), line.close()]);
      await rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

/** Maildir names begin with the second; Exim adds the microsecond behind an `H` or `M`. */
function arrivalOf(path: string): number {
  const [, seconds = "0", micros = "0"] = /(\d+)\.[HM]?(\d+)/.exec(path.slice(path.lastIndexOf("/") + 1)) ?? [];
  return Number(seconds) + Number(micros) / 1e6;
}

interface Place {
  at(...names: string[]): string;
  readonly user: string;
  readonly group: string;
}

function dovecotConfig({
  at,
  user,
  group,
  imapPort,
  imapsPort,
  idle,
}: Place & { imapPort: number; imapsPort: number; idle: boolean }) {
  return `protocols = imap
listen = 127.0.0.1
base_dir = ${at("run")}
instance_name = ${at()}
log_path = ${at("log", "dovecot.log")}
ssl = yes
ssl_cert = <${at("cert.pem")}
ssl_key = <${at("key.pem")}
disable_plaintext_auth = no
default_internal_user = ${user}
default_login_user = ${user}
default_internal_group = ${group}
mail_location = maildir:${at("mail")}/%n
first_valid_uid = 1
maildir_broken_filename_sizes = yes
${idle ? "" : "imap_capability = IMAP4rev1 SASL-IR UIDPLUS SPECIAL-USE"}
passdb {
  driver = passwd-file
  args = scheme=PLAIN username_format=%u ${at("users")}
}
userdb {
  driver = static
  args = uid=${user} gid=${group} home=${at("mail")}/%n
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${imapPort}
  }
  inet_listener imaps {
    port = ${imapsPort}
  }
}
service anvil {
  chroot =
}
namespace inbox {
  inbox = yes
  mailbox Sent {
    special_use = \\Sent
    auto = create
  }
}
`;
}

function eximConfig({ at, user, group, port, authResults }: Place & { port: number; authResults: boolean }) {
  return `primary_hostname = mx.mail.test
daemon_smtp_ports = ${port}
local_interfaces = 127.0.0.1
spool_directory = ${at("spool")}
log_file_path = ${at("log")}/exim-%slog
pid_file_path = ${at("exim.pid")}
exim_user = ${user}
exim_group = ${group}
never_users = root
deliver_drop_privilege = true
keep_environment =
acl_smtp_rcpt = rcpt
acl_smtp_data = data
host_lookup =
rfc1413_query_timeout = 0s
auth_advertise_hosts = *
tls_advertise_hosts = *
tls_certificate = ${at("cert.pem")}
tls_privatekey = ${at("key.pem")}
message_size_limit = 20M
begin acl
rcpt:
  deny authenticated = *
       condition = \${if !eq{$sender_address}{$authenticated_id}}
       message = this is not your address
  deny domains = !mail.test
       message = relay not permitted
  accept local_parts = ${USERS.join(" : ")}
  deny message = Unknown user
data:
${authResults ? AUTH_RESULTS : ""}  accept
begin routers
copy:
  driver = accept
  senders = bot@mail.test
  condition = \${if exists{${at("keep-sent")}}}
  unseen
  transport = sent
local:
  driver = accept
  domains = mail.test
  local_parts = ${USERS.join(" : ")}
  transport = inbox
begin transports
inbox:
  driver = appendfile
  maildir_format
  directory = ${at("mail")}/$local_part_data
  create_directory
  user = ${user}
  group = ${group}
sent:
  driver = appendfile
  maildir_format
  directory = ${at("mail")}/bot/.Sent
  create_directory
  user = ${user}
  group = ${group}
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_condition = \${if and{{eq{$auth2}{bot@mail.test}}{eq{$auth3}{${MAIL_PASSWORD}}}}}
  server_set_id = $auth2
`;
}

/** Only what comes from alice's envelope is hers; a real server asks SPF and DKIM. */
const AUTH_RESULTS = `  warn senders = alice@mail.test
       add_header = :at_start:Authentication-Results: mx.mail.test; spf=pass smtp.mailfrom=alice@mail.test
  warn senders = ! alice@mail.test
       add_header = :at_start:Authentication-Results: mx.mail.test; spf=fail smtp.mailfrom=$sender_address
`;

/** Between the bot and Exim. A receipt is lost when the mail has arrived wherever it goes. */
async function breakableLine(port: number, to: number, arrived: () => Promise<void>) {
  const open = new Set<Socket>();
  let [losing, refusing] = [false, false];
  const server: Server = createServer((client) => {
    if (refusing) return client.destroy();
    const behind = connect(to, "127.0.0.1");
    for (const socket of [client, behind]) {
      open.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        open.delete(socket);
        client.destroy();
        behind.destroy();
      });
    }
    let tail = "";
    let ended = false;
    client.on("data", (data) => {
      tail = (tail + data.toString("latin1")).slice(-5);
      if (losing && tail === "\r\n.\r\n") ended = true;
      behind.write(data);
    });
    behind.on("data", (data) => {
      if (!ended) return client.write(data);
      losing = false;
      return void arrived().finally(() => client.destroy());
    });
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    loseNextReceipt: () => {
      losing = true;
    },
    refuse: (refuse: boolean) => {
      refusing = refuse;
    },
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Resolves when it answers on its port. */
async function start(program: string, args: readonly string[], port: number, log: string): Promise<ChildProcess> {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env: { PATH: "/usr/sbin:/usr/bin:/bin" } });
  let errors = "";
  child.stderr.on("data", (data) => {
    errors += data;
  });
  while (!(await greets(port))) {
    if (child.exitCode !== null)
      throw new Error(`${program} ended: ${errors.trim()} ${await readFile(log, "utf8").catch(() => "")}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
  await gone;
  clearTimeout(timer);
}

function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("data", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
}

/** Below those that the system hands out: while a server is down nobody else is given its port. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_240, 32_768);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

function run(program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "ignore" });
    child.once("error", reject);
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${program} ended with code ${code}`))));
  });
}
