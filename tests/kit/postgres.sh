#!/bin/sh
# Runs a PostgreSQL server for the Rust tests: postgres.sh FOLDER PORT
#
# Prints "ready" once the server answers. Each test process holds a shared lock on FOLDER/users. The
# server ends a few seconds after the last of them, and new ones wait until it has ended.
set -eu
folder=$1 port=$2

if ! bin=$(pg_config --bindir) || ! command -v flock >/dev/null; then
  echo "These tests need PostgreSQL 15 or newer and flock:" \
    "sudo apt-get install postgresql-15 util-linux, or brew install postgresql@15 flock" >&2
  exit 1
fi

home=$(mktemp -d "${TMPDIR:-/tmp}/openkv-postgres-XXXXXX")
trap 'rm -rf "$home"' EXIT
trap 'exit 1' HUP INT TERM
# PostgreSQL refuses to run as root. If this script is killed, the server ends too.
as=
if [ "$(uname)" = Linux ]; then as="setpriv --pdeathsig QUIT"; fi
if [ "$(id -u)" = 0 ]; then
  chown postgres "$home"
  as="$as --reuid=postgres --regid=postgres --init-groups"
fi
cd "$home"

$as "$bin/initdb" -D data -U postgres -A trust -E UTF8 --locale=C --data-checksums --no-sync >&2
$as "$bin/postgres" -D data -c port="$port" -c listen_addresses=127.0.0.1 \
  -c unix_socket_directories= -c fsync=off -c log_line_prefix='%d ' >&2 &
server=$!
until "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
  kill -0 $server
  sleep 0.05
done
echo "$port" >"$folder/port"
echo ready

exec 9>>"$folder/users"
# Between two test processes of one run there may be none for a moment.
until
  flock 9
  flock --unlock 9
  sleep 3
  flock --nonblock 9
do :; done
rm "$folder/port"
kill -QUIT $server
wait $server || true
