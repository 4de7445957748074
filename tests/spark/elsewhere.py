"""Every program case on a real cluster, or through Spark Connect: `make test-cluster`.

    python tests/spark/elsewhere.py cluster      a master and two workers on loopback
    python tests/spark/elsewhere.py connect      a Spark Connect server on loopback

Both are started from the jars of pyspark and ended afterwards. The cases run in a pytest of their
own, which is told where to (`DELTALOG_SPARK_MASTER`, see `conftest.py`). All arguments after the
first go to pytest.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark

from deltalog.engines.spark.jars import delta_settings
from deltalog.engines.spark.java import java_home
from deltalog.engines.spark.session import DELTA

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 1_800
HOST = "127.0.0.1"
SPARK = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        return int(taken.getsockname()[1])


def environment() -> dict[str, str]:
    home = java_home()
    assert home is not None, "Java is missing: python -m deltalog.engines.spark.java"
    paths = [str(ROOT / "src"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


class Servers:
    """Processes that were started here, and are ended here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str) -> None:
        command = [str(SPARK / "bin" / "spark-class"), *arguments]
        with (self.folder / f"{name}.log").open("wb") as log:
            made = subprocess.Popen(
                command, cwd=self.folder, env=environment(), stdout=log, stderr=subprocess.STDOUT
            )
        self.running.append(made)

    def wait_for(self, port: int) -> None:
        until = time.monotonic() + SECONDS_MAX
        while time.monotonic() < until:
            with socket.socket() as tried:
                if tried.connect_ex((HOST, port)) == 0:
                    return
            if any(each.poll() is not None for each in self.running):
                break
            time.sleep(0.2)
        logs = "\n".join(path.read_text(errors="replace") for path in self.folder.glob("*.log"))
        raise SystemExit(f"nothing listens on port {port}:\n{logs[-4000:]}")

    def end(self) -> None:
        for each in reversed(self.running):
            each.terminate()
        for each in self.running:
            each.wait(timeout=SECONDS_MAX)


def cluster(servers: Servers) -> str:
    port = free_port()
    deploy = "org.apache.spark.deploy"
    place = ("--host", HOST, "--webui-port", "0")
    servers.start("master", f"{deploy}.master.Master", *place, "--port", str(port))
    servers.wait_for(port)
    master = f"spark://{HOST}:{port}"
    for number in (1, 2):
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(servers.folder))
        servers.start(f"worker{number}", f"{deploy}.worker.Worker", *place, *size, master)
    return master


def connect(servers: Servers) -> str:
    port = free_port()
    settings = {
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": "deltalog.engines.spark.daemon",
        **DELTA,
        **delta_settings({}),
    }
    told = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = "org.apache.spark.deploy.SparkSubmit"
    servers.start("connect", submit, "--class", server, *told, "spark-internal")
    servers.wait_for(port)
    return f"sc://{HOST}:{port}"


PLACES = {"cluster": cluster, "connect": connect}


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in PLACES:
        print(f"where? {' or '.join(PLACES)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(Path(folder))
        try:
            master = PLACES[arguments[0]](servers)
            told = {**environment(), "DELTALOG_SPARK_MASTER": master}
            del told["SPARK_HOME"]
            cases = list(arguments[1:]) or ["tests/spark/test_spark_programs.py"]
            command = [sys.executable, "-m", "pytest", *cases]
            return subprocess.run(command, cwd=ROOT, env=told).returncode
        finally:
            servers.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
