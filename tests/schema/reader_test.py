"""The reader's own pieces: digests against published vectors and the library, and names of pieces."""
import struct
import unittest

import reader


class Digests(unittest.TestCase):
    def test_crc32c_gives_the_published_value(self):
        self.assertEqual(reader.crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(reader.crc32c(bytes(i * 7 & 255 for i in range(1000))), 0x79A16AE6)

    def test_xxh3_equals_the_library_at_every_branch(self):
        vectors = [(17, 0x621F018AAD19B14A), (32, 0x8911535E799E4D99), (33, 0xB6D8B523DB9B284C),
                   (37, 0x4F11DCB54F5DAD42), (64, 0x1B1BF114C7371F1B), (65, 0xF0037F8AC0441CC4),
                   (96, 0xCFB21E0D09D8EF29), (97, 0xE1415CA7902A74DA), (128, 0xE9549AF9A74093E6)]
        for length, expected in vectors:
            self.assertEqual(reader.xxh3_64(bytes((i * 7 + length) & 255 for i in range(length))), expected, length)

    def test_a_binding_equals_the_library(self):
        place = struct.pack("<QQ5sIIQ", 3, 12, b"model", 7, 1, 5)
        self.assertEqual(reader.xxh3_64(place) & 0xFFFFFFFF, 0xA806B04B)


class Names(unittest.TestCase):
    def test_names_of_pieces_read_as_the_text_says(self):
        box = ([1], [2])
        for name, expected in {
                "w": ("w", None), "w@0x128+64x128": ("w", ([0, 128], [64, 128])), "a@b@1+2": ("a@b", box),
                "@__metadata__@": ("__metadata__", None), "@__metadata__@1+2": ("__metadata__", box),
                "@w@0+2@": ("w@0+2", None), "@@x@": ("@x", None), "@@x@1+2": ("@x", box), "@@x@1+2@": ("@x@1+2", None),
                "w@01+2": ("w@01+2", None), "w@0+": ("w@0+", None)}.items():
            self.assertEqual(reader.parse_piece(name), expected, name)
        for name in ("@", "@a", "@@x@1+"):
            with self.assertRaises(SystemExit):
                reader.parse_piece(name)


if __name__ == "__main__":
    unittest.main()
