"""Tests of what reads the field set's truth and of what checks it. None needs a library."""

import json
import os
import tempfile
import unittest

import check
import peers
import score
import truth

GOOD = '''"""A list keeps tensors; --fixed keeps numbers."""
# kind: vision
# holder: kept
# cause: container-grows
# rate: 512 B/step
kept.append(x)  # leak
'''


class ReadTruth(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return truth.read(path)

    def test_a_header_is_read(self):
        got = self.read(GOOD)
        self.assertEqual((got.expect, got.lines, got.holders), ("leak", (6,), ("kept",)))
        self.assertEqual((got.causes, got.rate, got.event, got.needs), (("container-grows",), 512.0, "step", "field"))

    def test_a_dash_is_no_holder(self):
        self.assertEqual(self.read(GOOD.replace("holder: kept", "holder: -")).holders, ())

    def test_a_rough_rate_says_so(self):
        self.assertTrue(self.read(GOOD.replace("512 B", "~512 B")).rate_is_rough)

    def test_malformed_headers_are_refused(self):
        for name, old, new in (
            ("an unknown key", "# kind: vision", "# kind: vision\n# note: what"),
            ("a key twice", "# kind: vision", "# kind: vision\n# kind: vision"),
            ("an unknown kind", "vision", "sound"),
            ("an unknown expectation", "# kind: vision", "# kind: vision\n# expect: maybe"),
            ("a rate without an event", "512 B/step", "512 B"),
            ("a leak without a line", "  # leak", ""),
            ("a leak without a cause", "# cause: container-grows\n", ""),
            ("a leak without a rate", "# rate: 512 B/step\n", ""),
            ("a leak that is said to fill", "# leak", "# fills"),
            ("a clean program with a leak", "# kind: vision", "# kind: vision\n# expect: clean"),
            ("no docstring", '"""A list keeps tensors; --fixed keeps numbers."""', ""),
            ("half a pair", "# kind: vision", "# kind: vision\n# leaky: numpy==2.4.0"),
        ):
            with self.subTest(name), self.assertRaises(truth.Malformed):
                self.read(GOOD.replace(old, new, 1))

    def test_the_set_is_well_formed(self):
        truths = [truth.read(path) for path in truth.paths()]
        truth.check(truths)
        programs = [t for t in truths if not t.leaky]
        held_out = [t for t in programs if os.path.basename(os.path.dirname(t.path)) == "heldout"]
        self.assertGreaterEqual(sum(t.expect == "leak" for t in programs), 40)
        self.assertGreaterEqual(sum(t.expect != "leak" for t in programs), 20)
        self.assertAlmostEqual(len(held_out) / len(programs), 1 / 3, delta=0.05)

    def test_an_unknown_cause_is_refused(self):
        with self.assertRaises(truth.Malformed):
            truth.check([self.read(GOOD.replace("container-grows", "bad-luck"))])


class Growth(unittest.TestCase):
    def test_what_rises_all_the_time_grows(self):
        self.assertEqual(check.rise_of([0, 25, 50, 75, 100], 50), 100)

    def test_what_does_not_go_on_rising_does_not_grow(self):
        for name, points in (
            ("flat", [100, 100, 100, 100, 100]),
            ("below the floor", [0, 10, 20, 30, 40]),
            ("one stair", [0, 0, 100, 100, 100]),
            ("falls again", [0, 100, 200, 40, 100]),
            ("ends where it began", [0, 60, 120, 60, 0]),
            ("falls", [100, 75, 50, 25, 0]),
        ):
            with self.subTest(name):
                self.assertEqual(check.rise_of(points, 50), 0)

    def test_points_are_the_troughs_of_the_last_half(self):
        samples = [(t / 10, {"heap": 1000 + 10 * t + (500 if t % 2 else 0)}) for t in range(200)]
        points = check.five_points(samples, "heap")
        self.assertEqual(len(points), 5)
        self.assertEqual(sorted(points), points)
        self.assertLess(points[0], 2200)  # t = 100: 2000, and no 500 on top

    def test_imports_are_no_part_of_the_work(self):
        samples = [(t / 10, {"heap": min(t, 120), "modules": 10 * min(t, 120)}) for t in range(200)]
        self.assertEqual(check.five_points(samples, "heap"), [120] * 5)

    def test_too_few_samples_give_no_points(self):
        self.assertIsNone(check.five_points([(0.1, {"heap": 1}), (2.0, {"heap": 2})], "heap"))
        self.assertIsNone(check.five_points([(t / 10, {}) for t in range(200)], "heap"))


class Peers(unittest.TestCase):
    def test_what_grew_most_in_both_stretches_is_a_leak(self):
        self.assertEqual(peers.judge([{"a": 100, "b": 5}, {"a": 101, "b": 50}, {"a": 102, "b": 90}], 10), (True, "b"))

    def test_what_did_not_grow_in_both_stretches_is_none(self):
        self.assertEqual(peers.judge([{"a": 100, "b": 5}, {"a": 100, "b": 90}, {"a": 100, "b": 90}], 10), (False, "b"))

    def test_less_than_one_per_cent_is_none(self):
        self.assertEqual(peers.judge([{"a": 1000}, {"a": 1004}, {"a": 1009}], 1), (False, "a"))

    def test_less_than_the_floor_is_none(self):
        self.assertEqual(peers.judge([{"a": 10}, {"a": 14}, {"a": 19}], 10), (False, "a"))

    def test_no_looks_are_no_answer(self):
        self.assertEqual(peers.judge([], 1), (None, ""))

    def test_the_rules_on_resident_memory(self):
        for name, bytes_a_second, wants in (
            ("flat", 0, {"predict_linear": False, "one per cent": False}),
            ("100 MB that grow by 10 kB a second", 10_000, {"predict_linear": True, "one per cent": False}),
            ("100 MB that grow by 1 MB a second", 1_000_000, {"predict_linear": True, "one per cent": True}),
        ):
            with self.subTest(name):
                samples = [(t / 10, 100_000_000 + bytes_a_second * t / 10) for t in range(100)]
                self.assertEqual(peers.from_outside(samples), wants)


class Score(unittest.TestCase):
    def test_verdicts(self):
        for expect, said, wants in (
            ("leak", True, "right"),
            ("leak", False, "wrong"),
            ("leak", None, "undecided"),
            ("clean", True, "wrong"),
            ("clean", None, "undecided"),
            ("filling", True, "wrong"),
            ("filling", False, "right"),
            ("filling", None, "right"),
        ):
            with self.subTest(expect=expect, said=said):
                self.assertEqual(score.verdict(expect, said), wants)

    def test_rows_of_another_build_or_program_do_not_count(self):
        with tempfile.TemporaryDirectory() as folder:
            program = truth.read(truth.paths(("programs",))[0])
            path = os.path.join(folder, "results.jsonl")
            now = score.digest(program.path)
            row = {"program": program.name, "variant": "plain"}
            with open(path, "w", encoding="utf-8") as file:
                for tool, more in (
                    ("memdiag", {"build": "old", "source": now}),
                    ("memray", {"source": now}),
                    ("objgraph", {"source": "old"}),
                ):
                    file.write(json.dumps({**row, "tool": tool, **more}) + "\n")
            results = score.Results(path, "new", [program])
            self.assertEqual(set(results.rows), {(program.name, "plain", "memray")})


if __name__ == "__main__":
    unittest.main()
