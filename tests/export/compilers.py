"""Compiling exports in tests: strictly, with sanitizers, and with numbers that count operations."""

import shutil
import subprocess

from contextgap.export.c import Operations

STRICT = ("-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Wfloat-equal", "-Werror")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or (
    ["cc"] if shutil.which("cc") else []
)

# Stands in for double: every operation on it is counted.
_COUNTING = """\
#ifndef COUNTING_H
#define COUNTING_H
#include <cmath>
extern long additions, multiplications, divisions, exps, sqrts, sins;
struct contextgap_real {
    double value;
    contextgap_real() : value(0) {}
    contextgap_real(double v) : value(v) {}
    typedef contextgap_real R;
    friend R operator+(R a, R b) { additions++; return a.value + b.value; }
    friend R operator-(R a, R b) { additions++; return a.value - b.value; }
    friend R operator*(R a, R b) { multiplications++; return a.value * b.value; }
    friend R operator/(R a, R b) { divisions++; return a.value / b.value; }
    friend R operator-(R a) { return -a.value; }
    explicit operator int() const { return static_cast<int>(value); }
    R &operator+=(R b) { return *this = *this + b; }
    R &operator-=(R b) { return *this = *this - b; }
    R &operator*=(R b) { return *this = *this * b; }
    friend bool operator<(R a, R b) { return a.value < b.value; }
    friend bool operator>(R a, R b) { return a.value > b.value; }
    friend bool operator<=(R a, R b) { return a.value <= b.value; }
    friend bool operator>=(R a, R b) { return a.value >= b.value; }
    friend R exp(R a) { exps++; return std::exp(a.value); }
    friend R sqrt(R a) { sqrts++; return std::sqrt(a.value); }
    friend R sin(R a) { sins++; return std::sin(a.value); }
    friend R cos(R a) { sins++; return std::cos(a.value); }
    friend R fmod(R a, R b) { divisions++; return std::fmod(a.value, b.value); }
};
#endif
"""
_COUNTING_MAIN = """\
#include "contextgap_policy.c"
#include <cstdio>
long additions, multiplications, divisions, exps, sqrts, sins;
int main()
{
    contextgap_real context[CONTEXTGAP_DIMENSION];
    for (int i = 0; i < CONTEXTGAP_DIMENSION; i++) context[i] = 0.1 * (i + 1);
    additions = multiplications = divisions = exps = sqrts = sins = 0;
    contextgap_recommend(context);
    std::printf("%ld %ld %ld ", additions, multiplications, divisions);
    std::printf("%ld %ld %ld", exps, sqrts, sins);
}
"""


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def self_test(export, compiler, *flags):
    """Compile the self-test without a single warning, run it, return the finished process."""
    program = export.source.parent / f"selftest-{compiler}"
    built = run(
        *(compiler, "-std=c99", *STRICT, *flags, export.source, export.self_test),
        *("-o", program, "-lm"),
    )
    assert built.returncode == 0, built.stderr
    return run(program)


def counted_operations(export, folder):
    """Count what one call of ``contextgap_recommend`` does."""
    header = export.header.read_text()
    typedef = "typedef double contextgap_real;"
    assert typedef in header
    (folder / "contextgap_policy.h").write_text(header.replace(typedef, ""))
    (folder / "contextgap_policy.c").write_text(export.source.read_text())
    (folder / "counting.h").write_text(_COUNTING)
    (folder / "main.cpp").write_text('#include "counting.h"\n' + _COUNTING_MAIN)
    # Since C++17 <cmath> has special functions, which take longer to compile than all else.
    built = run("g++", "-std=c++11", "-I", folder, folder / "main.cpp", "-o", folder / "count")
    assert built.returncode == 0, built.stderr
    return Operations(*map(int, run(folder / "count").stdout.split()))


def constant_bytes(export, compiler, folder):
    """Return the bytes of all sections of constants of the compiled object."""
    compiled = folder / "policy.o"
    built = run(compiler, "-std=c99", "-O1", "-fno-pic", "-c", export.source, "-o", compiled)
    assert built.returncode == 0, built.stderr
    lines = (line.split() for line in run("size", "-A", compiled).stdout.splitlines())
    constant = (".rodata", ".data.rel.ro")
    return sum(int(line[1]) for line in lines if line and line[0].startswith(constant))


def stack_bytes(export, folder):
    """Return the bytes of all functions' stack frames together, unoptimised."""
    usage = folder / "usage.su"
    flags = ("-std=c99", "-O0", "-fstack-usage", "-c")
    built = run("gcc", *flags, export.source, "-o", folder / "usage.o")
    assert built.returncode == 0, built.stderr
    return sum(int(line.split("\t")[1]) for line in usage.read_text().splitlines())
