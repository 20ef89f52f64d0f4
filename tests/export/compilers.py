"""Compiling exports in tests: strictly, and with sanitizers."""

import re
import shutil
import subprocess

from contextgap.export.c import CompiledPolicy

STRICT = ("-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Wfloat-equal", "-Werror")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or (
    ["cc"] if shutil.which("cc") else []
)


_LOADED = {}


def compiled(export, flags=("-O1", *STRICT)):
    """Compile and load an export, once for all that differ in their self-tests at most."""
    texts = (path.read_text(encoding="utf-8") for path in (export.header, export.source))
    key = (
        flags,
        re.sub(r"0x[0-9a-f]{8}UL| \* Computing in .*?\*/", "", "".join(texts), flags=re.S),
    )
    if key not in _LOADED:
        _LOADED[key] = CompiledPolicy(export.source.parent, COMPILERS[0], flags=flags)
    return _LOADED[key]


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


def macros(export):
    """Return what a program that includes the header knows: names and values of its macros."""
    done = run(COMPILERS[0], "-std=c99", "-dM", "-E", export.header)
    assert done.returncode == 0, done.stderr
    lines = (line.split(maxsplit=2) for line in done.stdout.splitlines())
    return {name: "".join(value) for _, name, *value in lines if not name.startswith("__")}
