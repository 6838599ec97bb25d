"""same_tensors.py EXPORTED SOURCE...: do the files hold the same tensors, byte by byte? Standard library only, so that
nothing of vckpt takes part in the answer."""
import json
import sys


def tensors(path):
    """fqn -> (dtype, shape, bytes) of one safetensors file."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def main(exported_path, source_paths):
    exported, source = tensors(exported_path), {}
    for path in source_paths:
        source.update(tensors(path))
    different = sorted(name for name in exported.keys() | source.keys() if exported.get(name) != source.get(name))
    if different:
        sys.exit(f"{exported_path}: {len(different)} tensors are missing or not the source's, the first is {different[0]}")
    total = sum(len(data) for _, _, data in source.values())
    print(f"{exported_path}: all {len(source)} tensors equal the source's, {total} bytes")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: same_tensors.py EXPORTED SOURCE...")
    main(sys.argv[1], sys.argv[2:])
