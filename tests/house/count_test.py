"""ctest knows every test of every test program: count_test.py CTEST BUILD_FOLDER PREFIX=PROGRAM...

Catch2 2 can fuse tests whose names hold a bracket into one that matches nothing and passes; counting finds that."""
import re
import subprocess
import sys


def names_in_program(program):
    old = subprocess.run([program, "--list-test-names-only"], capture_output=True, text=True)
    if "nrecognised token" in old.stdout + old.stderr:  # Catch2 3
        old = subprocess.run([program, "--list-tests", "--verbosity", "quiet"], capture_output=True, text=True)
    return [line for line in old.stdout.splitlines() if line.strip()]


def names_in_ctest(ctest, folder):
    listed = subprocess.run([ctest, "--test-dir", folder, "-N"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  Test +#\d+: (.*)$", listed, re.M)


def differences(prefix, in_program, in_ctest):
    mine = [name for name in in_ctest if name.startswith(prefix + ":")]
    found = []
    if len(mine) != len(in_program):
        found.append(f"{prefix}: the program has {len(in_program)} tests, ctest knows {len(mine)}")
    found += [f"{prefix}: a name holds one of [ ] ; : {name}" for name in in_program if re.search(r"[\[\];]", name)]
    return found


def main():
    if not differences("a", ["x", "y"], ["a:x"]) or not differences("a", ["x["], ["a:x["]) or \
       differences("a", ["x"], ["a:x", "b:z"]):
        sys.exit("the count test is blind")
    ctest, folder, *programs = sys.argv[1:]
    in_ctest = names_in_ctest(ctest, folder)
    found = []
    for pair in programs:
        prefix, _, program = pair.partition("=")
        found += differences(prefix, names_in_program(program), in_ctest)
    print("\n".join(found) or f"{len(programs)} programs counted")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
