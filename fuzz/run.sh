#!/usr/bin/env bash
# Runs every fuzz target for a number of seconds (60), two at a time, on the stable toolchain:
#
#   fuzz/run.sh [seconds]
#
# It is `npm run fuzz`, which installs cargo-fuzz if the machine has none, for those who look here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec node scripts/fuzz.mjs --seconds "${1:-60}"
