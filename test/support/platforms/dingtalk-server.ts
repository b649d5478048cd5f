// DingTalk as a robot sees it: the stream over a WebSocket, webhooks of conversations, the API with its tokens.
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";

type Json = Readonly<Record<string, unknown>>;

export interface DingTalkMessage {
  /** `webhook:CONVERSATION`, `group:CONVERSATION` or `user:STAFF`. */
  readonly to: string;
  readonly kind: string;
  readonly text: string;
  readonly param: Json;
}

const SECONDS_TO_ACK = 60;

export class DingTalkServer {
  static readonly ID = "dingclient";
  static readonly SECRET = "ding-secret";
  readonly sent: DingTalkMessage[] = [];
  readonly acknowledged: string[] = [];
  readonly violations: string[] = [];
  readonly files = new Map<string, Buffer>();
  /** Milliseconds that a webhook is valid. */
  webhookLife = 5_400_000;
  isSecretValid = true;
  #tokens = new Set<string>();
  #tickets = new Set<string>();
  #sockets = new Set<WebSocket>();
  #next = 0;
  #web: WebServer | null = null;

  static async start(): Promise<DingTalkServer> {
    const server = new DingTalkServer();
    const sockets = new WebSocketServer({ noServer: true });
    server.#web = await startWebServer({
      handle: (call) => server.#handle(call),
      upgrade: (request, socket: Duplex, head) => {
        const ticket = new URL(request.url ?? "/", "http://x").searchParams.get("ticket") ?? "";
        // A ticket is good for one connection.
        if (!server.#tickets.delete(ticket)) return socket.end("HTTP/1.1 401 Unauthorized\r\n\r\n");
        return sockets.handleUpgrade(request, socket, head, (client) => server.#serve(client));
      },
    });
    return server;
  }

  get web(): WebServer {
    if (!this.#web) throw new Error("not started");
    return this.#web;
  }

  get url(): string {
    return this.web.url;
  }

  close(): Promise<void> {
    return this.web.close();
  }

  get connections(): number {
    return this.#sockets.size;
  }

  expireTokens(): void {
    this.#tokens.clear();
  }

  /** Somebody writes; the id of the message is resolved to. */
  say(
    staff: string,
    text: string,
    more: { conversation?: string; group?: boolean; mentioned?: boolean; data?: Json; id?: string } = {},
  ): string {
    const id = more.id ?? `msg${++this.#next}==`;
    const conversation = more.conversation ?? (more.group ? "cidGroup1==" : `cidDirect-${staff}==`);
    const data = {
      ...{ conversationId: conversation, conversationType: more.group ? "2" : "1", chatbotUserId: "$:LWCP_v1:$bot" },
      ...{
        msgId: id,
        senderNick: `Nick ${staff}`,
        senderStaffId: staff,
        senderId: `$:LWCP_v1:$${staff}`,
        isAdmin: false,
      },
      ...{ createAt: Date.now(), isInAtList: more.mentioned ?? more.group !== true, robotCode: DingTalkServer.ID },
      ...(more.group ? { conversationTitle: "Team" } : {}),
      sessionWebhook: `${this.url}/robot/sendBySession?session=${encodeURIComponent(conversation)}`,
      sessionWebhookExpiredTime: Date.now() + this.webhookLife,
      ...{ msgtype: "text", text: { content: ` ${text}` } },
      ...more.data,
    };
    this.push({ type: "CALLBACK", topic: "/v1.0/im/bot/messages/get", data: JSON.stringify(data), id: `push-${id}` });
    return id;
  }

  push({
    type,
    topic,
    data,
    id = `push${++this.#next}`,
  }: {
    type: string;
    topic: string;
    data: string;
    id?: string;
  }): void {
    const headers = {
      topic,
      messageId: id,
      contentType: "application/json",
      time: String(Date.now()),
      appId: "a",
      connectionId: "c",
    };
    const frame = JSON.stringify({ specVersion: "1.0", type, headers, data });
    for (const socket of this.#sockets) socket.send(frame);
  }

  /** As the server does every few hours. */
  askToReconnect(): void {
    this.push({
      type: "SYSTEM",
      topic: "disconnect",
      data: JSON.stringify({ reason: "persistent connection is timeout" }),
    });
  }

  closeSockets(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  #serve(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket)).on("error", () => undefined);
    socket.on("message", (raw) => {
      const { code, headers, message, data } = JSON.parse(String(raw));
      if (code !== 200 || typeof headers?.messageId !== "string" || message !== "OK" || typeof data !== "string")
        this.violations.push(`bad acknowledgement within ${SECONDS_TO_ACK} s: ${String(raw).slice(0, 200)}`);
      this.acknowledged.push(String(headers?.messageId));
    });
  }

  #handle(call: Call): Answer {
    const { method, path, json } = call;
    if (method !== "POST") return failed(405, "MethodNotAllowed", "POST is wanted");
    if (path === "/v1.0/gateway/connections/open") return this.#openConnection(json);
    if (path === "/v1.0/oauth2/accessToken") {
      if (json.appKey !== DingTalkServer.ID || json.appSecret !== DingTalkServer.SECRET || !this.isSecretValid)
        return failed(400, "invalidClientIdOrSecret", "无效的clientId或者clientSecret");
      const token = `token${++this.#next}`;
      this.#tokens.add(token);
      return fine({ accessToken: token, expireIn: 7200 });
    }
    if (path === "/robot/sendBySession") return this.#bySession(call);
    if (path === "/media/upload") return this.#upload(call);
    if (!this.#tokens.has(String(call.headers["x-acs-dingtalk-access-token"])))
      return failed(401, "InvalidAuthentication", "不合法的access_token");
    if (path === "/v1.0/robot/messageFiles/download")
      return this.files.has(String(json.downloadCode)) && json.robotCode === DingTalkServer.ID
        ? fine({ downloadUrl: `${this.url}/files/${json.downloadCode}` })
        : failed(400, "invalidParameter.downloadCode", "no such file");
    if (path === "/v1.0/robot/groupMessages/send" || path === "/v1.0/robot/oToMessages/batchSend")
      return this.#byApi(path, json);
    return failed(404, "InvalidAction.NotFound", "Specified api is not found");
  }

  #openConnection(json: Json): Answer {
    const subscriptions = Array.isArray(json.subscriptions) ? json.subscriptions : [];
    if (json.clientId !== DingTalkServer.ID || json.clientSecret !== DingTalkServer.SECRET || !this.isSecretValid)
      return failed(401, "authFailed", "鉴权失败");
    if (!subscriptions.some(({ type, topic }) => type === "CALLBACK" && topic === "/v1.0/im/bot/messages/get"))
      return failed(400, "invalidParameter", "subscriptions");
    const ticket = `ticket${++this.#next}`;
    this.#tickets.add(ticket);
    return fine({ endpoint: `${this.url.replace("http", "ws")}/connect`, ticket });
  }

  #bySession({ query, json }: Call): Answer {
    const session = query.get("session");
    const text = json.msgtype === "markdown" ? textIn(json.markdown, "text") : textIn(json.text, "content");
    const title = json.msgtype === "markdown" ? textIn(json.markdown, "title") : "-";
    if (session === null || session === "expired")
      return fine({ errcode: 300_001, errmsg: "session not exist or expired" });
    if (text === "" || title === "") return fine({ errcode: 400_105, errmsg: "unsupported msgtype or empty content" });
    this.sent.push({ to: `webhook:${session}`, kind: String(json.msgtype), text, param: json });
    return fine({ errcode: 0, errmsg: "ok" });
  }

  #byApi(path: string, json: Json): Answer {
    const { robotCode, msgKey, msgParam, openConversationId, userIds } = json;
    if (robotCode !== DingTalkServer.ID || typeof msgKey !== "string" || typeof msgParam !== "string")
      return failed(400, "invalidParameter", "robotCode, msgKey and msgParam are required");
    const param = JSON.parse(msgParam);
    const text = String(param.text ?? param.content ?? param.mediaId ?? param.photoURL ?? "");
    if (path.includes("group")) {
      if (typeof openConversationId !== "string") return failed(400, "invalidParameter", "openConversationId");
      this.sent.push({ to: `group:${openConversationId}`, kind: msgKey, text, param });
      return fine({ processQueryKey: `key${++this.#next}` });
    }
    if (!Array.isArray(userIds) || userIds.length === 0) return failed(400, "invalidParameter", "userIds");
    const unknown = userIds.filter((user) => String(user).startsWith("nobody"));
    for (const user of userIds)
      if (!unknown.includes(user)) this.sent.push({ to: `user:${user}`, kind: msgKey, text, param });
    return fine({ processQueryKey: `key${++this.#next}`, invalidStaffIdList: unknown, flowControlledStaffIdList: [] });
  }

  #upload({ query, headers, body }: Call): Answer {
    if (!this.#tokens.has(query.get("access_token") ?? ""))
      return fine({ errcode: 40_014, errmsg: "不合法的access_token" });
    if (!headers["content-type"]?.startsWith("multipart/form-data") || !body.includes('name="media"'))
      return fine({ errcode: 40_035, errmsg: "no media" });
    const id = `@media${++this.#next}`;
    this.files.set(id, body);
    return fine({ errcode: 0, errmsg: "ok", media_id: id, type: query.get("type") });
  }
}

const fine = (body: object): Answer => ({ status: 200, body });
const failed = (status: number, code: string, message: string): Answer => ({
  status,
  body: { code, message, requestid: "r" },
});

function textIn(value: unknown, key: string): string {
  const found = (Object(value) as Json)[key];
  return typeof found === "string" ? found : "";
}
