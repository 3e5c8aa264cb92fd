"""What flow.py prints, as values of the table of results."""

import json


def read(path):
    return json.loads(path.read_text())
