#!/usr/bin/env bash
# Copies the primary when the standby starts first, then starts it. The arguments are the command.
set -euo pipefail

data=/var/lib/postgresql/data
if [ ! -s "$data/PG_VERSION" ]; then
  pg_basebackup --host primary --username openkv --pgdata "$data" \
    --write-recovery-conf --wal-method stream --checkpoint fast
  chmod 700 "$data"
fi
exec "$@" -D "$data"
