#!/usr/bin/env bash
# Runs once, when the primary is created: lets the standby copy it, and makes commits wait for it. The
# setting counts from the next start on, so that the creation itself does not wait.
set -euo pipefail

echo "host replication openkv all scram-sha-256" >> "$PGDATA/pg_hba.conf"
psql --username openkv --command "ALTER SYSTEM SET synchronous_standby_names = 'standby'"
