// The program that watches over a Python script, and the module through which the script calls tools. Both run where commands run.

/**
 * Speaks with us in lines: ours come on its input, its own begin with a mark nobody else knows. The script talks to it over a socket
 * that only this user may open. What the script prints is passed on up to a limit; of the rest the end is kept.
 */
export const PYTHON_RUNNER = String.raw`
import codecs, json, os, shutil, signal, socket, subprocess, sys, tempfile, threading

lock = threading.Lock()
def send(frame):
    with lock:
        sys.stdout.write(p["mark"] + json.dumps(frame) + "\n")
        sys.stdout.flush()

folder = tempfile.mkdtemp(prefix="hermes-code-", dir=p["temp"])
if len(folder) > 90:  # the path of a socket has little more than a hundred characters
    os.rmdir(folder)
    folder = tempfile.mkdtemp(prefix="hermes-code-", dir="/tmp")
def put(name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
put("hermes_tools.py", p["pythonTools"])
put("script.py", p["code"])
put("hermes_start.py", p["pythonStart"])
put("start.py", "from hermes_start import begin; begin(globals())")
put("watch.json", json.dumps(p["watch"]))
if p["watch"] and not hasattr(sys, "addaudithook"):
    put("start.py", "raise SystemExit('Scripts need Python 3.8 or newer here; this is %d.%d.')" % sys.version_info[:2])

address = os.path.join(folder, "rpc")
server = socket.socket(socket.AF_UNIX)
mask = os.umask(0o177)
server.bind(address)
os.umask(mask)
server.listen(32)

waiting = {}
calls = 0
def serve(connection):
    global calls
    with connection, connection.makefile("rwb") as file:
        for line in file:
            request = json.loads(line)
            about = {"t": "judge", "line": request.get("line"), "write": request.get("write")}
            if "tool" in request:
                about = {"t": "call", "tool": request["tool"], "args": request.get("args")}
            slot = [threading.Event(), None]
            with lock:
                calls += 1
                number = calls
                waiting[number] = slot
            send(dict(about, id=number))
            slot[0].wait()
            file.write((json.dumps({"result": slot[1]}) + "\n").encode())
            file.flush()
def accept():
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()

secret = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH")
def kept(name):
    if name in p["handedOn"]:
        return True
    if any(word in name.upper() for word in secret):
        return False
    return name in p["names"] or name.startswith(tuple(p["prefixes"]))
env = {name: value for name, value in os.environ.items() if kept(name)}
env["HERMES_RPC_SOCKET"] = address
work = os.getcwd()
if p["strict"]:
    work = os.path.join(folder, "work")
    os.mkdir(work)
child = subprocess.Popen(
    [sys.executable, "-X", "utf8", "-u", os.path.join(folder, "start.py")],
    cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
)
def stop(*_):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGHUP, stop)

def answers():
    for line in sys.stdin.buffer:
        answer = json.loads(line)
        slot = waiting.pop(answer["id"], None)
        if slot:
            slot[1] = answer["result"]
            slot[0].set()
    stop()  # nobody is listening any more
threading.Thread(target=answers, daemon=True).start()

class Pump(threading.Thread):
    def __init__(self, name, stream, limit):
        super().__init__(daemon=True)
        self.label, self.stream = name, stream
        self.head, self.most = limit * 2 // 5, limit - limit * 2 // 5
        self.tail, self.cut = "", 0
    def run(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            data = os.read(self.stream.fileno(), 65536)
            text = decoder.decode(data, not data)
            first, rest = text[: self.head], text[self.head :]
            self.head -= len(first)
            if first:
                send({"t": self.label, "text": first})
            tail = self.tail + rest
            self.cut += max(0, len(tail) - self.most)
            self.tail = tail[-self.most :]
            if not data:
                return
pumps = [Pump("out", child.stdout, p["outChars"]), Pump("err", child.stderr, p["errChars"])]
for pump in pumps:
    pump.start()
send({"t": "start", "language": "python"})

code = child.wait()
for pump in pumps:
    pump.join(0.5)
stop()  # what the script left running in its group holds the pipes open
for pump in pumps:
    pump.join(0.5)
    if pump.tail:
        send({"t": "tail", "of": pump.label, "text": pump.tail, "cut": pump.cut})
shutil.rmtree(folder, ignore_errors=True)
send({"t": "end", "code": code})
os._exit(0)
`;

const TOOLS: Readonly<Record<string, string>> = {
  web_search: "def web_search(query, limit=None)",
  web_extract: "def web_extract(urls, char_limit=None)",
  read_file: "def read_file(path, offset=None, limit=None)",
  write_file: "def write_file(path, content, **more)",
  search_files:
    "def search_files(pattern, target=None, path=None, file_glob=None, limit=None, offset=None, output_mode=None, context=None)",
  patch: "def patch(path=None, old_string=None, new_string=None, replace_all=None, mode=None, patch=None, **more)",
  terminal: "def terminal(command, timeout=None, workdir=None)",
};

const CLIENT = String.raw`"""Tools of the agent. Each returns what the tool answered: a dict where that is JSON, else text."""
import json, os, shlex, socket, threading, time

_line = threading.local()

def _call(tool, args):
    args = dict(args, **args.pop("more", {}))
    if getattr(_line, "owner", None) != os.getpid():
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(os.environ["HERMES_RPC_SOCKET"])
        _line.file = connection.makefile("rwb")
        _line.owner = os.getpid()
    given = {name: value for name, value in args.items() if value is not None}
    _line.file.write((json.dumps({"tool": tool, "args": given}) + "\n").encode())
    _line.file.flush()
    answer = _line.file.readline()
    if not answer:
        raise RuntimeError("the agent does not answer any more")
    return json_parse(json.loads(answer)["result"], keep=True)

def json_parse(text, keep=False):
    """JSON with line breaks inside its strings is taken too. keep=True: what is no JSON comes back as it is."""
    try:
        return json.loads(text, strict=False)
    except ValueError:
        if keep:
            return text
        raise

def shell_quote(text):
    return shlex.quote(str(text))

def retry(work, max_attempts=3, delay=2):
    """Calls work() until it raises nothing; waits longer each time."""
    for attempt in range(max_attempts):
        try:
            return work()
        except Exception:
            if attempt + 1 >= max_attempts:
                raise
            time.sleep(delay * 2 ** attempt)
`;

export function pythonTools(names: readonly string[]): string {
  const stubs = names.map((name) => `${TOOLS[name]}:\n    return _call("${name}", locals())\n`);
  return [CLIENT, ...stubs].join("\n");
}

// What runs before a Python script, in its own process: every program it starts, every deletion and every write to a guarded path is
// asked about first. Python calls such a hook for all of them with their real values, however the script came by them. It is a check of
// what a script does, not a cage: a script that means harm can get around it, which is what sandboxes are for.

export const PYTHON_START = String.raw`
import json, os, shlex, socket, stat, sys, threading

def guard(guarded, roots):
    address, start, made = os.environ["HERMES_RPC_SOCKET"], os.getcwd(), set()
    text, exists = os.fsdecode, os.path.lexists
    def ask(**effect):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            line.sendall((json.dumps(effect) + "\n").encode())
            answer = b""
            while not answer.endswith(b"\n"):
                piece = line.recv(65536)
                if not piece:
                    raise PermissionError("the agent does not answer any more")
                answer += piece
        refusal = json.loads(answer)["result"]
        if refusal is not None:
            raise PermissionError(refusal)

    def within(path, folders):
        return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
    # What the script itself made, it may throw away.
    def is_own(path):
        while path not in made:
            path, below = os.path.dirname(path), path
            if path == below:
                return False
        return True
    def full(path):
        return None if isinstance(path, int) else os.path.abspath(text(path))

    def in_directory(line, cwd=None):
        directory = full(cwd) if cwd else os.getcwd()
        return line if directory == start else "cd %s && %s" % (shlex.quote(directory), line)
    def program(path, args, settled=None, cwd=None):
        words = [text(args)] if isinstance(args, (str, bytes, os.PathLike)) else [text(word) for word in args]
        words[:1] = [text(path)]
        if words != settled:
            line = words[2] if len(words) == 3 and words[:2] == ["/bin/sh", "-c"] else shlex.join(words)
            ask(line=in_directory(line, cwd))
        return words
    def execute(path, args, *_):
        if exists(path):  # every folder of PATH is tried
            program(path, args)
    last = threading.local()
    def popen(executable, args, cwd=None, *_):
        last.words = program(executable, args, None, cwd)
    def spawn(path, args, *_):
        # Subprocess may have it done by posix_spawn, which is reported too.
        program(path, args, last.__dict__.pop("words", None))

    def write(path, *_):
        target = full(path)
        if target is None:
            return
        if target.startswith("/dev/") and exists(target) and stat.S_ISBLK(os.stat(target).st_mode):
            return ask(line="cat > " + shlex.quote(target))
        for one in {target, os.path.realpath(target)}:
            if within(one, guarded) or (roots and not within(one, roots)):
                return ask(write=target)
    def opened(path, mode, flags):
        if flags is None or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
            return
        write(path)
        target = full(path)
        if target and not exists(target):
            made.add(target)
    def make(path, *_):
        target = full(path)
        if target and not exists(target):
            made.add(target)
    def rename(source, target, *_):
        write(source)
        # A folder takes what is guarded below it along, to where nobody knows it.
        for path in guarded:
            if within(path, [full(source)]):
                ask(write=path)
        write(target)
        make(target)
    def remove(path, folder=-1, *_):
        target = full(path)
        if target and folder in (-1, None) and not is_own(target):
            write(target)
            if not within(target, [start]):
                ask(line="rm -- " + shlex.quote(target))
    def remove_tree(path, *_):
        target = full(path)
        if target and not is_own(target):
            shown = os.path.relpath(target, start) if within(target, [start]) else target
            ask(line="rm -r -- " + shlex.quote(shown))
            made.add(target)
    def chmod(path, mode, *_):
        write(path)
        if mode & 2:
            ask(line="chmod %o %s" % (mode, shlex.quote(str(path))))
    def kill(pid, number):
        if pid == -1:
            ask(line="kill -%d -1" % number)
    # A database opens its file by itself; one that waits for the user's answer could be given it here.
    def database(path, *_):
        name = text(path)
        if name in ("", ":memory:"):
            return
        if not name.startswith("file:"):
            return write(name)
        from urllib.parse import unquote
        file, _, options = name[5:].partition("?")
        if "mode=ro" not in options and "mode=memory" not in options and "immutable=1" not in options:
            write(unquote(file))
    def connect(_, address):
        if isinstance(address, (str, bytes)) and within(os.path.realpath(text(address)), guarded):
            ask(write=full(address))
    def symbol(_, name):
        if name in ("system", "popen", "posix_spawn", "posix_spawnp", "execl", "execv", "execve", "execvp", "execvpe"):
            raise PermissionError("start programs with subprocess, or with terminal of hermes_tools")

    effects = {
        "os.system": lambda command: ask(line=in_directory(text(command))),
        "subprocess.Popen": popen,
        "os.exec": execute,
        "os.posix_spawn": spawn,
        "shutil.rmtree": remove_tree,
        "os.remove": remove,
        "open": opened,
        "os.mkdir": make,
        "os.rename": rename,
        "os.link": lambda source, target, *_: (write(source), write(target)),
        "os.symlink": lambda source, target, *_: write(target),
        "os.truncate": write,
        "os.chmod": chmod,
        "os.chown": write,
        "os.kill": kill,
        "sqlite3.connect": database,
        "socket.connect": connect,
        "ctypes.dlsym": symbol,
    }
    def hook(event, args):
        effect = effects.get(event)
        if effect:
            effect(*args)
    sys.addaudithook(hook)

def begin(names):
    """Runs the script as the main program, whose names these are."""
    folder = os.path.dirname(os.path.abspath(__file__))
    script = os.path.join(folder, "script.py")
    with open(os.path.join(folder, "watch.json"), encoding="utf-8") as file:
        watch = json.load(file)
    with open(script, "rb") as file:
        code = file.read()
    # Of a traceback only what belongs to the script is shown.
    ours = (__file__, names["__file__"])
    def show(kind, error, frames):
        links = []
        while frames:
            links.append(frames)
            frames = frames.tb_next
        kept = None
        for link in reversed(links):
            if link.tb_frame.f_code.co_filename not in ours:
                link.tb_next = kept
                kept = link
        sys.__excepthook__(kind, error.with_traceback(kept), kept)
    sys.excepthook = show
    sys.argv[0] = names["__file__"] = script
    del names["begin"]
    if watch:
        guard(watch["guarded"], watch["roots"])
    exec(compile(code, script, "exec"), names)
`;
