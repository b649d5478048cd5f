// `hermes webhook`: the routes that other programs call, and a delivery to try one.
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { messageOf } from "../../kit/errors.ts";
import { isRecord, parseJson } from "../../kit/json.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { entry } from "./platforms/webhook/entry.ts";
import { addressOf, exposure, NO_AUTH, type Route } from "./platforms/webhook/routes.ts";
import { signedHeaders } from "./platforms/webhook/signatures.ts";
import { Routes, routeRow, SUBSCRIPTIONS, subscribe, unsubscribe } from "./platforms/webhook/subscriptions.ts";
import { GatewaySettings } from "./settings.ts";
import { readStatus } from "./state-file.ts";
import { CallFailedError, callWeb } from "./web-calls.ts";

interface SubscribeFlags {
  readonly prompt?: string;
  readonly description?: string;
  readonly events?: string;
  readonly skills?: string;
  readonly deliver?: string;
  readonly deliverChatId?: string;
  readonly deliverOnly?: true;
  readonly secret?: string;
  readonly json?: true;
}

export function define(command: Command, ctx: CliContext): void {
  const json = (child: Command) => child.option("--json", "machine-readable");
  command.description("let other programs start a turn: each route is a URL that they call");
  json(command.command("subscribe").alias("add"))
    .description("add or replace a route; a running gateway uses it at once")
    .argument("<name>", "the name of the route: the last part of its URL")
    .option("--prompt <TEXT>", "the message for the agent; {a.b} inserts a field of the payload, {__raw__} all of it")
    .option("--events <LIST>", "events to react to, separated by commas; default all")
    .option("--skills <LIST>", "skills to load, separated by commas")
    .option("--deliver <TARGET>", "where the answer goes: log (default), github_comment, or as in hermes send")
    .option("--deliver-chat-id <ID>", "the chat on that platform; {a.b} inserts a field of the payload")
    .option("--deliver-only", "send the filled-in prompt as it is, without the agent")
    .option("--secret <TEXT>", "the secret that deliveries are signed with; default: a new one")
    .option("--description <TEXT>", "a note for yourself")
    .action((name: string, flags: SubscribeFlags) => add(name, flags, ctx));
  json(command.command("list", { isDefault: true }))
    .description("list the routes, those in config.yaml and the subscribed ones")
    .action(({ json: asJson }: { readonly json?: true }) => list(asJson === true, ctx));
  command
    .command("remove")
    .description("remove a subscribed route")
    .argument("<name>", "the name from the list")
    .action((name: string) => remove(name, ctx));
  json(command.command("test"))
    .description("send a signed delivery to a route; exit code 0 accepted, 1 not")
    .argument("<name>", "the name from the list")
    .option("--payload <JSON>", "the JSON object to send, or @FILE")
    .action((name: string, flags: { readonly payload?: string; readonly json?: true }) => tryOut(name, flags, ctx));
}

async function opened({ home }: CliContext) {
  const option = (await GatewaySettings.open(home)).option(entry.name);
  const file = home.paths.at(SUBSCRIPTIONS);
  return { option, file, routes: new Routes(option, file, home.log.child("webhook")) };
}

/** Where a running gateway listens, else where one would. */
async function addressFor({ option }: Pick<Opened, "option">, { home, clock, store }: CliContext) {
  const { running, platforms } = await readStatus(home, await store(), clock);
  const listening = platforms.webhook?.listening ?? null;
  const { host, port } = addressOf(option);
  return { url: listening ?? `http://${host}:${port}`, isListening: listening !== null, isRunning: running };
}

type Opened = Awaited<ReturnType<typeof opened>>;

const listed = (words: string | undefined) =>
  (words ?? "")
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

async function add(name: string, flags: SubscribeFlags, ctx: CliContext): Promise<void> {
  const { io, clock } = ctx;
  const here = await opened(ctx);
  const known = await here.routes.all();
  const taken = known.filter(({ source }) => source === "config").map((route) => route.name);
  const { prompt, description, deliver, deliverChatId: chat, secret } = flags;
  const asked = {
    ...{ name, events: listed(flags.events), skills: listed(flags.skills) },
    ...(prompt === undefined ? {} : { prompt }),
    ...(description === undefined ? {} : { description }),
    ...(deliver === undefined ? {} : { deliver }),
    ...(chat === undefined ? {} : { deliver_extra: { chat_id: chat } }),
    ...(flags.deliverOnly ? { deliver_only: true } : {}),
    ...(secret === undefined ? {} : { secret }),
  };
  const route = await subscribe(here.file, asked, { now: clock.now(), taken });
  const { url, isListening, isRunning } = await addressFor(here, ctx);
  const row = routeRow(route, url);
  const problem = exposure(route, addressOf(here.option).host);
  if (problem !== null) io.err(`warning: the route refuses deliveries: ${problem}\n`);
  if (flags.json) return io.out(`${JSON.stringify({ ...row, secret: route.secret }, null, 2)}\n`, { asIs: true });
  const isNew = known.every((one) => one.name !== name);
  io.out(isNew ? `✓ The route ${name} was added.\n` : `✓ The route ${name} was replaced.\n`);
  io.out(`  Address: ${row.url}\n`);
  if (route.secret !== NO_AUTH) {
    io.out(`  Secret: ${route.secret}\n`);
    io.out("  It is shown only now; enter both where the sender asks for them.\n");
  }
  if (!isListening) io.out(`${howToListen(here, isRunning)}\n`);
  io.out(`Try it: hermes webhook test ${name}\n`);
}

/** Why nobody takes deliveries now, and what to do. */
function howToListen({ option }: Pick<Opened, "option">, isRunning: boolean): string {
  if (entry.identity(option) === null)
    return "Webhooks are off. Enable them: hermes config set WEBHOOK_ENABLED true, then hermes gateway restart";
  return isRunning
    ? "The gateway takes no webhooks now: hermes gateway status says why."
    : "No gateway is running. Start it: hermes gateway start";
}

async function list(asJson: boolean, ctx: CliContext): Promise<void> {
  const { io } = ctx;
  const here = await opened(ctx);
  const routes = await here.routes.all();
  const { url, isListening, isRunning } = await addressFor(here, ctx);
  const rows = routes.map((route) => routeRow(route, url));
  if (asJson) return io.out(`${JSON.stringify({ routes: rows }, null, 2)}\n`, { asIs: true });
  if (routes.length === 0) return io.out("No routes. Add one: hermes webhook subscribe NAME --prompt TEXT\n");
  const { host } = addressOf(here.option);
  for (const [at, route] of routes.entries()) io.out(`${line(route, rows[at]?.url ?? "", host)}\n`, { asIs: true });
  if (!isListening) io.out(`${howToListen(here, isRunning)}\n`);
}

function line(route: Route, url: string, host: string): string {
  const { name, events, deliver, deliverOnly, enabled, source, skills } = route;
  const wrong = route.problem ?? exposure(route, host);
  const facts = [
    events.length > 0 ? events.join(", ") : "all events",
    `→ ${deliver || "log"}${deliverOnly ? " (without the agent)" : ""}`,
    ...(skills.length > 0 ? [`skills: ${skills.join(", ")}`] : []),
    source === "config" ? "config.yaml" : "subscribed",
    ...(enabled ? [] : ["disabled"]),
  ];
  return `${name}  ${url}\n  ${facts.join(" · ")}${wrong === null ? "" : `\n  ⚠ refuses deliveries: ${wrong}`}`;
}

async function remove(name: string, ctx: CliContext): Promise<void> {
  const { routes, file } = await opened(ctx);
  const found = await routeNamed(name, routes);
  if (found.source === "config")
    throw new ExitError(
      1,
      `The route ${name} is in config.yaml: hermes config unset platforms.webhook.extra.routes.${name}`,
    );
  await unsubscribe(file, name);
  ctx.io.out(`✓ The route ${name} was removed.\n`);
}

async function routeNamed(name: string, routes: Routes): Promise<Route> {
  const found = await routes.find(name);
  if (found !== null) return found;
  const near = didYouMean(
    name,
    (await routes.all()).map((route) => route.name),
  );
  const hint = near.length > 0 ? ` Did you mean ${near.map((one) => `"${one}"`).join(" or ")}?` : "";
  throw new ExitError(1, `There is no route "${name}".${hint} hermes webhook list shows all.`);
}

async function tryOut(
  name: string,
  flags: { readonly payload?: string; readonly json?: true },
  ctx: CliContext,
): Promise<void> {
  const { io, clock } = ctx;
  const here = await opened(ctx);
  const route = await routeNamed(name, here.routes);
  const body = JSON.stringify(await payloadOf(flags.payload, route));
  const { url, isListening, isRunning } = await addressFor(here, ctx);
  if (!isListening) throw new ExitError(1, howToListen(here, isRunning));
  const address = `${url}/webhooks/${encodeURIComponent(name)}`;
  const sign = route.secret === NO_AUTH || route.secret === "" ? {} : signedHeaders(body, route.secret, clock.now());
  const reply = await callWeb(address, {
    method: "POST",
    headers: { "content-type": "application/json", ...sign },
    body,
  }).catch((error: unknown) => {
    if (!(error instanceof CallFailedError)) throw error;
    throw new ExitError(1, `${address} could not be called: ${messageOf(error)}.`);
  });
  const { status, text } = reply;
  const said = isRecord(reply.json) ? reply.json : {};
  if (flags.json) io.out(`${JSON.stringify({ http_status: status, ...said })}\n`, { asIs: true });
  else io.out(`HTTP ${status}: ${text}\n`, { asIs: true });
  if (status >= 400) throw new ExitError(1);
  if (flags.json) return;
  if (said.status === "ignored")
    io.out(
      "The route does not want this event: its events or filters leave it out. Send another one with --payload.\n",
    );
  if (said.status === "accepted") io.out(`The answer goes to: ${route.deliver || "log"}\n`);
}

/** Something that the route reacts to, as far as its list of events says what. */
async function payloadOf(written: string | undefined, { events }: Route): Promise<Readonly<Record<string, unknown>>> {
  if (written === undefined)
    return {
      event_type: events.find((event) => event !== "*") ?? "test",
      message: "A test delivery of hermes webhook test.",
    };
  const text = written.startsWith("@") ? await fileText(written.slice(1)) : written;
  const value = parseJson(text);
  if (isRecord(value)) return value;
  throw new ExitError(2, "--payload takes an object in JSON, or @FILE with one.");
}

async function fileText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new ExitError(2, `${path} cannot be read: ${messageOf(error)}.`);
  }
}
