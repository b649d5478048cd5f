// A look-alike of Meta's Cloud API for WhatsApp: judges every request by its documented limits, calls the webhook with signed
// notifications, and repeats those that were not taken.
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";
import { judgeMessage, judgeUpload, type UploadedFile } from "./whatsapp-rules.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

export interface WhatsappMessage {
  readonly id: string;
  readonly to: string;
  readonly body: Body;
}

/** What came back for a notification. */
export interface Notified {
  readonly status: number;
  readonly body: string;
}

export class WhatsappServer {
  readonly phoneNumberId = "106540352242922";
  readonly token = "EAAJB-whatsapp-token-0123456789";
  readonly appSecret = "app-secret-0123456789";
  readonly verifyToken = "a word of mine";
  readonly sent: WhatsappMessage[] = [];
  /** Messages of people that were marked as read, and those somebody was shown to write for. */
  readonly read: string[] = [];
  readonly typing: string[] = [];
  readonly files = new Map<string, UploadedFile>();
  /** Numbers whose last message is more than a day old. */
  readonly quiet = new Set<string>();
  /** They are refused at once, or taken and reported as failed. */
  refusesQuiet: "at once" | "later" = "at once";
  /** Where notifications go; null: nowhere. Reports wait until it is set. */
  webhook: string | null = null;
  /** Reports are made, and wait. */
  holdsReports = false;
  readonly reports: { readonly key: string; readonly id: string; taken: boolean }[] = [];
  #server!: WebServer;
  #serial = 0;
  #isOver = false;

  static async start(): Promise<WhatsappServer> {
    const whatsapp = new WhatsappServer();
    whatsapp.#server = await startWebServer({ handle: (call) => whatsapp.#handle(call) });
    return whatsapp;
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
      WHATSAPP_CLOUD_ACCESS_TOKEN: this.token,
      WHATSAPP_CLOUD_PHONE_NUMBER_ID: this.phoneNumberId,
      WHATSAPP_CLOUD_VERIFY_TOKEN: this.verifyToken,
      WHATSAPP_CLOUD_APP_SECRET: this.appSecret,
      WHATSAPP_CLOUD_API_URL: this.url,
      WHATSAPP_CLOUD_WEBHOOK_PORT: "0",
    };
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#server.close();
  }

  textsTo(number: string): readonly string[] {
    return this.sent.filter(({ to, body }) => to === number && body.type === "text").map(({ body }) => body.text.body);
  }

  // --- what people do

  /** Somebody writes; repeated until it is taken, as Meta does. Resolves to the id of the message. */
  async say(from: string, text: string, more: Readonly<Record<string, unknown>> = {}): Promise<string> {
    return this.write(from, { type: "text", text: { body: text }, ...more });
  }

  async write(from: string, content: Readonly<Record<string, unknown>>): Promise<string> {
    const id = this.newId();
    await this.#untilTaken(
      this.messageCall([{ id, from, timestamp: String(Math.floor(Date.now() / 1000)), ...content }]),
    );
    return id;
  }

  newId(): string {
    return `wamid.${Buffer.from(`message ${++this.#serial}`).toString("base64")}`;
  }

  /** A notification about messages. */
  messageCall(messages: readonly Body[], more: Readonly<Record<string, unknown>> = {}): Body {
    const contacts = messages.map(({ from }) => ({ profile: { name: `Person ${from.slice(-2)}` }, wa_id: from }));
    return this.#call({ contacts, messages, ...more });
  }

  #call(value: Readonly<Record<string, unknown>>): Body {
    const metadata = { display_phone_number: "15550002222", phone_number_id: this.phoneNumberId };
    const change = { value: { messaging_product: "whatsapp", metadata, ...value }, field: "messages" };
    return { object: "whatsapp_business_account", entry: [{ id: "102290129340398", changes: [change] }] };
  }

  /** One notification, once. */
  async notify(body: Body, { signature }: { readonly signature?: string } = {}): Promise<Notified> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const right = `sha256=${createHmac("sha256", this.appSecret).update(text).digest("hex")}`;
    const response = await fetch(`${this.webhook}/whatsapp/webhook`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-hub-signature-256": signature ?? right },
      body: text,
    });
    return { status: response.status, body: await response.text() };
  }

  async #untilTaken(body: Body): Promise<void> {
    while (!this.#isOver) {
      const status =
        this.webhook === null
          ? 0
          : await this.notify(body).then(
              ({ status: code }) => code,
              () => 0,
            );
      if (status === 200) return;
      await sleep(150);
    }
  }

  #report(message: WhatsappMessage, status: string, errors?: readonly Body[]): void {
    const key = message.body.biz_opaque_callback_data;
    const report = { key, id: message.id, taken: false };
    this.reports.push(report);
    const statuses = [
      {
        ...{ id: message.id, status, timestamp: String(Math.floor(Date.now() / 1000)), recipient_id: message.to },
        ...(key === undefined ? {} : { biz_opaque_callback_data: key }),
        ...(errors ? { errors } : {}),
      },
    ];
    void (async () => {
      while (this.holdsReports && !this.#isOver) await sleep(50);
      await this.#untilTaken(this.#call({ statuses }));
      report.taken = true;
    })();
  }

  // --- the interface

  #handle(call: Call): Answer | Promise<Answer> {
    const { method, path, headers } = call;
    if (headers.authorization !== `Bearer ${this.token}`) return refused(401, 190, "Invalid OAuth access token.");
    const [, version = "", ...rest] = path.split("/");
    if (path.startsWith("/files/")) return this.#bytes(path.slice("/files/".length));
    if (!/^v\d{2}\.0$/.test(version)) return refused(400, 2500, `Unknown path components: ${path}`);
    const [id = "", what] = rest;
    if (method === "GET" && id === this.phoneNumberId && !what)
      return { status: 200, body: { id, display_phone_number: "+1 555-000-2222", verified_name: "Hermes" } };
    if (method === "GET" && !what) return this.#file(id);
    if (method === "POST" && id === this.phoneNumberId && what === "media") return this.#upload(call);
    if (method === "POST" && id === this.phoneNumberId && what === "messages") return this.#message(call.json);
    return refused(400, 100, "Unsupported request");
  }

  #message(body: Body): Answer {
    if (body.status === "read") {
      if (!/^wamid\./.test(body.message_id)) return refused(400, 100, "Invalid parameter: message_id");
      this.read.push(body.message_id);
      if (body.typing_indicator) this.typing.push(body.message_id);
      return { status: 200, body: { success: true } };
    }
    const problem = judgeMessage(body, this.files);
    if (problem) return refused(400, problem.code, problem.message);
    const isQuiet = this.quiet.has(body.to);
    if (isQuiet && this.refusesQuiet === "at once") return refused(400, 131047, "Re-engagement message");
    const message = { id: this.newId(), to: body.to, body };
    this.sent.push(message);
    if (isQuiet) this.#report(message, "failed", [{ code: 131047, title: "Re-engagement message" }]);
    else this.#report(message, "sent");
    return {
      status: 200,
      body: {
        messaging_product: "whatsapp",
        contacts: [{ input: body.to, wa_id: body.to }],
        messages: [{ id: message.id }],
      },
    };
  }

  async #upload({ body, headers }: Call): Promise<Answer> {
    const type = String(headers["content-type"]);
    const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
    const file = form.get("file");
    const problem = judgeUpload(form);
    if (problem || !(file instanceof File)) return refused(400, problem?.code ?? 100, problem?.message ?? "no file");
    const id = this.addFile(file.type, Buffer.from(await file.arrayBuffer()));
    return { status: 200, body: { id } };
  }

  /** A file of somebody, or one that was uploaded. */
  addFile(type: string, bytes: Buffer): string {
    const id = String(900_000 + ++this.#serial);
    this.files.set(id, { type, bytes, name: "" });
    return id;
  }

  #file(id: string): Answer {
    const file = this.files.get(id);
    if (!file) return refused(400, 100, `Object with ID '${id}' does not exist`);
    const { type, bytes } = file;
    const body = {
      messaging_product: "whatsapp",
      url: `${this.url}/files/${id}`,
      mime_type: type,
      file_size: bytes.length,
      id,
    };
    return { status: 200, body };
  }

  #bytes(id: string): Answer {
    const file = this.files.get(id);
    return file ? { status: 200, headers: { "content-type": file.type }, body: file.bytes } : { status: 404 };
  }
}

const refused = (status: number, code: number, message: string): Answer => ({
  status,
  body: { error: { message: `(#${code}) ${message}`, type: "OAuthException", code, fbtrace_id: "A1" } },
});
