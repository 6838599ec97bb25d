"""Rules of the house, as functions from a source tree to the list of its breaches. Standard library only.

python3 house.py RULE ROOT   prints the breaches of one rule and exits 1 when there are any
"""
import os
import re
import subprocess
import sys

SOURCES = (".h", ".cpp")
TEXTS = (".h", ".cpp", ".py", ".pyi", ".capnp", ".cmake", ".sh", ".md", ".txt")
LINES_MAX = 600
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

# The ladder: what files under a folder may include. The longest matching folder holds.
MAY_SEE = {
    "schema": ["schema"],
    "runtime": ["schema", "runtime"],
    "coordinator/planner": ["schema", "coordinator/planner"],
    "coordinator/catalog": ["schema", "runtime", "coordinator/catalog"],
    "coordinator": ["schema", "runtime", "coordinator"],
    "worker": ["schema", "runtime", "coordinator/planner", "coordinator/catalog", "worker"],
    "launch": ["schema", "runtime", "coordinator", "worker", "launch"],
}
# The one place where a worker has a coordinator of its own.
SINGLE_PROCESS = re.compile(r"^worker/single_process\w*\.(h|cpp)$")

# Logic without sockets, threads, clocks and files: what must be pure, apart from the exceptions.
PURE = re.compile(r"^(schema|coordinator)/|^worker/(worker_logic|peer_session)\w*\.|^runtime/(time_point|peer_session)\w*\.")
NOT_PURE = re.compile(r"^coordinator/(catalog/|(\w+_)?(actor|program|main)\w*\.)")
IMPURE_HEADERS = re.compile(
    r"^(thread|stop_token|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier|fstream|iostream|filesystem"
    r"|ctime|time\.h|csignal|signal\.h|random|unistd\.h|fcntl\.h|poll\.h|pthread\.h|dlfcn\.h|netdb\.h"
    r"|(sys|netinet|arpa|linux|zmq|spdlog|tbb|oneapi|CLI)(/.*|\.hpp?))$")
PURE_RUNTIME = {"runtime/time_point.h", "runtime/peer_session.h"}
IMPURE_CALL = re.compile(r"_clock::now\s*\(|\b(clock_gettime|gettimeofday|fopen)\b|\btime\s*\(\s*(nullptr|NULL|0)\s*\)|this_thread")

THIRD_PARTY = re.compile(r"^(capnp|kj|zmq|spdlog|fmt|CLI|nlohmann|tbb|oneapi|isa-l|isa-l\.h|xxhash\.h)(/|$|\.hpp?$)")
GENERATED = re.compile(r"\.capnp\.(h|c\+\+)$|\.(o|a|so|pyc|whl|safetensors\.tmp)$|(^|/)(build|__pycache__)/|CMakeCache\.txt$")


def files(root):
    """Paths of the repository, relative: what git tracks, or what lies there without the build folder."""
    if os.path.exists(os.path.join(root, ".git")):
        listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z"], capture_output=True)
        if listed.returncode == 0:
            names = listed.stdout.decode().split("\0")
            return sorted(name for name in names if name and os.path.exists(os.path.join(root, name)))
    found = []
    for folder, folders, names in os.walk(root):
        if folder == root:
            folders[:] = [name for name in folders if name not in (".git", "build")]
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def includes(root, path):
    """(as written, path in the tree or None, line) of every include."""
    text = read(root, path)
    for match in INCLUDE.finditer(text):
        written = match.group(2)
        line = text.count("\n", 0, match.start(1)) + 1
        resolved = None
        for base in (os.path.dirname(path), "", "worker/include") if match.group(1) == '"' else ("worker/include",):
            candidate = os.path.normpath(os.path.join(base, written))
            if os.path.exists(os.path.join(root, candidate)):
                resolved = candidate
                break
        if resolved is None and written.endswith(".capnp.h"):
            here = os.path.join(os.path.dirname(path), written)
            resolved = here if "/" not in written else written
        yield written, resolved, line, match.group(1)


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def ladder(root):
    """An include points down the ladder."""
    breaches = []
    for path in files(root):
        rungs = [folder for folder in MAY_SEE if within(path, folder)]
        if not path.endswith(SOURCES) or not rungs:
            continue
        may_see = list(MAY_SEE[max(rungs, key=len)])
        if SINGLE_PROCESS.match(path):
            may_see.append("coordinator")
        for written, resolved, line, quote in includes(root, path):
            if resolved is None and quote == '"':
                breaches.append(f"{path}:{line}: includes {written}, which is not in the tree")
            elif resolved is not None and not any(within(resolved, folder) for folder in may_see):
                breaches.append(f"{path}:{line}: includes {resolved}; it may see {', '.join(may_see)}")
    return breaches


def third_party(root):
    """A header that shows a third party, itself or through another, is seen by its own folder only."""
    included = {path: list(includes(root, path)) for path in files(root)
                if path.endswith(SOURCES) and any(within(path, folder) for folder in MAY_SEE)}
    showing = {path for path, found in included.items() if path.endswith(".h")
               and any(THIRD_PARTY.match(written) or written.endswith(".capnp.h") for written, *_ in found)}
    grown = True
    while grown:
        more = {path for path, found in included.items() if path.endswith(".h")
                and any(resolved in showing for _, resolved, *_ in found)} - showing
        showing |= more
        grown = bool(more)
    return [f"{path}:{line}: includes {resolved}, which shows a third party outside of its folder"
            for path, found in included.items() for _, resolved, line, _ in found
            if resolved in showing and os.path.dirname(resolved) != os.path.dirname(path)]


def purity(root):
    """Pure logic includes no socket, thread, clock or file header, and asks nobody for the time."""
    breaches = []
    for path in files(root):
        if not path.endswith(SOURCES) or not PURE.match(path) or NOT_PURE.match(path):
            continue
        for written, resolved, line, _ in includes(root, path):
            outside = resolved is not None and resolved.startswith("runtime/") and resolved not in PURE_RUNTIME
            if IMPURE_HEADERS.match(written) or outside:
                breaches.append(f"{path}:{line}: pure logic includes {written}")
        for number, text in enumerate(read(root, path).splitlines(), 1):
            code = text.split("//")[0]
            if IMPURE_CALL.search(code):
                breaches.append(f"{path}:{number}: pure logic asks for time, thread or file: {code.strip()}")
    return breaches


def sizes(root):
    """Files that people can read: none above LINES_MAX lines, none generated."""
    breaches = []
    for path in files(root):
        if GENERATED.search(path):
            breaches.append(f"{path}: generated files are not kept")
        elif path.endswith(TEXTS):
            count = read(root, path).count("\n")
            if count > LINES_MAX:
                breaches.append(f"{path}: {count} lines, at most {LINES_MAX}")
    return breaches


def unformatted(root, program):
    """Sources that clang-format would change."""
    sources = [path for path in files(root) if path.endswith(SOURCES)]
    breaches = []
    for begin in range(0, len(sources), 32):
        batch = sources[begin:begin + 32]
        done = subprocess.run([program, "--dry-run", "-Werror", "--ferror-limit=1", *batch], cwd=root,
                              capture_output=True, text=True)
        if done.returncode != 0:
            named = re.findall(r"^(\S+?):(\d+):\d+: error", done.stderr, re.M)
            breaches += [f"{path}:{line}: not formatted" for path, line in named] or [done.stderr.strip()]
    return breaches


RULES = {"ladder": ladder, "third_party": third_party, "purity": purity, "sizes": sizes}


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in RULES:
        sys.exit(f"usage: house.py {'|'.join(RULES)} ROOT")
    breaches = RULES[arguments[0]](arguments[1])
    print("\n".join(breaches) or f"{arguments[0]}: holds")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
