// A chat platform for Hermes in one file. Its server hands out updates with growing numbers (GET /updates?after=N waits for new ones) and
// takes messages (POST /messages). docs/guide/write-a-platform.md explains it line by line.

export default function register(ctx) {
  ctx.registerPlatform("paper", {
    name: "paper",
    label: "Paper",
    maxLength: 2000,
    lengthUnit: "utf16",
    canEdit: true,
    // The server knows each message by its key: the same one sent again is the same message.
    repeatIsSafe: ctx.settings.repeat_is_safe === true,
    sendsAlone: true,
    options: ["url", "token", "batch"],
    guide: "Start your Paper server and note its address and token.",
    variables: [
      { name: "PAPER_URL", about: "address of the server, such as http://127.0.0.1:9000" },
      { name: "PAPER_TOKEN", about: "token of the bot", secret: true },
    ],
    identity: (option) => text(option("token", "PAPER_TOKEN")),
    check: (option) => (text(option("url", "PAPER_URL")) ? null : "PAPER_URL is not set; add it to .env"),
    parseTarget: (id) => (/^[\w-]{1,40}$/.test(id) ? { chatId: id } : null),
    batchSeconds: () => Number(ctx.settings.batch_seconds ?? 0),
    open: async (host) => new Paper(host),
  });
}

const text = (value) => (typeof value === "string" && value.trim() !== "" ? value.trim() : null);

class Paper {
  account = "paper bot";
  #host;
  #url;
  #headers;
  #over = new AbortController();

  constructor(host) {
    this.#host = host;
    this.#url = text(host.option("url", "PAPER_URL"));
    this.#headers = { authorization: `Bearer ${text(host.option("token", "PAPER_TOKEN"))}` };
  }

  /** Resolves when messages come in. */
  async connect(signal) {
    signal.addEventListener("abort", () => this.#over.abort(), { once: true });
    const me = await this.#call("GET", "/me");
    if (me.status === 401) throw failure("paper_token", "the token is wrong; set PAPER_TOKEN", false);
    if (me.status !== 200) throw failure("paper_unreachable", `the server does not answer (${me.status})`, true);
    this.account = `@${me.body.name}`;
    const cursor = (await this.#host.cursor()) ?? String(me.body.newest);
    // At the first connect ever nothing old is read. Where reading begins is stored at once: what comes from here on is not lost.
    await this.#host.receive([], cursor);
    this.#poll(Number(cursor)).catch((error) => this.#host.lost(failure("paper_lost", error.message, true)));
  }

  async disconnect() {
    this.#over.abort();
  }

  async #poll(from) {
    for (let after = from; !this.#over.signal.aborted; ) {
      const { status, body } = await this.#call("GET", `/updates?after=${after}`);
      if (this.#over.signal.aborted) return;
      if (status !== 200) throw new Error(`the server does not answer (${status})`);
      for (const update of body) {
        after = Math.max(after, update.id);
        if (update.edits) await this.#host.changed(String(update.edits), update.text ?? null);
        else if (update.pressed) await this.#pressed(update);
        // Stored first: `after` is what tells the server that everything up to there has arrived.
        else await this.#host.receive([this.#message(update)], String(after));
      }
    }
  }

  #message({ id, chat, user, text: said, kind = "dm", thread, at }) {
    const source = { platform: "paper", chat_type: kind, chat_id: chat, user_id: user, user_name: user, thread_id: thread };
    return { text: said, type: "text", source, updateId: String(id), messageId: String(id), sentAt: at ?? Date.now() / 1000 };
  }

  #pressed({ chat, user, pressed, choice, kind = "dm" }) {
    const source = { platform: "paper", chat_type: kind, chat_id: chat, user_id: user, user_name: user };
    const answer = async (reply) => void (await this.#call("POST", "/answers", { chat, user, text: reply }));
    return this.#host.pressed({ source, choice, questionId: pressed, answer });
  }

  async send({ chatId: chat, threadId: thread, replyTo }, said, { key, plain }) {
    return outcome(await this.#call("POST", "/messages", { chat, thread, text: said, key, plain, reply_to: replyTo }));
  }

  async edit({ chatId: chat }, id, said, { final }) {
    return outcome(await this.#call("PUT", `/messages/${id}`, { chat, text: said, final }));
  }

  async remove({ chatId: chat }, id) {
    await this.#call("DELETE", `/messages/${id}`, { chat });
  }

  async ask({ chatId: chat, threadId: thread }, said, { id, buttons }, { key }) {
    return outcome(await this.#call("POST", "/messages", { chat, thread, text: said, key, question: id, buttons }));
  }

  async closeQuestion({ chatId: chat }, id, said) {
    await this.#call("PUT", `/messages/${id}`, { chat, text: said, final: true, buttons: [] });
  }

  async typing({ chatId: chat }) {
    await this.#call("POST", "/typing", { chat });
  }

  /** `sent` tells an answer that was lost on its way (unknown) from a request that never left (unreachable). */
  async #call(method, path, body) {
    let sent = false;
    try {
      const signal = AbortSignal.any([this.#over.signal, AbortSignal.timeout(method === "GET" ? 30_000 : 2000)]);
      const init = { method, headers: { ...this.#headers, "content-type": "application/json" }, signal };
      const response = fetch(this.#url + path, body === undefined ? init : { ...init, body: JSON.stringify(body) });
      sent = true;
      const reply = await response;
      return { status: reply.status, body: await reply.json() };
    } catch (error) {
      const refused = error?.cause?.code === "ECONNREFUSED";
      return { status: 0, sent: sent && !refused, error: String(error?.message ?? error) };
    }
  }
}

/** What the gateway has to know about a try to send. */
function outcome({ status, body, sent, error }) {
  if (status === 200) return { messageId: String(body.id) };
  if (status === 429) return { failed: "rate_limited", error: "too many messages", retryAfter: body.retry_after };
  if (status === 400) return { failed: "format", error: body.error };
  if (status === 404 && body.error === "no such thread") return { failed: "thread_gone", error: body.error };
  if (status === 403 || status === 404) return { failed: "refused", error: body.error };
  if (status === 0 && sent) return { failed: "unknown", error };
  return { failed: "unreachable", error: error ?? `status ${status}` };
}

function failure(code, message, retryable) {
  return Object.assign(new Error(message), { name: "PlatformError", code, retryable });
}
