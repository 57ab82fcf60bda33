"""One-step workflows of DBOS on a PostgreSQL: prints how many a second. Run by the peers' own Python."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS


@DBOS.step()
def step(text: str) -> str:
    return text


@DBOS.workflow()
def workflow(text: str) -> str:
    return step(text)


def main(url: str, count: int, together: int) -> None:
    DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})
    DBOS.launch()
    with ThreadPoolExecutor(together) as pool:
        list(pool.map(workflow, ["warm"] * together))
        began = time.monotonic()
        list(pool.map(workflow, ["x"] * count))
        took = time.monotonic() - began
    DBOS.destroy()
    print(count / took)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
