"""Reads checkpoints with nothing but Python's standard library, written from the text of schema/README.md alone.
usage: reader.py ls ROOT | tensors ROOT ID | dump ROOT ID SECTION FQN | verify ROOT ID"""
import functools
import itertools
import json
import math
import os
import re
import struct
import sys

CHUNK, U64 = 1 << 20, (1 << 64) - 1
SECRET = bytes.fromhex("b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07d"
                       "ccff7221b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e"
                       "3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364")
DTYPES = [None] + [pair.split(":") for pair in (
    "bool:8 u8:8 i8:8 u16:16 i16:16 u32:32 i32:32 u64:64 i64:64 f16:16 bf16:16 f32:32 f64:64 f8_e4m3fn:8 f8_e5m2:8 "
    "f8_e4m3fnuz:8 f8_e5m2fnuz:8 f8_e8m0fnu:8 f4_e2m1fn_x2:8 c32:32 c64:64 c128:128 i4:4 u4:4 f6_e2m3:6 f6_e3m2:6 f4:4"
    ).split()]
CRC = [functools.reduce(lambda state, _: state >> 1 ^ (0x82F63B78 if state & 1 else 0), range(8), byte)
       for byte in range(256)]


def need(condition, what):
    if not condition:
        sys.exit("corrupt: " + what)


def crc32c(data):
    return functools.reduce(lambda state, byte: CRC[(state ^ byte) & 0xFF] ^ state >> 8, data, 0xFFFFFFFF) ^ 0xFFFFFFFF


def xxh3_64(data):  # of 17 to 128 bytes
    def mix(at, key):
        (a, b), (c, d) = struct.unpack_from("<QQ", data, at), struct.unpack_from("<QQ", SECRET, key)
        product = (a ^ c) * (b ^ d)
        return product & U64 ^ product >> 64
    total = len(data) * 0x9E3779B185EBCA87
    for i in range((len(data) + 31) // 32):
        total += mix(16 * i, 32 * i) + mix(len(data) - 16 * (i + 1), 32 * i + 16)
    total = ((total & U64) ^ (total & U64) >> 37) * 0x165667919E3779F9 & U64
    return total ^ total >> 32


class Struct:
    """`data` and then `pointers` words from byte `at` of a record's words; what lies beyond is zero or absent."""
    def __init__(self, words, at, data, pointers):
        self.words, self.at, self.data, self.pointers = words, at, data, pointers
        need(0 <= at <= at + 8 * (data + pointers) <= len(words), "a struct leaves its record")

    def number(self, offset, code):
        inside = offset + struct.calcsize(code) <= 8 * self.data
        return struct.unpack_from("<" + code, self.words, self.at + offset)[0] if inside else 0

    def pointer(self, index, kind):  # where it leads and its upper half, or nothing
        at = self.at + 8 * (self.data + index)
        low, high = struct.unpack_from("<iI", self.words, at) if index < self.pointers else (0, 0)
        need(low == high == 0 or low & 3 == kind, "a pointer of the wrong kind")
        return (at + 8 + 8 * (low >> 2), high) if low or high else None

    def struct(self, index):
        at, high = self.pointer(index, 0) or (0, 0)
        return Struct(self.words, at, high & 0xFFFF, high >> 16)

    def structs(self, index):
        at, high = self.pointer(index, 1) or (None, 7)
        tag, sizes = struct.unpack_from("<II", self.words, at) if at else (0, 0)
        data, pointers, count = sizes & 0xFFFF, sizes >> 16, tag >> 2
        need(high & 7 == 7 and count * (data + pointers) == high >> 3, "a list belies its tag")
        return [Struct(self.words, at + 8 + 8 * i * (data + pointers), data, pointers) for i in range(count)]

    def numbers(self, index, code):
        width = struct.calcsize(code)
        at, high = self.pointer(index, 1) or (0, width.bit_length() + 1)
        need(high & 7 == width.bit_length() + 1 and at + width * (high >> 3) <= len(self.words), "a malformed list")
        return struct.unpack_from("<%d%s" % (high >> 3, code), self.words, at)

    def text(self, index):
        return bytes(self.numbers(index, "B")[:-1]).decode()


def record(*path, seal=0):  # `seal`: bytes of the checksum behind it
    data = read(*path)
    data, seal = data[:len(data) - seal], data[len(data) - seal:]
    need(len(data) >= 16 and data[:8] == struct.pack("<II", 0, len(data) // 8 - 1), os.path.join(*path) + " is torn")
    need(not seal or seal == struct.pack("<II", crc32c(data), 0), os.path.join(*path) + " is damaged")
    return Struct(data[8:], 0, 0, 1).struct(0)


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def decision(root, name):
    found = record(root, "decisions", name, seal=8)
    ids = ["e%06d-a%06d-s%06d" % tuple(found.struct(i).number(8 * n, "Q") for n in range(3)) for i in range(2)]
    need(ids[0] == name, "the decision of %s is named %s" % (ids[0], name))
    return {"id": name, "key": tuple(found.struct(0).number(8 * n, "Q") for n in range(3)),
            "parent": ids[1] if found.pointer(1, 0) else None, "commit": found.number(0, "B") == 1,
            "manifest": "manifest-%06d-%016x-" % (found.number(8, "Q"), found.number(16, "Q")),
            "plan": bytes(found.numbers(3, "B")).hex(), "segments": len(found.structs(4))}


def commits(root):
    """Every commit, oldest first; the current line is the newest one, its parent, and so on."""
    names = [name for name in os.listdir(os.path.join(root, "decisions")) if re.fullmatch(r"e\d+-a\d+-s\d+", name)]
    ordered = sorted((decision(root, name) for name in names), key=lambda made: made["key"])
    found = {made["id"]: made for made in ordered if made["commit"]}
    line, after = [], next(reversed(found), None)
    while after in found and after not in line:
        line.append(after)
        after = found[after]["parent"]
    return [{"id": name, "step": made["key"][2], "parent": made["parent"],
             "line": "current" if name in line else "abandoned"} for name, made in found.items()]


def tensor_table(tensors):  # fqn -> (dtype, shape)
    text, ends = bytes(tensors.struct(0).numbers(0, "B")), [0, *tensors.struct(0).numbers(1, "I")]
    names = [text[begin:end].decode() for begin, end in itertools.pairwise(ends)]
    sizes = iter(tensors.numbers(3, "Q"))
    shapes = [list(itertools.islice(sizes, count)) for count in tensors.numbers(2, "B")]
    return dict(zip(names, zip(tensors.numbers(1, "B"), shapes)))


def parse_piece(name):
    """The fqn and the box (offsets, sizes) of a piece; no box for a whole tensor."""
    match = re.search(r"@(N(?:xN)*)\+(N(?:xN)*)\Z".replace("N", r"(?:0|[1-9]\d*)"), name)
    box = match and tuple([int(n) for n in part.split("x")] for part in match.groups())
    if name.startswith("@"):
        need(name.rindex("@") > 0 and (box or name.endswith("@")), "no piece is named " + name)
        return name[1:name.rindex("@")], box
    return (name[:match.start()], box) if match else (name, None)


class Checkpoint:
    def __init__(self, root, name):
        decided = decision(root, name)
        need(decided["commit"], name + " was not committed")
        self.folder, self.key, self.files = os.path.join(root, "data", name), decided["key"], []
        sections = record(root, "plans", decided["plan"]).structs(0)
        self.tables = {section.text(0): tensor_table(section.struct(1)) for section in sections}
        for number in range(decided["segments"]):
            self.files += map(self.file, record(self.folder, decided["manifest"] + str(number)).structs(3))

    def file(self, found):
        rank, index, store, digest = (found.number(4 * n, "I") for n in range(4))
        need(store == 0, "a file lies in another store")
        path = (found.text(0), str(rank // 1024), "rank-%06d-%d.safetensors" % (rank, index))
        return {"section": found.text(0), "rank": rank, "index": index, "path": os.path.join(self.folder, *path),
                "data_begin": found.number(16, "Q"), "bytes": found.number(16, "Q") + found.number(24, "Q"),
                "digests": [(U64, digest), *enumerate(found.numbers(1, "I"))]}

    def tensor(self, section, fqn):
        dtype, shape = self.tables[section][fqn]
        bits, filled = int(DTYPES[dtype][1]), 0
        out = bytearray((math.prod(shape) * bits + 7) // 8)
        strides = [math.prod(shape[dim + 1:]) * bits for dim in range(len(shape))]
        for file in (file for file in self.files if file["section"] == section):
            data, begin = read(file["path"]), file["data_begin"]
            for name, entry in json.loads(data[8:begin]).items():
                if name == "__metadata__" or parse_piece(name)[0] != fqn:
                    continue
                piece = data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
                filled += len(piece)
                offsets, sizes = parse_piece(name)[1] or ([0], [0])
                row = sizes[-1] * bits // 8 or len(piece)  # a whole tensor is one row
                places = itertools.product(*(range(first, first + size) for first, size in zip(offsets[:-1], sizes)))
                for number, place in enumerate(places):
                    at = (sum(map(math.prod, zip(place, strides))) + offsets[-1] * bits) // 8
                    out[at:at + row] = piece[number * row:(number + 1) * row]
        need(filled == len(out), "the pieces of %s do not cover it" % fqn)
        return bytes(out)

    def verify(self):
        for file in self.files:
            data, begin = read(file["path"]), file["data_begin"]
            need(len(data) == file["bytes"] and len(file["digests"]) == 1 - (begin - len(data)) // CHUNK, file["path"])
            for number, expected in file["digests"]:
                chunk = data[:begin] if number == U64 else data[begin + number * CHUNK:begin + (number + 1) * CHUNK]
                place = file["section"].encode(), file["rank"], file["index"], number
                place = struct.pack("<QQ%dsIIQ" % len(place[0]), *self.key[:2], *place)
                need(crc32c(chunk) ^ xxh3_64(place) & 0xFFFFFFFF == expected, "%s: chunk %d" % (file["path"], number))
        return {"files": len(self.files), "bytes": sum(file["bytes"] for file in self.files)}


def main(command, root, *rest):
    if command == "ls":
        return commits(root)
    checkpoint = Checkpoint(root, rest[0])
    if command == "tensors":
        return [{"section": section, "fqn": fqn, "dtype": DTYPES[dtype][0], "shape": shape}
                for section, table in checkpoint.tables.items() for fqn, (dtype, shape) in table.items()]
    return checkpoint.tensor(*rest[1:]) if command == "dump" else checkpoint.verify()


if __name__ == "__main__":
    result = main(*sys.argv[1:])
    sys.stdout.buffer.write(result if isinstance(result, bytes) else json.dumps(result).encode() + b"\n")
