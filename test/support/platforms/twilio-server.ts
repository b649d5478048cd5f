// A look-alike of Twilio for text messages: its REST interface, its media, and its calls about messages that come in.
import { createHmac } from "node:crypto";
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";

export interface TwilioMessage {
  readonly sid: string;
  readonly to: string;
  readonly from: string;
  readonly body: string;
  readonly createdAt: number;
}

const MAX_BODY = 1600;

/** What came back for a call about a message. */
export interface Called {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export class TwilioServer {
  readonly sid = "AC00000000000000000000000000000001";
  readonly token = "twilio-auth-token-0123456789";
  readonly number = "+15550001111";
  /** What the owner entered in the console; only the way there is another one. */
  readonly webhookUrl = "https://hermes.example.com/webhooks/twilio";
  readonly sent: TwilioMessage[] = [];
  /** Numbers that said STOP. */
  readonly stopped = new Set<string>();
  readonly media = new Map<string, { readonly type: string; readonly bytes: Buffer }>();
  #server!: WebServer;
  #serial = 0;

  static async start(): Promise<TwilioServer> {
    const twilio = new TwilioServer();
    twilio.#server = await startWebServer({ handle: (call) => twilio.#handle(call) });
    return twilio;
  }

  get url(): string {
    return this.#server.url;
  }

  get faults(): WebServer["faults"] {
    return this.#server.faults;
  }

  get calls(): readonly Call[] {
    return this.#server.calls;
  }

  /** The variables that set the platform up. */
  get env(): Readonly<Record<string, string>> {
    return {
      TWILIO_ACCOUNT_SID: this.sid,
      TWILIO_AUTH_TOKEN: this.token,
      TWILIO_PHONE_NUMBER: this.number,
      TWILIO_API_URL: this.url,
      SMS_WEBHOOK_URL: this.webhookUrl,
      SMS_WEBHOOK_PORT: "0",
    };
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  textsTo(number: string): readonly string[] {
    return this.sent.filter(({ to }) => to === number).map(({ body }) => body);
  }

  /** A picture or another file that somebody attached; answers with its address. */
  attach(type: string, bytes: Buffer): string {
    const id = `ME${++this.#serial}`;
    this.media.set(id, { type, bytes });
    return `${this.url}/2010-04-01/Accounts/${this.sid}/Messages/MM1/Media/${id}`;
  }

  /** The fields of a message as Twilio posts them. */
  fields(from: string, body: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
    const id = `SM${String(++this.#serial).padStart(32, "0")}`;
    return {
      ...{ ToCountry: "US", SmsMessageSid: id, NumMedia: "0", SmsSid: id, SmsStatus: "received", To: this.number },
      ...{ Body: body, FromCountry: "US", NumSegments: "1", MessageSid: id, AccountSid: this.sid, From: from },
      ...{ ApiVersion: "2010-04-01" },
      ...more,
    };
  }

  /** Calls the gateway as Twilio does. */
  async call(
    listener: string,
    fields: Readonly<Record<string, string>>,
    signature = this.sign(fields),
  ): Promise<Called> {
    const response = await fetch(`${listener}/webhooks/twilio`, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded; charset=UTF-8",
        "user-agent": "TwilioProxy/1.1",
        ...(signature === "" ? {} : { "x-twilio-signature": signature }),
      },
      body: new URLSearchParams(fields),
    });
    return { status: response.status, type: response.headers.get("content-type") ?? "", body: await response.text() };
  }

  sign(fields: Readonly<Record<string, string>>): string {
    const names = Object.keys(fields).sort();
    const text = this.webhookUrl + names.map((name) => name + fields[name]).join("");
    return createHmac("sha1", this.token).update(text, "utf8").digest("base64");
  }

  #handle(call: Call): Answer {
    const { method, path, headers } = call;
    const basic = `Basic ${Buffer.from(`${this.sid}:${this.token}`).toString("base64")}`;
    if (headers.authorization !== basic) return refused(401, 20003, "Authenticate");
    const root = `/2010-04-01/Accounts/${this.sid}`;
    if (path === `${root}.json`) return { status: 200, body: { sid: this.sid, status: "active" } };
    if (path === `${root}/Messages.json`) return method === "POST" ? this.#take(call) : this.#list(call);
    const file = this.media.get(path.split("/").at(-1) ?? "");
    if (method === "GET" && file) return { status: 200, headers: { "content-type": file.type }, body: file.bytes };
    return refused(404, 20404, `The requested resource ${path} was not found`);
  }

  #take({ headers, body }: Call): Answer {
    const form = new URLSearchParams(body.toString());
    const [to, from, text] = [form.get("To") ?? "", form.get("From") ?? "", form.get("Body") ?? ""];
    if (headers["content-type"] !== "application/x-www-form-urlencoded") return refused(400, 20001, "Not a form");
    if (!/^\+[1-9]\d{6,14}$/.test(to)) return refused(400, 21211, `Invalid 'To' Phone Number: ${to}`);
    if (from !== this.number) return refused(400, 21606, `${from} is not a valid message-capable number`);
    if (text === "") return refused(400, 21602, "Message body is required.");
    if (text.length > MAX_BODY)
      return refused(400, 21617, "The concatenated message body exceeds the 1600 character limit");
    if (this.stopped.has(to)) return refused(400, 21610, "Attempt to send to unsubscribed recipient");
    const message = { sid: `SM${++this.#serial}`, to, from, body: text, createdAt: Date.now() };
    this.sent.push(message);
    return { status: 201, body: asJson(message) };
  }

  /** Newest first; a message that was just taken has no time of sending. */
  #list({ query }: Call): Answer {
    const wanted = this.sent.filter(
      ({ to, from }) =>
        to === (query.get("To") ?? to) && from === (query.get("From") ?? from) && !query.has("DateSent>"),
    );
    const messages = wanted.toReversed().slice(0, Number(query.get("PageSize") ?? 50));
    return { status: 200, body: { messages: messages.map(asJson), page: 0, next_page_uri: null } };
  }
}

const asJson = ({ sid, to, from, body, createdAt }: TwilioMessage) => ({
  ...{ sid, to, from, body, direction: "outbound-api", status: "queued", date_sent: null },
  date_created: new Date(createdAt).toUTCString(),
});

const refused = (status: number, code: number, message: string): Answer => ({
  status,
  body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status },
});
