// A podman of the test's own: its storage, its settings, and one image made of this machine's own programs. No registry, no network.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface PodmanEngine {
  readonly root: string;
  readonly image: string;
  /** What a program needs to reach this podman. */
  readonly env: Readonly<Record<string, string>>;
  podman(...args: string[]): Promise<{ code: number; output: string; errors: string }>;
  release(): Promise<void>;
}

const PROGRAMS =
  "bash sh cat ls ln mkdir rm mv cp sleep head tail tr wc env chmod stat readlink mkfifo grep sort touch id find base64 stty tty setsid";

// Every library a program needs lies where it lies here.
const BUILD = `set -e
mkdir -p "$1/etc" "$1/root" "$1/tmp" "$1/var/tmp" "$1/run" "$1/proc" "$1/sys" "$1/dev" "$1/workspace"
echo 'root:x:0:0:root:/root:/bin/bash' > "$1/etc/passwd"
echo 'root:x:0:' > "$1/etc/group"
copy() { mkdir -p "$1$(dirname "$2")"; [ -e "$1$2" ] || cp -L "$2" "$1$2"; }
for name in $2; do
  program=$(command -v "$name")
  copy "$1" "$program"
  ldd "$program" | grep -o '/[^ ]*' | while read -r library; do copy "$1" "$library"; done
done
[ -e "$1/bin" ] || ln -s usr/bin "$1/bin"
# Python, reduced to what scripts of ours need. It finds its modules from where it lies, and /root is somebody else's inside.
mkdir -p "$1/opt/python/bin" "$1/usr/bin" "$1/usr/lib"
python3 -I -c "$4" | while read -r from to; do
  mkdir -p "$(dirname "$1/opt/python/$to")"
  cp -L "$from" "$1/opt/python/$to"
  case $from in *.py) continue ;; esac
  ldd "$from" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
    case $library in /root/*) cp -L "$library" "$1/usr/lib/" ;; *) copy "$1" "$library" ;; esac
  done
done
ln -s /opt/python/bin/python3 "$1/usr/bin/python3"
tar -C "$1" -c . | podman import -q - "$3"`;

const PYTHON = `
import sys, os, sysconfig
import asyncio, codecs, concurrent.futures, encodings.idna, json, linecache, pathlib, shlex, shutil, signal, socket, stat, subprocess
import tempfile, threading, time, traceback
print(os.path.realpath(sys.executable), "bin/python3")
home = sysconfig.get_path("stdlib")
for module in list(sys.modules.values()):
    path = getattr(module, "__file__", None)
    if path and path.startswith(home):
        print(path, "lib/python%d.%d" % sys.version_info[:2] + path[len(home):])
`;

let starting: Promise<PodmanEngine> | null = null;

/** One for the whole test file. */
export function podmanEngine(): Promise<PodmanEngine> {
  starting ??= start();
  return starting;
}

export async function missingPodman(): Promise<string | null> {
  try {
    const { podman, image } = await podmanEngine();
    const { code, errors } = await podman("run", "--rm", "--init", "--network", "none", image, "sleep", "0");
    return code === 0 ? null : `podman cannot run a container here: ${errors}`;
  } catch (error) {
    return `podman (with runc and catatonit) does not work here: ${error instanceof Error ? error.message : error}`;
  }
}

async function start(): Promise<PodmanEngine> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-podman-")));
  const image = "localhost/hermes-test:latest";
  // Limits are named because raising them, podman's default, takes a right that containers on CI machines do not have.
  await writeFile(
    join(root, "containers.conf"),
    `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "${join(root, "tmp")}"
`,
  );
  await writeFile(
    join(root, "storage.conf"),
    `[storage]
driver = "vfs"
graphroot = "${join(root, "graph")}"
runroot = "${join(root, "run")}"
`,
  );
  const env = {
    PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
    HOME: root,
    CONTAINERS_CONF: join(root, "containers.conf"),
    CONTAINERS_STORAGE_CONF: join(root, "storage.conf"),
  };
  const podman = (...args: string[]) => call("podman", args, env);
  const release = async () => {
    await podman("rm", "-fa", "-t", "0");
    await rm(root, { recursive: true, force: true, maxRetries: 5 });
  };
  const rootfs = join(root, "rootfs");
  await mkdir(rootfs);
  const built = await call("sh", ["-c", BUILD, "sh", rootfs, PROGRAMS, image, PYTHON], env);
  if (built.code !== 0) {
    await rm(root, { recursive: true, force: true });
    throw new Error(built.errors.trim());
  }
  return { root, image, env, podman, release };
}

function call(program: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  return new Promise<{ code: number; output: string; errors: string }>((resolve) => {
    const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    let [output, errors] = ["", ""];
    child.stdout.on("data", (data) => {
      output += data;
    });
    child.stderr.on("data", (data) => {
      errors += data;
    });
    child.on("error", (error) => resolve({ code: 127, output, errors: error.message }));
    child.on("close", (code) => resolve({ code: code ?? 1, output, errors }));
  });
}
