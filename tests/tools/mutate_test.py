"""Tests of tools/mutate without a compiler: the mutations of literal lines, what is left alone, the choice, the report."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

import mutants  # noqa: E402

SAMPLE = '''// A comment: a < b && 1.
#include "calque/a/b.h"
#define LONG 1 + \\
  2
namespace calque {
template <class T, int n = 3>
int64_t clip(int64_t value, int64_t most) {
  static_assert(sizeof(int) == 4,
                "4 < 5");
  if (value > most) throw UserError(fmt::format("{}; more than {}", value + 1,
                                                most - 1));
  log::info("{}", value * 2);
  rows.reserve(2 * value);
  const auto path = folder / "a + 1";  /* 3 < 4 */ const char* text = R"(5 + 6)";
  const int fixed = 7;  // mutate: any value does
  return value;
}
}  // namespace calque
'''


def load():
    """The script as a module, for its functions."""
    loader = importlib.machinery.SourceFileLoader("mutate", str(ROOT / "tools/mutate"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
    loader.exec_module(module)
    return module


mutate = load()


def changed(line, previous=";"):
    """All lines that one mutation makes of `line`."""
    results = set()
    for _, begin, end, new in mutants.mutations(mutants.mask(line), previous):
        results.add(line[:begin] + (f"!({line[begin:end]})" if new == "!" else new) + line[end:])
    return results


class Mutations(unittest.TestCase):
    def test_operators_and_constants(self):
        self.assertEqual(changed("const int a = b + 1;"),
                         {"const int a = b - 1;", "const int a = b + 2;", "const int a = b + 0;"})
        self.assertEqual(changed("const bool a = b <= c && d != e;"),
                         {"const bool a = b < c && d != e;", "const bool a = b <= c || d != e;",
                          "const bool a = b <= c && d == e;"})
        self.assertEqual(changed("const float a = 0.5F, b = 0;"),
                         {"const float a = 1.0F, b = 0;", "const float a = 0.5F, b = 1;"})
        self.assertEqual(changed("const uint32_t a = 0xFFu;"), {"const uint32_t a = 0x100u;"})
        self.assertEqual(changed("const auto a = std::min(b, 10'000);"),
                         {"const auto a = std::max(b, 10'000);", "const auto a = std::min(b, 10001);",
                          "const auto a = std::min(b, 9999);"})

    def test_conditions(self):
        self.assertEqual(changed("  if (is_done(a) && b) {"), {"  if (!(is_done(a) && b)) {", "  if (is_done(a) || b) {"})
        self.assertEqual(changed("if (const auto a = find(b)) {"), set())

    def test_returns(self):
        self.assertEqual(changed("return a.b();"), {"return {};"})
        self.assertEqual(changed("return a < b;"), {"return !(a < b);", "return a <= b;"})
        self.assertEqual(changed("return a < b ? c : d;"), {"return {};", "return a <= b ? c : d;"})
        self.assertEqual(changed("bool a() const { return true; }"), {"bool a() const { return false; }"})
        self.assertEqual(changed("return std::nullopt;"), set())
        self.assertEqual(changed("const Config& config() const { return config_; }"), set())

    def test_statements_are_dropped_where_one_begins(self):
        self.assertEqual(changed("  a.b[c] = d;"), {"  ;"})
        self.assertEqual(changed("  if (a) cache_.clear();"), {"  if (a) ;", "  if (!(a)) cache_.clear();"})
        self.assertEqual(changed("      b.clear();", "const auto a = c +"), set())
        self.assertEqual(changed("Vector sums(a), squares = b;"), set())
        self.assertEqual(changed("void clear(const Cache& a);"), set())
        self.assertEqual(changed("Cache() = default;"), set())

    def test_templates_pointers_and_pure_virtual_functions_are_left_alone(self):
        for line in ("std::vector<std::pair<int, float>> a;", "const float* a, int64_t&& b;", "virtual int a() const = 0;",
                     "auto a = static_cast<int64_t>(*b);"):
            self.assertEqual(changed(line), set(), line)

    def test_what_cannot_matter_is_left_alone(self):
        found = mutants.of_file("a", "src/a/b.cpp", SAMPLE, random.Random(1))
        self.assertEqual(sorted(mutant.line for mutant in found), [10, 16])
        masked = mutants.mask(SAMPLE)
        self.assertEqual([len(line) for line in masked.split("\n") if line],
                         [len(line) for line in SAMPLE.split("\n") if line and "mutate:" not in line])
        self.assertIsNone(re.search(r"[1-9] ", masked))

    def test_a_mutant_differs_in_its_line_as_its_diff_says(self):
        for path in sorted((ROOT / "src/metrics").glob("*.cpp")):
            text = path.read_text(encoding="utf-8")
            for mutant in mutants.of_file("metrics", path.name, text, random.Random(2)):
                old = re.sub(r"\{\+.*?\+\}", "", re.sub(r"\[-(.*?)-\]", r"\1", mutant.diff))
                self.assertEqual(old, text.split("\n")[mutant.line - 1].strip())
                new = re.sub(r"\{\+(.*?)\+\}", r"\1", re.sub(r"\[-.*?-\]", "", mutant.diff))
                self.assertEqual(new, mutant.after.strip())


class Choice(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, lines in (("src/data/long.cpp", 400), ("src/data/short.cpp", 100), ("include/calque/data/long.h", 400),
                            ("src/metrics/a.cpp", 50)):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text("  a = b + 1;\n" * lines)
        (self.root / "tools").mkdir()
        for name in ("mutate", "mutants.py"):
            shutil.copy(ROOT / "tools" / name, self.root / "tools")

    def run_script(self, *words):
        return subprocess.run([sys.executable, str(self.root / "tools/mutate"), *words], capture_output=True, text=True)

    def test_the_list_depends_on_the_seed_alone(self):
        lists = [self.run_script("--list", "--layers", "data,metrics", "--count", "21", "--seed", seed).stdout for seed in "121"]
        self.assertEqual(lists[0], lists[2])
        self.assertNotEqual(lists[0], lists[1])
        lines = lists[0].splitlines()
        self.assertEqual([sum(layer in line for line in lines) for layer in ("data/", "metrics/")], [11, 10])
        for line in lines:
            self.assertRegex(line, r"^(src|include/calque)/\w+/\w+\.\w+:\d+: .*(\[-.+-\]|\{\+.+\+\})")

    def test_places_are_spread_by_lines_and_sources_count_four_times(self):
        first = [mutant.file for mutant in mutants.of_layer(self.root, "data", 3)[:48]]
        for name, share in (("src/data/long.cpp", 32), ("src/data/short.cpp", 8), ("include/calque/data/long.h", 8)):
            self.assertAlmostEqual(first.count(name), share, delta=1)

    def test_no_place_twice(self):
        found = [(mutant.file, mutant.line) for mutant in mutants.of_layer(self.root, "data", 3)]
        self.assertEqual(len(found), 900)
        self.assertEqual(len(set(found)), 900)

    def test_command_line(self):
        self.assertIn("Usage: tools/mutate", self.run_script("--help").stdout)
        self.assertEqual(self.run_script("--no-such-option").returncode, 2)
        wrong = self.run_script("--layers", "kernel", "--list")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("kernel: no such layer", wrong.stderr)


class Work(unittest.TestCase):
    """Runs programs, but no compiler."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        mutate.WORK = mutate.BUILD = pathlib.Path(folder.name)
        mutate.RESULTS = mutate.WORK / "results.jsonl"

    def test_run_gives_the_exit_code_and_ends_what_takes_too_long(self):
        self.assertEqual(mutate.run([(["true"], {}), (["sh", "-c", 'exit "$CODE"'], {"CODE": "3"})], 20), 3)
        self.assertEqual(mutate.run([(["true"], {}), (["true"], {})], 20), 0)
        begin = time.monotonic()
        self.assertEqual(mutate.run([(["sleep", "30"], {}), (["false"], {})], 20), 1)
        self.assertEqual(mutate.run([(["sh", "-c", "echo $$; exec sleep 30"], {})], 0.5), "time-out")
        self.assertLess(time.monotonic() - begin, 15)
        with self.assertRaises(ProcessLookupError):
            os.kill(int((mutate.WORK / "log.0").read_text()), 0)

    def test_a_result_cut_short_is_ignored_and_the_last_one_counts(self):
        result = {"layer": "data", "file": "src/data/a.cpp", "line": 3, "diff": "a [-+-]{+-+} b;", "source": "0"}
        mutate.RESULTS.write_text("".join(json.dumps({**result, "status": status}) + "\n" for status in ("survived", "caught")) +
                                  '{"layer": "da')
        self.assertEqual([result["status"] for result in mutate.load_results().values()], ["caught"])

    def test_report(self):
        one = {"layer": "data", "file": "src/data/a.cpp", "line": 3, "diff": "a [-+-]{+-+} b;", "status": "caught"}
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            mutate.report(["data", "train"], [one, {**one, "line": 4, "status": "survived"}])
        self.assertEqual(out.getvalue(), "| layer | mutants | caught | survived | rate |\n|---|---|---|---|---|\n"
                                         "| data | 2 | 1 | 1 | 50 % |\n| train | 0 | 0 | 0 |  |\n| all | 2 | 1 | 1 | 50 % |\n"
                                         "\nSurvivors:\n\n- `src/data/a.cpp:4` `a [-+-]{+-+} b;`\n")


if __name__ == "__main__":
    unittest.main()
