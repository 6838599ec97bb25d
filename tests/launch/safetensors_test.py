"""Python's safetensors opens every data file of a checkpoint, and the model file of a one-rank checkpoint equals the source
model, tensor by tensor. So do models of every dtype and of odd names, saved by two ranks and exported by none:
safetensors_test.py VCKPT PYTHON, where PYTHON has the package; exit code 77 (skipped) if not."""
import glob
import json
import os
import subprocess
import sys
import tempfile

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../schema/files")

# name -> [dtype, shape, digest] of every tensor in the files, by the package's own reader.
READER = """
import hashlib, json, sys
import safetensors
found = {}
for path in sys.argv[1:]:
    for name, tensor in safetensors.deserialize(open(path, "rb").read()):
        found[name] = [tensor["dtype"], tensor["shape"], hashlib.sha256(tensor["data"]).hexdigest()]
print(json.dumps(found))
"""


def opened(python, paths):
    return json.loads(subprocess.run([python, "-c", READER, *paths], check=True, capture_output=True).stdout)


def write_source(path):
    """A model of many types and shapes, written by hand: an empty one, a scalar, odd sizes."""
    tensors, data = {}, b""
    for name, dtype, width, shape in [("a.weight", "F32", 4, [7, 5]), ("b.weight", "BF16", 2, [3, 2, 3]),
                                      ("flag", "BOOL", 1, [3]), ("count", "I64", 8, []), ("none", "F16", 2, [0, 4]),
                                      ("tiny@0+1", "U8", 1, [5]), ("f8", "F8_E4M3", 1, [2, 2])]:
        size = width
        for dim in shape:
            size *= dim
        tensors[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += bytes((len(data) + i) % (2 if dtype == "BOOL" else 251) for i in range(size))
    header = json.dumps(tensors).encode()
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + data)


def drill(vckpt, what, root, model, layout, ranks, *options):
    subprocess.run([vckpt, "run", "-n", str(ranks), "--root", root, "--", vckpt, "drill", what, "--model", model,
                    "--layout", layout, *options], check=True, stdout=subprocess.DEVNULL)


def main(vckpt, python):
    if not os.path.exists(python) or subprocess.run([python, "-c", "import safetensors"]).returncode != 0:
        print(f"skipped: {python} has no safetensors")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        root, source, exported = (os.path.join(folder, name) for name in ("one", "m.safetensors", "x.safetensors"))
        write_source(source)
        truth = opened(python, [source])
        drill(vckpt, "save", root, source, "dp=1", 1)
        stored, = glob.glob(root + "/data/*/model/*/*.safetensors")
        # A name that could be read as that of a piece is escaped; a tensor without elements is in the manifest alone.
        expected = {(f"@{name}@" if name == "tiny@0+1" else name): tensor for name, tensor in truth.items()
                    if name != "none"}
        found = opened(python, [stored])
        assert found == expected, (found, expected)

        subprocess.run([vckpt, "export", root, exported], check=True, stdout=subprocess.DEVNULL)
        assert opened(python, [exported]) == truth

        root = os.path.join(folder, "four")
        drill(vckpt, "save", root, "llama:tiny", "tp=2,dp=2,zero=1", 4, "--optimizer", "adam")
        files = glob.glob(root + "/data/*/*/*/*.safetensors")
        assert len(files) == 8, files
        for path in files:
            assert opened(python, [path]), path
            with open(path, "rb") as file:
                assert (8 + int.from_bytes(file.read(8), "little")) % 4096 == 0, path

        # The files of the format's own tests.
        models = [path for path in glob.glob(os.path.join(FILES, "*.safetensors"))
                  if not os.path.basename(path).startswith("st-bad-")]
        assert len(models) > 10, models
        for path in models:
            root = os.path.join(folder, os.path.basename(path) + "-root")
            exported = os.path.join(folder, os.path.basename(path))
            drill(vckpt, "save", root, path, "tp=2", 2)
            drill(vckpt, "load", root, path, "fsdp=3", 3, "--verify")
            subprocess.run([vckpt, "export", root, exported], check=True, stdout=subprocess.DEVNULL)
            assert opened(python, [exported]) == opened(python, [path]), path
    print("all files open")


if __name__ == "__main__":
    main(*sys.argv[1:])
