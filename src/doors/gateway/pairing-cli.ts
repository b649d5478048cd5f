// `hermes pairing`: who asked to talk to the agent, and who may.
import type { Command } from "commander";
import type { OpenHome } from "../../home/open.ts";
import { profileCommand } from "../../home/paths.ts";
import { localMinute, plural } from "../../kit/formats.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { withoutControls } from "../../kit/strip-ansi.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import type { ChatTarget } from "./contract.ts";
import type { Payload } from "./delivery.ts";
import { Pairing } from "./pairing.ts";
import { builtinPlatforms } from "./registry.ts";
import { accountOf, GatewaySettings } from "./settings.ts";

interface Flags {
  readonly json?: true;
}

export function define(command: Command, ctx: CliContext): void {
  const json = (child: Command) => child.option("--json", "machine-readable");
  command.description("let people talk to the agent in chats: they get a code, you approve it");
  json(command.command("list", { isDefault: true }))
    .description("list pending requests and approved people; codes are never shown")
    .argument("[platform]", "telegram, discord, slack, ...")
    .action((platform: string | undefined, flags: Flags) => list(platform, flags, ctx));
  json(command.command("approve"))
    .description("approve a request; exit code 0 approved, 1 wrong, expired or locked")
    .argument("<platform>", "telegram, discord, slack, ...")
    .argument("<code>", "the code they received, or the request id from the list")
    .action((platform: string, code: string, flags: Flags) => approve(platform, code, flags, ctx));
  json(command.command("revoke"))
    .description("revoke a person's access")
    .argument("<platform>", "telegram, discord, slack, ...")
    .argument("<user>", "the user id from the list")
    .action((platform: string, user: string, flags: Flags) => revoke(platform, user, flags, ctx));
  json(command.command("clear-pending"))
    .description("discard all pending requests")
    .argument("[platform]", "telegram, discord, slack, ...")
    .action((platform: string | undefined, flags: Flags) => clear(platform, flags, ctx));
}

const pairingOf = ({ home, clock }: CliContext) => new Pairing(home.paths, clock);

/** As platforms are written in the files. One that is neither built in nor has anybody waiting or approved is a slip of the hand. */
async function platformName(word: string, ctx: CliContext): Promise<string> {
  const name = word.trim().toLowerCase();
  const names = (await builtinPlatforms()).map((entry) => entry.name);
  if (names.includes(name)) return name;
  const { pending, approved } = await pairingOf(ctx).list();
  if ([...pending, ...approved].some(({ platform }) => platform === name)) return name;
  const near = didYouMean(name, names);
  const hint = near.length > 0 ? ` Did you mean ${near.map((one) => `"${one}"`).join(" or ")}?` : "";
  throw new ExitError(2, `There is no platform "${word}".${hint}`);
}

async function list(platform: string | undefined, { json }: Flags, ctx: CliContext): Promise<void> {
  const { io } = ctx;
  const found = await pairingOf(ctx).list(platform === undefined ? undefined : await platformName(platform, ctx));
  if (json) return io.out(`${JSON.stringify(found, null, 2)}\n`);
  const { pending, approved } = found;
  if (pending.length + approved.length === 0)
    return io.out("No pending requests, nobody approved. Strangers who write to the bot get a pairing code.\n");
  if (pending.length > 0)
    io.out(`Pending (approve one: ${profileCommand(ctx.home.paths, "pairing approve PLATFORM CODE")}):\n`);
  for (const { platform: name, request_id, user_id, user_name, age_minutes } of pending)
    io.out(`  ${name}  ${person(user_id, user_name)}  request ${request_id}, ${age_minutes} min ago\n`);
  if (approved.length > 0) io.out("Approved:\n");
  for (const { platform: name, user_id, user_name, approved_at } of approved)
    io.out(`  ${name}  ${person(user_id, user_name)}  since ${localMinute(approved_at)}\n`);
}

/** Strangers choose their names: nothing in one may break the line. */
function person(id: string, name: string): string {
  const clean = withoutControls(name).replace(/\s+/g, " ").trim();
  return clean === "" ? id : `${id} (${clean})`;
}

async function approve(word: string, code: string, { json }: Flags, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const platform = await platformName(word, ctx);
  const answer = await pairingOf(ctx).approve(platform, code);
  if (json) {
    const { type } = answer;
    const facts = type === "approved" ? answer.person : type === "locked" ? { locked_until: answer.until } : {};
    io.out(
      `${JSON.stringify({ approved: type === "approved", reason: type === "approved" ? null : type, ...facts }, null, 2)}\n`,
    );
  }
  if (answer.type === "locked")
    throw new ExitError(
      1,
      `Too many wrong codes: approvals for ${platform} are locked until ${localMinute(answer.until)}.`,
    );
  if (answer.type === "wrong")
    throw new ExitError(
      1,
      `The code is wrong or expired. "${profileCommand(home.paths, `pairing list ${platform}`)}" lists pending requests.`,
    );
  const { user_id, user_name, approved_at } = answer.person;
  const place = answer.asked ?? (await directChat(platform, user_id, home));
  if (place !== null) {
    const { account, ...target } = place;
    const cause = `notice:pairing:${platform}:${user_id}:${approved_at}`;
    const payload: Payload = { type: "text", text: "You are in. Write to me any time." };
    // The gateway sends it, now or when it runs.
    const work = await (await ctx.store()).work();
    await work.promise([{ cause, part: 0, platform, account, target, payload }]);
  }
  if (json) return;
  const told = place === null ? "" : " and is notified";
  io.out(`✓ ${person(user_id, user_name)} may talk to the agent on ${platform}${told}.\n`);
}

/** Of somebody who asked an older version: the chat with the id of the person. Null when no bot is set up there. */
async function directChat(
  platform: string,
  userId: string,
  home: OpenHome,
): Promise<(ChatTarget & { readonly account: string }) | null> {
  const entry = (await builtinPlatforms()).find(({ name }) => name === platform);
  const identity = entry?.identity((await GatewaySettings.open(home)).option(platform)) ?? null;
  if (!entry || identity === null) return null;
  return { ...(entry.parseTarget(userId) ?? { chatId: userId }), account: accountOf(identity) };
}

async function revoke(word: string, user: string, { json }: Flags, ctx: CliContext): Promise<void> {
  const platform = await platformName(word, ctx);
  const revoked = await pairingOf(ctx).revoke(platform, user);
  if (json) ctx.io.out(`${JSON.stringify({ revoked, platform, user_id: user }, null, 2)}\n`);
  else if (revoked) ctx.io.out(`✓ ${user} may no longer talk to the agent on ${platform}.\n`);
  if (!revoked)
    throw new ExitError(
      1,
      `${user} is not approved on ${platform}. "${profileCommand(ctx.home.paths, "pairing list")}" shows who is.`,
    );
}

async function clear(word: string | undefined, { json }: Flags, ctx: CliContext): Promise<void> {
  const cleared = await pairingOf(ctx).clearPending(word === undefined ? undefined : await platformName(word, ctx));
  if (json) return ctx.io.out(`${JSON.stringify({ cleared }, null, 2)}\n`);
  ctx.io.out(cleared === 0 ? "No pending requests.\n" : `✓ Discarded ${plural(cleared, "request")}.\n`);
}
