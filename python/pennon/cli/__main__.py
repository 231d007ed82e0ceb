"""``python -m pennon.cli``."""

import sys

from pennon.cli.command_line import main

sys.exit(main())
