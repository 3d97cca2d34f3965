#!/bin/sh
# Each spec has a line in OWNERS: its name, then who answers for it.
if ! grep -q "^$CRUCIBLE_SPEC_ID " OWNERS; then
    echo "nobody answers for $CRUCIBLE_SPEC_ID: add a line to OWNERS"
    exit 1
fi
