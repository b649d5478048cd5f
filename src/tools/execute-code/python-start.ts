// What runs before a Python script, in its own process: every program it starts, every deletion and every write to a guarded place is
// asked about first. Python tells such a hook of all of them with their real values, however the script came by them. It is a check of
// what a script does, not a cage: a script that means harm can get around it, which is what sandboxes are for.

export const PYTHON_START = String.raw`
import json, os, shlex, socket, stat, sys, threading

def guard(places, roots):
    address, start, made = os.environ["HERMES_RPC_SOCKET"], os.getcwd(), set()
    text, exists = os.fsdecode, os.path.lexists
    def ask(**deed):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            line.sendall((json.dumps(deed) + "\n").encode())
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

    def placed(line, cwd=None):
        place = full(cwd) if cwd else os.getcwd()
        return line if place == start else "cd %s && %s" % (shlex.quote(place), line)
    def program(path, args, settled=None, cwd=None):
        words = [text(args)] if isinstance(args, (str, bytes, os.PathLike)) else [text(word) for word in args]
        words[:1] = [text(path)]
        if words != settled:
            line = words[2] if len(words) == 3 and words[:2] == ["/bin/sh", "-c"] else shlex.join(words)
            ask(line=placed(line, cwd))
        return words
    def execute(path, args, *_):
        if exists(path):  # every folder of PATH is tried
            program(path, args)
    last = threading.local()
    def popen(executable, args, cwd=None, *_):
        last.words = program(executable, args, None, cwd)
    def spawn(path, args, *_):
        # Subprocess may have it done by posix_spawn, which tells of itself too.
        program(path, args, last.__dict__.pop("words", None))

    def write(path, *_):
        place = full(path)
        if place is None:
            return
        if place.startswith("/dev/") and exists(place) and stat.S_ISBLK(os.stat(place).st_mode):
            return ask(line="cat > " + shlex.quote(place))
        for one in {place, os.path.realpath(place)}:
            if within(one, places) or (roots and not within(one, roots)):
                return ask(write=place)
    def opened(path, mode, flags):
        if flags is None or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
            return
        write(path)
        place = full(path)
        if place and not exists(place):
            made.add(place)
    def make(path, *_):
        place = full(path)
        if place and not exists(place):
            made.add(place)
    def rename(source, target, *_):
        write(source)
        # A folder takes what is guarded below it along, to where nobody knows it.
        for place in places:
            if within(place, [full(source)]):
                ask(write=place)
        write(target)
        make(target)
    def remove(path, folder=-1, *_):
        place = full(path)
        if place and folder in (-1, None) and not is_own(place):
            write(place)
            if not within(place, [start]):
                ask(line="rm -- " + shlex.quote(place))
    def remove_tree(path, *_):
        place = full(path)
        if place and not is_own(place):
            shown = os.path.relpath(place, start) if within(place, [start]) else place
            ask(line="rm -r -- " + shlex.quote(shown))
            made.add(place)
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
        place, _, wishes = name[5:].partition("?")
        if "mode=ro" not in wishes and "mode=memory" not in wishes and "immutable=1" not in wishes:
            write(unquote(place))
    def connect(_, address):
        if isinstance(address, (str, bytes)) and within(os.path.realpath(text(address)), places):
            ask(write=full(address))
    def symbol(_, name):
        if name in ("system", "popen", "posix_spawn", "posix_spawnp", "execl", "execv", "execve", "execvp", "execvpe"):
            raise PermissionError("start programs with subprocess, or with terminal of hermes_tools")

    deeds = {
        "os.system": lambda command: ask(line=placed(text(command))),
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
        deed = deeds.get(event)
        if deed:
            deed(*args)
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
        guard(watch["places"], watch["roots"])
    exec(compile(code, script, "exec"), names)
`;
