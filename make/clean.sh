#!/bin/sh
# Removes what make made in this checkout: .venv, .oz0 with the services' data (root's is below /var/lib/oz0), caches.
set -u
OF_ROOT=/var/lib/oz0

stop() {
    printf '%s\n' "$@" >&2
    exit 1
}

home=$(readlink -f .oz0)
if [ -e .oz0/up.lock ]; then
    command -v flock >/dev/null || stop "make clean needs flock (util-linux) to see whether a studio runs here"
    exec 8<.oz0/up.lock # held to the end, so that nothing starts here meanwhile
    flock -n 8 ||
        stop "a studio runs here ($(cat .oz0/up.lock)): stop it with Ctrl-C in its terminal, then say make clean again"
    if [ -s .oz0/up.lock ]; then
        echo "the last studio here was killed: waiting for its services to end"
        sleep 6
    fi
fi
for made in .venv .oz0; do
    [ ! -e "$made" ] || [ -O "$made" ] || [ "$(id -u)" = 0 ] ||
        stop "$(pwd)/$made belongs to another account ($(stat -c %U "$made")): say make clean as that account"
done

digest=$(printf %s "$home" | sha256sum | cut -c1-16)
if [ "$(id -u)" = 0 ]; then
    rm -rf "${OF_ROOT:?}/$digest"
    # the programs' copies are every studio's of this machine: they go with the last one
    set -- "$OF_ROOT"/*/pg
    [ -e "$1" ] || rm -rf "$OF_ROOT"
else
    rm -rf "${TMPDIR:-/tmp}/oz0-$(id -u)/$digest"
fi
rm -rf .venv .peers .oz0 .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist staticfiles screenshots ./*.egg-info
find . -name __pycache__ -type d -prune -exec rm -rf {} +
echo "removed .venv, .peers, .oz0 and caches from $(pwd)"
