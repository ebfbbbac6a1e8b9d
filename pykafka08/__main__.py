"""``python -m pykafka08`` is the command ``pykafka08``."""

from __future__ import annotations

import sys

from pykafka08.cli.main import main

sys.exit(main())
