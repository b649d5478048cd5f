// A look-alike of GitHub's REST interface for comments: takes what GitHub would take, pages as it pages, and fails on demand.
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";

export interface GithubComment {
  readonly id: number;
  readonly repo: string;
  readonly number: string;
  readonly body: string;
  readonly createdAt: number;
}

const PATH = /^\/repos\/([\w.-]+\/[\w.-]+)\/issues\/(\d+)\/comments$/;
const MAX_BODY = 65_536;

export class GithubServer {
  readonly token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
  /** Pull requests and issues that exist: `owner/repository#1`. */
  readonly places: Set<string>;
  readonly comments: GithubComment[] = [];
  #server!: WebServer;

  private constructor(places: readonly string[]) {
    this.places = new Set(places);
  }

  static async start(places: readonly string[]): Promise<GithubServer> {
    const github = new GithubServer(places);
    github.#server = await startWebServer({ handle: (call) => github.#handle(call) });
    return github;
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

  close(): Promise<void> {
    return this.#server.close();
  }

  /** The comments of a place as people read them: without what is hidden in them. */
  readOf(place: string): readonly string[] {
    return this.comments
      .filter(({ repo, number }) => `${repo}#${number}` === place)
      .map(({ body }) => body.replace(/<!--[\s\S]*?-->/g, "").trim());
  }

  #handle(call: Call): Answer {
    const { method, path, headers } = call;
    if (!headers["user-agent"])
      return refused(403, "Request forbidden by administrative rules. Please set a User-Agent");
    const [, repo = "", number = ""] = PATH.exec(path) ?? [];
    if (headers.authorization !== `Bearer ${this.token}`) return refused(401, "Bad credentials");
    if (path === "/user") return { status: 200, body: { login: "hermes-bot", id: 1 } };
    if (!this.places.has(`${repo}#${number}`)) return refused(404, "Not Found");
    return method === "POST" ? this.#post(call, repo, number) : this.#list(call, repo, number);
  }

  #post({ json, headers }: Call, repo: string, number: string): Answer {
    const { body } = json;
    if (!String(headers["content-type"]).startsWith("application/json")) return refused(415, "Unsupported Media Type");
    if (typeof body !== "string" || body.trim() === "") return refused(422, "Validation Failed");
    if (body.length > MAX_BODY)
      return refused(422, "Validation Failed: body is too long (maximum is 65536 characters)");
    const comment = { id: 1000 + this.comments.length, repo, number, body, createdAt: Date.now() };
    this.comments.push(comment);
    return { status: 201, body: asJson(comment) };
  }

  #list({ query }: Call, repo: string, number: string): Answer {
    const [page, size] = [Number(query.get("page") ?? 1), Math.min(100, Number(query.get("per_page") ?? 30))];
    const since = query.has("since") ? Date.parse(query.get("since") ?? "") : 0;
    if (Number.isNaN(since)) return refused(422, "since is not a time");
    const found = this.comments.filter((one) => one.repo === repo && one.number === number && one.createdAt >= since);
    return { status: 200, body: found.slice((page - 1) * size, page * size).map(asJson) };
  }
}

const asJson = ({ id, body, createdAt }: GithubComment) => ({
  id,
  body,
  created_at: new Date(createdAt).toISOString(),
});

const refused = (status: number, message: string): Answer => ({
  status,
  body: { message, documentation_url: "https://docs.github.com/rest", status: String(status) },
});
