// What ssh says when it cannot connect, in words that lead further.
import { UserError } from "../kit/errors.ts";

export interface SshTarget {
  readonly host: string;
  readonly user: string;
  readonly port: number;
}

/** Likely to go away by itself: worth another try after a while. A shared connection that breaks may take ssh along without a word. */
export function isTransient(errors: string): boolean {
  return /^\s*$|connection (refused|timed out|reset|closed)|no route to host|network is unreachable|operation timed out|broken pipe|kex_exchange|mux_client|session open refused|temporary failure/i.test(
    errors,
  );
}

export function sshError({ host, user, port }: SshTarget, errors: string): UserError {
  const said = errors.trim().split("\n").slice(-3).join(" ");
  const where = `${user ? `${user}@` : ""}${host}:${port}`;
  if (/permission denied/i.test(errors)) {
    return new UserError(
      `${where} refused the login: ${said}. Passwords are not asked for; the key must be accepted there (ssh-copy-id) and named in ` +
        "terminal.ssh_key or offered by your agent, and terminal.ssh_user must be right",
    );
  }
  if (/host key verification failed|identification has changed/i.test(errors)) {
    return new UserError(
      `The host key of ${where} is not the one that is known: another machine may be answering in its name. If you know why it ` +
        `changed, forget the old one: ssh-keygen -R ${port === 22 ? host : `[${host}]:${port}`}`,
    );
  }
  if (/could not resolve/i.test(errors)) {
    return new UserError(`There is no host called ${host}: ${said}. Correct terminal.ssh_host`);
  }
  if (/identity file .* not accessible|no such identity/i.test(errors)) {
    return new UserError(`The key for ${where} cannot be read: ${said}. Correct terminal.ssh_key`);
  }
  return new UserError(
    `No connection to ${where}: ${said || "ssh said nothing"}. Check that it is up and that terminal.ssh_host and terminal.ssh_port are right`,
  );
}
