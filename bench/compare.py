#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares benchmark results with bench/goals.json: one table, and exit code 1 if a goal is missed or not measured.

Results are what Google Benchmark writes (--benchmark_out=FILE) from decant_bench_chain, _step, _batch, _search and
_speculative. Several files count together; of a row measured several times the median counts. With --compile the cost
of including decant is measured as well. Only the standard library is needed.

  for each in chain step batch search speculative; do
    decant_bench_$each --benchmark_filter="$(python3 bench/compare.py --filter)" --benchmark_out=$each.json
  done
  python3 bench/compare.py chain.json step.json batch.json search.json speculative.json --compile g++ --svg passes.svg

A goal without results is missed, unless the benchmark itself has said that this machine cannot tell; --only leaves out
what one did not measure.

In a name of goals.json, the row "worst" stands for the maximum over the five ordinary rows. A goal says one of
  limit        what the row may take, in passes (compile/...: times the standard headers; tiny rows: microseconds)
  limit, of    what it may take as a multiple of another row
A row that allocates in steady state has missed its goal, too. A goal may say more:
  reported = true   it is shown and never fails; with limit 0 there is nothing that it could miss
  expected_llama    how many times as long libllama's same chain should take: shown beside what was measured
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ORDINARY_ROWS = ("zipf", "real", "peaked", "flat", "wide")
ADVERSARIAL_ROWS = ("ascending", "descending", "all_equal", "two_valued", "mostly_gone", "one_block", "shifted")
ISAS = ("scalar", "sse2", "avx2", "avx512")  # each machine has those before the best one, too
TIMING_SUFFIX = re.compile(r"/(iterations:\d+|repeats:\d+|min_time:[\d.]+|manual_time|real_time|process_time)")


class Results:
    """What was measured, by name: passes and the other counters."""

    def __init__(self):
        self.samples = {}
        self.not_measurable = set()  # names of rows that said so themselves
        self.contexts = []

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        self.contexts.append(data.get("context", {}))
        for run in data["benchmarks"]:
            if run.get("run_type", "iteration") != "iteration":
                continue
            name = TIMING_SUFFIX.sub("", run["name"])
            if run.get("error_occurred"):
                if "not measurable" in run.get("error_message", ""):
                    self.not_measurable.add(name)
                continue
            for counter in ("passes", "tokens_per_second", "vs_llama", "allocations"):
                if counter in run:
                    self.add(name, counter, run[counter])

    def add(self, name, counter, value):
        self.samples.setdefault(name, {}).setdefault(counter, []).append(value)

    def names(self):
        return list(self.samples)

    def value(self, name, counter="passes"):
        """The median of the samples of a row, the maximum over its rows if it is "worst"; None if not measured."""
        values = []
        for each in rows_of(name):
            samples = self.samples.get(each, {}).get(counter)
            if not samples:
                return None
            values.append(statistics.median(samples))
        return min(values) if counter in ("vs_llama", "tokens_per_second") else max(values)

    def microseconds(self, name):
        rate = self.value(name, "tokens_per_second")
        return None if rate is None else 1e6 / rate

    def best_isa(self):
        """The best instruction set of the machine that measured; all of them where no result says."""
        known = [context["best_isa"] for context in self.contexts if context.get("best_isa") in ISAS]
        return max(known, key=ISAS.index) if known else ISAS[-1]


def rows_of(name):
    """The benchmarks that a name of goals.json stands for."""
    parts = name.split("/")
    if len(parts) == 6 and parts[4] == "worst":
        return ["/".join(parts[:4] + [row] + parts[5:]) for row in ORDINARY_ROWS]
    return [name]


class Verdict:
    """One goal beside what was measured."""

    def __init__(self, goal, results, slack):
        self.name = goal["name"]
        self.reported = goal.get("reported", False)
        self.unit = goal.get("unit", "passes")
        self.expected_llama = goal.get("expected_llama")
        self.limit = goal["limit"]
        self.value = results.microseconds(self.name) if self.unit == "us" else results.value(self.name)
        isa = isa_of(self.name)
        self.elsewhere = isa is not None and ISAS.index(isa) > ISAS.index(results.best_isa())
        if "of" in goal:
            other = results.value(goal["of"])
            if other is None:
                self.value = None
            self.limit = goal["limit"] * (other or 0)
        self.not_measurable = self.value is None and self.name in results.not_measurable
        self.missing = self.value is None and not self.elsewhere and not self.not_measurable
        self.above = self.value is not None and self.limit > 0 and self.value > self.limit * (1 + slack)
        self.allocations = results.value(self.name, "allocations") or 0
        # A workspace that grows once in thousands of steps is in its steady state all the same.
        self.allocates = self.allocations > 0.01
        self.failed = (self.missing or self.above or self.allocates) and not self.reported

    def complaint(self):
        if self.allocates and not self.above:
            return f"{self.name}: {number(self.allocations)} allocations a step"
        if self.missing:
            return f"{self.name}: not measured"
        return f"{self.name}: {number(self.value)} {self.unit}, the goal is {number(self.limit)}"


def isa_of(name):
    parts = name.split("/")
    return parts[2] if len(parts) == 6 and parts[2] in ISAS else None


def number(value):
    return f"{value:.2f}" if value < 20 else f"{value:.0f}"


def read_goals(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def moved(goal, residency):
    """The same goal for rows that are not in L3."""
    return {key: value.replace("/L3/", f"/{residency}/") if key in ("name", "of") else value
            for key, value in goal.items()}


def twin(name, isa):
    """The same row on another instruction set."""
    parts = name.split("/")
    return "/".join(parts[:2] + [isa] + parts[3:])


def taken_over(goals, best_isa):
    """The goals as a machine has to meet them: what is asked of a better instruction set alone, and of none that it
    has, is asked of its best."""
    names = {goal["name"] for goal in goals}
    taken = []
    for goal in goals:
        isa = isa_of(goal["name"])
        better = isa is not None and ISAS.index(isa) > ISAS.index(best_isa)
        if better and twin(goal["name"], best_isa) not in names:
            goal = {key: twin(value, best_isa) if key in ("name", "of") else value for key, value in goal.items()}
        taken.append(goal)
    return taken


def filter_of(goals):
    """A regular expression for the benchmarks that goals need."""
    names = []
    for goal in goals["goals"] + taken_over(goals["goals"], "avx2"):
        for name in [goal["name"]] + ([goal["of"]] if "of" in goal else []):
            for row in rows_of(name):
                if not row.startswith("compile/") and row not in names:
                    names.append(row)
    # By what they have in common but the key and the row, so that the expression stays short.
    groups = {}
    for name in names:
        kind, key, isa, where, row, size = name.split("/")
        groups.setdefault((kind, isa, where, size), {}).setdefault(row, set()).add(key)
    terms = []
    for (kind, isa, where, size), rows in groups.items():
        by_keys = {}
        for row, keys in rows.items():
            by_keys.setdefault(tuple(sorted(keys)), []).append(row)
        for keys, some in by_keys.items():
            joined = "|".join(re.escape(key) for key in keys)
            terms.append(f"{kind}/({joined})/{isa}/{where}/({'|'.join(some)})/{size}(/|$)")
    return "^(" + "|".join(terms) + ")"


# ---- the table


def cell(verdict):
    """A figure and its goal, in bold where the goal is missed."""
    if verdict is None:
        return "", ""
    goal = number(verdict.limit) if verdict.limit else ""
    if verdict.elsewhere:
        return "not on this machine", goal
    if verdict.not_measurable:
        return "not measurable here", goal
    if verdict.value is None:
        return "**not measured**", goal
    figure = number(verdict.value) + (" us" if verdict.unit == "us" else "")
    return (f"**{figure}**" if verdict.above else figure), goal


def table(verdicts, results, everything):
    """Markdown: a line a row, with a column each for the two instruction sets.

    Unless everything is asked for, the worst stands for all adversarial rows, for all tiny vocabularies, and for a step
    in front and later in a chain.
    """
    lines = {}
    for verdict in verdicts:
        parts = verdict.name.split("/")
        if len(parts) != 6:
            continue
        kind, key, isa, where, row, size = parts
        if not everything:
            key = key.removeprefix("later.")
            row = "adversarial" if row in ADVERSARIAL_ROWS else row
            size = "tiny" if verdict.unit == "us" else size
        line = lines.setdefault((kind, key, where, row, size), {})
        shown = line.get(isa)
        if shown is None or badness(verdict) > badness(shown):
            line[isa] = verdict
    out = [
        "| | row | where | n | AVX-512 | goal | AVX2 | goal | us | llama.cpp |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    goal_names = {verdict.name for verdict in verdicts}
    for (_, _, _, label, _), line in lines.items():
        figures = cell(line.get("avx512")) + cell(line.get("avx2"))
        shown = max(line.values(), key=lambda verdict: (verdict.value is not None, isa_of(verdict.name) == "avx512"))
        kind, key, _, where, row, size = shown.name.split("/")
        row = row if label == row else f"{label}: {row}"
        expected = next((verdict.expected_llama for verdict in line.values() if verdict.expected_llama), None)
        out.append(line_of(kind, key, row, where, size, figures, results, shown.name, expected))
    if everything:
        for name in sorted(set(results.names()) - goal_names, key=natural):
            parts = name.split("/")
            if len(parts) != 6:
                continue
            kind, key, isa, where, row, size = parts
            figure = number(results.value(name))
            figures = {"avx512": (figure, "", "", ""), "avx2": ("", "", figure, "")}.get(
                isa, (f"{figure} ({isa})", "", "", ""))
            out.append(line_of(kind, key, row, where, size, figures, results, name))
    return "\n".join(out)


def line_of(kind, key, row, where, size, figures, results, name, expected=None):
    microseconds = results.microseconds(name)
    ratio = results.value(name, "vs_llama")
    llama = "" if ratio is None else number(ratio) + "x" + (f" ({expected}x expected)" if expected else "")
    label = key if kind == "chain" else f"{kind} {key}"
    return "| " + " | ".join([
        label, row, where, f"{int(size):,}", *figures,
        "" if microseconds is None else f"{microseconds:.2f}",
        llama,
    ]) + " |"


def badness(verdict):
    if verdict.missing:
        return float("inf")
    return (verdict.value or 0) / verdict.limit if verdict.limit else 0


def natural(name):
    return [int(part) if part.isdigit() else part for part in name.split("/")]


def heading(results):
    """What the figures are figures of."""
    lines = []
    for context in results.contexts:
        caches = {cache["level"]: cache["size"] for cache in context.get("caches", []) if cache["type"] == "Unified"}
        text = [f"unit: one {context.get('unit', 'streaming max')}", str(context.get("compiler", "compiler unknown"))]
        text += [f"L{level} {size >> 10:,} KB" for level, size in sorted(caches.items())]
        text.append(f"libllama {context.get('libllama', 'absent')}")
        dram = int(context.get("dram_megabytes", 100)) << 20
        if caches and dram < max(caches.values()):
            text.append("the DRAM pool fits into a cache of this machine (--dram_megabytes makes it larger)")
        line = "; ".join(text)
        if line not in lines:
            lines.append(line)
    return lines


# ---- the plot


PLOTTED = (("greedy", "#4c78a8"), ("minp", "#54a24b"), ("k_p_m", "#e45756"), ("pen_k_p_m", "#b279a2"),
           ("full", "#f58518"), ("topp", "#72b7b2"))


def plot(results):
    """SVG: passes by size of the vocabulary, on the best instruction set, rows in L3."""
    import math

    isa = results.best_isa()
    lines = []
    for key, colour in PLOTTED:
        points = []
        for name in results.names():
            parts = name.split("/")
            if len(parts) == 6 and parts[:5] == ["chain", key, isa, "L3", "zipf"] and int(parts[5]) >= 10000:
                points.append((int(parts[5]), results.value(name)))
        if points:
            lines.append((key, colour, sorted(points)))
    if not lines:
        raise SystemExit("compare.py: no results of chains in L3 to plot")
    width, height, left, right, top, bottom = 720, 420, 60, 120, 40, 50
    sizes = sorted({size for _, _, points in lines for size, _ in points})
    highest = max(value for _, _, points in lines for _, value in points)
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10 ** 9) if highest / s <= 8)
    ceiling = step * math.ceil(highest / step)
    low, high = math.log(sizes[0]), math.log(sizes[-1])

    def x(size):
        return left + (width - left - right) * ((math.log(size) - low) / (high - low) if high > low else 0.5)

    def y(value):
        return height - bottom - (height - top - bottom) * value / ceiling

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12" role="img">',
        "<title>Cost of decoding chains by size of the vocabulary, in passes over the logits</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="20" font-size="14">Passes over the logits a token ({isa}, rows in L3)</text>',
    ]
    for i in range(round(ceiling / step) + 1):
        value = i * step
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for size in sizes:
        out.append(f'<text x="{x(size):.1f}" y="{height - bottom + 20}" text-anchor="middle">{size:,}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle">tokens in the '
               "vocabulary</text>")
    # Names at the ends of the lines, moved apart where they would cover each other.
    last = float("inf")
    for key, colour, points in sorted(lines, key=lambda line: line[2][-1][1]):
        path = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for size, value in points:
            out.append(f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>')
        last = min(y(points[-1][1]) + 4, last - 14)
        out.append(f'<text x="{x(points[-1][0]) + 10:.1f}" y="{last:.1f}" fill="{colour}">{key}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


# ---- compile time


SOURCES = {
    "standard": "#include <algorithm>\n#include <cmath>\n#include <vector>\n",
    "chain": "#include <decant/chain/chain.hpp>\n#include <decant/processors/top_p.hpp>\n",
    "decoder": "#include <decant/chain/compose.hpp>\n#include <decant/processors/top_p.hpp>\n"
               "#include <decant/samplers/multinomial.hpp>\n",
    "decant.hpp": "#include <decant/decant.hpp>\n",
}


def measure_compiling(compiler, include, rounds, results):
    """Times the compiler on files that only include; the standard headers are the unit. In turns, by median."""
    seconds = {key: [] for key in SOURCES}
    with tempfile.TemporaryDirectory() as folder:
        for key, text in SOURCES.items():
            (pathlib.Path(folder) / f"{key}.cpp").write_text(text, encoding="utf-8")
        command = [compiler, "-std=c++20", "-O2", "-I", str(include), "-isystem", "/usr/include/eigen3", "-c"]
        for turn in range(rounds + 1):
            for key in SOURCES:
                output = os.path.join(folder, "out.o")
                start = time.perf_counter()
                subprocess.run([*command, os.path.join(folder, f"{key}.cpp"), "-o", output], check=True)
                if turn > 0:  # the first round fills the file cache
                    seconds[key].append(time.perf_counter() - start)
    base = statistics.median(seconds["standard"])
    for key in SOURCES:
        taken = statistics.median(seconds[key])
        results.add(f"compile/{key}", "passes", taken / base)
        results.add(f"compile/{key}", "tokens_per_second", 1 / taken)


def compile_lines(verdicts, results):
    lines = []
    for verdict in verdicts:
        if not verdict.name.startswith("compile/") or verdict.value is None:
            continue
        key = verdict.name.split("/", 1)[1]
        taken = results.microseconds(verdict.name) / 1e6
        goal = "reported" if verdict.reported else f"goal {number(verdict.limit)}"
        lines.append(f"Compiling {key}: {number(verdict.value)} times <vector>, <algorithm>, <cmath> "
                     f"({taken:.2f} s; {goal}).")
    return lines


# ---- the program


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", help="JSON files that Google Benchmark has written")
    parser.add_argument("--goals", default=HERE / "goals.json", help="the goals (default: goals.json beside this)")
    parser.add_argument("--filter", action="store_true", help="print the --benchmark_filter of all goals, and end")
    parser.add_argument("--residency", choices=("L2", "L3", "DRAM"),
                        help="ask the goals for L3 of rows that are elsewhere: L2 shows a machine whose L3 keeps up")
    parser.add_argument("--only", metavar="REGEX", help="look at goals whose name matches, and forget the others")
    parser.add_argument("--all", action="store_true", help="also show each adversarial row, and rows without a goal")
    parser.add_argument("--svg", metavar="FILE", help="plot passes by size of the vocabulary")
    parser.add_argument("--compile", metavar="CXX", help="measure what including decant costs with this compiler")
    parser.add_argument("--compile-rounds", type=int, default=7, metavar="N", help="how often (default: 7)")
    parser.add_argument("--include", default=HERE.parent / "include", help="where decant's headers are")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    goals = read_goals(options.goals)
    if options.only:
        goals["goals"] = [goal for goal in goals["goals"] if re.search(options.only, goal["name"])]
    if options.residency:
        goals["goals"] = [moved(goal, options.residency) for goal in goals["goals"] if "/L3/" in goal["name"]]
    if options.filter:
        print(filter_of(goals))
        return 0
    if not options.results and not options.compile:
        print("compare.py: no results given; --help says how they are made", file=sys.stderr)
        return 2
    results = Results()
    for path in options.results:
        results.read(path)
    if options.compile:
        measure_compiling(options.compile, options.include, options.compile_rounds, results)

    asked = taken_over(goals["goals"], results.best_isa())
    verdicts = [Verdict(goal, results, goals["slack"]) for goal in asked]
    # What one did not set out to measure is not missing.
    if not options.compile:
        verdicts = [verdict for verdict in verdicts if not verdict.name.startswith("compile/")]
    if not options.results:
        verdicts = [verdict for verdict in verdicts if verdict.name.startswith("compile/")]
    for line in heading(results):
        print(f"{line}\n")
    if options.results:
        print(table(verdicts, results, options.all), end="\n\n")
    for line in compile_lines(verdicts, results):
        print(line)
    if options.svg:
        pathlib.Path(options.svg).write_text(plot(results), encoding="utf-8")

    failed = [verdict for verdict in verdicts if verdict.failed]
    asserted = [verdict for verdict in verdicts
                if not verdict.reported and not verdict.elsewhere and not verdict.not_measurable]
    print(f"{len(asserted) - len(failed)} of {len(asserted)} goals are met, with {goals['slack']:.0%} slack.")
    sys.stdout.flush()
    for verdict in failed:
        print(verdict.complaint(), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
