"""Set up a virtual environment, for `make setup`, `make upgrade` and `make test-latest`.

    python .ci/setup.py install FOLDER [--latest]    install, compile the kernels, fetch the jars
    python .ci/setup.py upgrade FOLDER               pin the newest releases in constraints.txt

    .venv ─ installer ─ packages ─┬─ kernels ───────┐
                                  └─ tools ─ spark ─┴─ ready

`packages` is all that the kernels need; they are compiled while the rest arrives. Every stage
prints one line with its time, and its output only if it fails. Packages are installed by uv, in
parallel, or by pip where there is no uv. They come from where pip is configured to look: uv gets
pip's settings as variables, and nothing is written anywhere.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "constraints.txt"
WIDTH = 10
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
"""Settings of pip, and the variables that tell uv the same."""


class StageError(Exception):
    """A command that failed, with everything it printed."""


class Environment:
    """A virtual environment that is being set up."""

    def __init__(self, folder: Path, pins: Path | None) -> None:
        self.folder = folder
        self.pins = pins
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.uv: tuple[str, dict[str, str]] | None = None

    def make(self) -> str:
        if not self.python.exists():
            run(sys.executable, "-m", "venv", self.folder)
        return str(self.folder)

    def find_installer(self) -> str:
        """Install uv; without it packages are installed one after the other, by pip."""
        try:
            self.pip("install", *self.constraints, "uv")
        except StageError:
            return "pip: there is no uv to install"
        self.uv = str(self.python.with_name("uv")), uv_variables(self.pip("config", "list"))
        return run(self.uv[0], "--version").split("(")[0].strip()

    @property
    def constraints(self) -> list[str | Path]:
        return ["--constraint", self.pins] if self.pins else ["--upgrade"]

    def install_package(self) -> str:
        """Install the package as it stands in this folder, with its dependencies."""
        return self.install("Deltalog and what it needs", "--editable", ".")

    def install_tools(self) -> str:
        """Install the rest; the package itself is in use meanwhile, and is not touched."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = project["optional-dependencies"]
        wanted = [line for lines in extras.values() for line in lines]
        return self.install("Spark, the service and the development tools", *wanted)

    def install(self, title: str, *wanted: str) -> str:
        if self.uv is not None:
            program, variables = self.uv
            build = ["--build-constraints", self.pins] if self.pins else []
            command = [
                program,
                "pip",
                "install",
                "--python",
                self.python,
                *self.constraints,
                *build,
            ]
            try:
                run(*command, *wanted, variables=variables)
                return title
            except StageError as error:
                self.uv = None
                print(f"uv failed, going on with pip: {last_line(str(error))}", flush=True)
        # what builds need is pinned by a variable only, which newer releases of pip call otherwise
        names = ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
        pinned = dict.fromkeys(names, str(self.pins)) if self.pins else {}
        self.pip("install", *self.constraints, *wanted, variables=pinned)
        return f"{title}, by pip"

    def compile_kernels(self) -> str:
        run(self.python, "-m", "deltalog.engines.embedded.compile")
        return "compiled for this machine"

    def prepare_spark(self) -> str:
        """Find or install Java, and fetch the jars; without them everything but Spark works."""
        try:
            run(self.python, "-m", "deltalog.engines.spark.java")
            run(self.python, "-m", "deltalog.engines.spark.jars")
        except StageError as error:
            return last_line(str(error))
        return "Java, and the jars of Delta Lake"

    def pip(self, *arguments: str | Path, variables: dict[str, str] | None = None) -> str:
        command = (self.python, "-m", "pip", "--disable-pip-version-check", *arguments)
        return run(*command, variables=variables or {})


def run(*command: str | Path, variables: dict[str, str] | None = None) -> str:
    """Run a command in the folder of the project; returns what it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        raise StageError(done.stdout or f"{command[0]} ended with {done.returncode}")
    return done.stdout


def last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2].strip()


def uv_variables(listed: str) -> dict[str, str]:
    """Variables that make uv look where pip looks, from what `pip config list` prints.

    >>> uv_variables("global.cert='/etc/ca.pem'\\n:env:.find-links='a b'\\n")
    {'UV_FIND_LINKS': 'a,b', 'SSL_CERT_FILE': '/etc/ca.pem'}

    Variables of uv that the user has set are left alone. pip takes the best release that any index
    has, so uv is set to do the same.
    """
    settings: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        found = re.match(r"(:env:|[\w-]+)\.([\w-]+)=(.*)", line)
        if found and found[1] in settings:
            settings[found[1]][found[2]] = str(ast.literal_eval(found[3]))
    chosen = {**settings["global"], **settings["install"], **settings[":env:"]}
    variables = {}
    for name, variable in UV_NAMES.items():
        words = chosen.get(name, "").split()
        if words and variable not in os.environ:
            variables[variable] = ("," if name == "find-links" else " ").join(words)
    if "UV_INDEX" in variables and "UV_INDEX_STRATEGY" not in os.environ:
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return variables


def stage(name: str, work: Callable[[], str]) -> None:
    """Do something, and print one line about it."""
    started = time.monotonic()
    try:
        summary = work()
    except StageError as error:
        raise SystemExit(f"{error}\n{name} failed, see above") from None
    print(f"{name:{WIDTH}} {time.monotonic() - started:4.0f} s  {summary}", flush=True)


def install(environment: Environment) -> None:
    started = time.monotonic()
    stage(".venv", environment.make)
    stage("installer", environment.find_installer)
    stage("packages", environment.install_package)
    with ThreadPoolExecutor() as pool:
        kernels = pool.submit(stage, "kernels", environment.compile_kernels)
        stage("tools", environment.install_tools)
        stage("spark", environment.prepare_spark)
        kernels.result()
    print(f"{'ready':{WIDTH}} {time.monotonic() - started:4.0f} s", flush=True)
    if environment.pins is None:
        show_differences(environment)


def show_differences(environment: Environment) -> None:
    """Tell which releases are installed instead of the pinned ones."""
    pinned = dict(line.split("==") for line in PINS.read_text(encoding="utf-8").splitlines())
    for line in environment.pip("freeze").splitlines():
        name, _, found = line.partition("==")
        wanted = pinned.get(re.sub(r"[-_.]+", "-", name).lower(), found)
        if wanted != found:
            print(f"{name} {found} instead of {wanted}", flush=True)


def upgrade(environment: Environment) -> None:
    """Pin the newest releases that the package allows, for every platform."""
    if environment.uv is None:
        environment.find_installer()
    if environment.uv is None:
        raise SystemExit("`make upgrade` needs uv")
    program, variables = environment.uv
    asked = ("pip", "compile", "--universal", "--python-version", "3.11", "--all-extras", "--quiet")
    plain = ("--fork-strategy", "fewest", "--no-annotate", "--no-header", "--no-emit-index-url")
    more = "setuptools\nuv\n"  # for builds, and this script
    done = subprocess.run(
        [program, *asked, *plain, "--upgrade", "pyproject.toml", "-"],
        cwd=ROOT, env={**os.environ, **variables}, input=more, text=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit("the newest releases do not fit together, see above")
    pins = sorted({line.partition(";")[0].strip() for line in done.stdout.splitlines()})
    PINS.write_text("\n".join(pins) + "\n", encoding="utf-8")
    print(f"{len(pins)} pins in {PINS.name}; `make test` says whether they work")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("install", "upgrade"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latest", action="store_true", help="the newest releases, not the pins")
    given = parser.parse_args()
    environment = Environment(given.folder.absolute(), None if given.latest else PINS)
    if given.action == "install":
        install(environment)
    else:
        upgrade(environment)


if __name__ == "__main__":
    main()
