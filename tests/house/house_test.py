"""Every rule of house.py finds the breach that it is there for, and nothing in a tree that keeps it."""
import os
import tempfile
import unittest

import house

GOOD = {
    "schema/box.h": '#pragma once\n#include <vector>\n#include "result.h"\n',
    "schema/result.h": "#pragma once\n",
    "schema/codec.cpp": '#include <capnp/message.h>\n#include "schema/control.capnp.h"\n',
    "runtime/time_point.h": '#include <chrono>\n',
    "runtime/clock.h": '#include "runtime/time_point.h"\n#include "schema/box.h"\n',
    "coordinator/planner/cover.cpp": '#include "coordinator/planner/cover.h"\n',
    "coordinator/planner/cover.h": '#include "schema/box.h"\n',
    "coordinator/coordinator.cpp": '#include "runtime/time_point.h"\n// not std::chrono::steady_clock::now()\n',
    "coordinator/coordinator_actor.cpp": '#include <thread>\n#include "runtime/clock.h"\n',
    "coordinator/coordinator_actor.h": "",
    "worker/include/vckpt/worker.h": '#include "schema/box.h"\n',
    "worker/single_process.cpp": '#include "coordinator/coordinator_actor.h"\n#include <vckpt/worker.h>\n',
    "launch/main.cpp": '#include <vckpt/worker.h>\n#include "coordinator/coordinator_actor.h"\n',
}


class Rules(unittest.TestCase):
    def breaches(self, rule, **changed):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **changed.get("files", {})}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return rule(root)

    def test_a_tree_that_keeps_the_rules_has_no_breach(self):
        for rule in house.RULES.values():
            self.assertEqual(self.breaches(rule), [])

    def test_an_include_up_the_ladder_is_found(self):
        for path, include in [
            ("schema/up.h", '"runtime/clock.h"'),
            ("runtime/up.cpp", '"coordinator/planner/cover.h"'),
            ("coordinator/planner/up.cpp", '"runtime/clock.h"'),
            ("coordinator/planner/up.cpp", '"../coordinator_actor.h"'),
            ("coordinator/catalog/up.cpp", '"coordinator/planner/cover.h"'),
            ("coordinator/up.cpp", "<vckpt/worker.h>"),
            ("worker/save_run.cpp", '"coordinator/coordinator_actor.h"'),
            ("runtime/gone.cpp", '"runtime/not_there.h"'),
        ]:
            with self.subTest(path=path, include=include):
                found = self.breaches(house.ladder, files={path: f"#include {include}\n"})
                self.assertEqual(len(found), 1)
                self.assertIn(path + ":1", found[0])

    def test_a_header_that_shows_a_third_party_stays_in_its_folder(self):
        wire = {"schema/wire.h": "#include <capnp/message.h>\n", "schema/wire.cpp": '#include "schema/wire.h"\n'}
        self.assertEqual(self.breaches(house.third_party, files=wire), [])
        through = {**wire, "schema/columns.h": '#include "wire.h"\n', "runtime/a.cpp": '#include "schema/columns.h"\n'}
        found = self.breaches(house.third_party, files=through)
        self.assertEqual(len(found), 1)
        self.assertIn("runtime/a.cpp:1", found[0])

    def test_logic_that_is_not_pure_is_found(self):
        for path, line in [
            ("coordinator/planner/cover.cpp", "#include <thread>"),
            ("coordinator/coordinator.cpp", "#include <sys/socket.h>"),
            ("coordinator/coordinator.cpp", '#include "runtime/clock.h"'),
            ("coordinator/sessions.cpp", "#include <fstream>"),
            ("worker/worker_logic.cpp", "#include <zmq.hpp>"),
            ("worker/worker_logic_load.cpp", "auto t = std::chrono::steady_clock::now();"),
            ("schema/box.cpp", "#include <mutex>"),
        ]:
            with self.subTest(path=path, line=line):
                found = self.breaches(house.purity, files={path: line + "\n"})
                self.assertEqual(len(found), 1)
                self.assertIn(path + ":1", found[0])

    def test_a_long_file_is_found_and_one_at_the_limit_is_not(self):
        at_limit, above = "x\n" * house.LINES_MAX, "x\n" * (house.LINES_MAX + 1)
        self.assertEqual(self.breaches(house.sizes, files={"schema/long.cpp": at_limit}), [])
        self.assertEqual(len(self.breaches(house.sizes, files={"schema/long.cpp": above})), 1)

    def test_a_generated_file_is_found(self):
        self.assertEqual(len(self.breaches(house.sizes, files={"schema/control.capnp.h": ""})), 1)


if __name__ == "__main__":
    unittest.main()
