"""Every source is formatted: format_test.py ROOT. Exit code 77 (skipped) without the version that .clang-format is for,
because versions differ in what they make of the same rules."""
import os
import shutil
import subprocess
import sys
import tempfile

import house

VERSION = "14"


def program():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path and f"version {VERSION}." in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
            return path
    print(f"skipped: there is no clang-format {VERSION} on this system")
    sys.exit(77)


def check_that_it_can_fail(clang_format, root):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(root, ".clang-format"), folder)
        for name, text in (("good.cpp", "int x = 1;\n"), ("bad.cpp", "int   x=1 ;\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        found = house.unformatted(folder, clang_format)
        if len(found) != 1 or "bad.cpp" not in found[0]:
            sys.exit(f"the format test is blind: {found}")


def main():
    root = sys.argv[1]
    clang_format = program()
    check_that_it_can_fail(clang_format, root)
    breaches = house.unformatted(root, clang_format)
    print("\n".join(breaches) or "all sources are formatted")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main()
