// A registry on loopback that real npm installs from: small packages, packed here.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { promisify } from "node:util";

export interface TestPackage {
  readonly name: string;
  readonly version: string;
  /** Its index.mjs. */
  readonly code: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
}

interface Registry {
  readonly folder: string;
  /** What npm is started with. */
  readonly variables: Record<string, string | undefined>;
  /** Paths of requests. */
  readonly asked: string[];
  /** The hash of a package. */
  integrity(name: string): string;
}

export async function npmRegistry(t: TestContext, packages: readonly TestPackage[]): Promise<Registry> {
  const folder = await mkdtemp(join(tmpdir(), "hermes-npm-"));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  const tarballs = new Map<string, Buffer>();
  for (const one of packages) tarballs.set(`${one.name}@${one.version}`, await pack(folder, one));
  const hash = (tarball: Buffer) => `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const asked: string[] = [];
  const registry = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1);
    asked.push(`/${path}`);
    const tarball = tarballs.get(path.replace(/\.tgz$/, ""));
    if (tarball && path.endsWith(".tgz")) return response.end(tarball);
    const versions = packages
      .filter(({ name }) => name === path || path === `${name}.tgz`)
      .map(({ code: _, ...facts }) => {
        const file = `${facts.name}@${facts.version}`;
        const dist = { tarball: `${url}/${file}.tgz`, integrity: hash(tarballs.get(file) ?? Buffer.alloc(0)) };
        return [facts.version, { ...facts, dist }] as const;
      });
    if (versions.length === 0) {
      response.statusCode = 404;
      return response.end("{}");
    }
    response.setHeader("content-type", "application/json");
    const latest = versions.at(-1)?.[0];
    response.end(JSON.stringify({ name: path, "dist-tags": { latest }, versions: Object.fromEntries(versions) }));
  });
  await new Promise<void>((resolve) => registry.listen(0, "127.0.0.1", resolve));
  t.after(() => registry.close());
  const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`; // listening on TCP
  return {
    folder,
    variables: {
      ...{ PATH: process.env.PATH, HOME: folder, npm_config_registry: url, npm_config_cache: join(folder, "cache") },
    },
    asked,
    integrity(name) {
      const found = packages.find((one) => one.name === name);
      return hash(tarballs.get(`${name}@${found?.version}`) ?? Buffer.alloc(0));
    },
  };
}

async function pack(folder: string, { code, ...manifest }: TestPackage): Promise<Buffer> {
  const place = await mkdtemp(join(folder, "pack-"));
  await mkdir(join(place, "package"));
  await writeFile(join(place, "package", "package.json"), JSON.stringify({ ...manifest, main: "index.mjs" }));
  await writeFile(join(place, "package", "index.mjs"), code);
  await promisify(execFile)("tar", ["-czf", "package.tgz", "package"], { cwd: place });
  return readFile(join(place, "package.tgz"));
}
