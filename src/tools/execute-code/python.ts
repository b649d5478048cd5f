// The program that watches over a Python script, and the module through which the script calls tools. Both run where commands run.

/**
 * Speaks with us in lines: ours come on its input, its own begin with a mark nobody else knows. The script talks to it over a socket
 * that only this user may open. What the script prints is passed on up to a limit; of the rest the end is kept.
 */
export const PYTHON_KEEPER = String.raw`
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
