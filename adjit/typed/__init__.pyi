# Written by tests/tools/stubs.py; see there. Do not edit.
