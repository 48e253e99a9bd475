"""The README's example, run as it stands."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
DEFAULT_URL = "http://localhost:6333"


def test_the_client_example_of_the_readme_works(new_server, capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1, "the README has one Python example"
    assert blocks[0].count(DEFAULT_URL) == 1
    server = new_server().start()
    # Only the address differs: the example's port may be in use on this machine.
    exec(compile(blocks[0].replace(DEFAULT_URL, server.url), str(README), "exec"), {})
    shown = capsys.readouterr().out
    expected = re.findall(r"```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert expected and shown == expected[-1]
