#!/bin/sh
# Makes .venv from requirements.lock, or leaves it alone when it is just that already (then nothing is fetched or written).
# Run in the checkout's folder. PYTHON=/path/to/python says which Python; else the first that fits is taken.
set -u
unset CDPATH PYTHONPATH PYTHONHOME VIRTUAL_ENV
VENV=.venv
READY=$VENV/.ready
PACKAGES=$(grep -c '^[a-z0-9].*==' requirements.lock)
# What a machine's own pip settings may say must not change what the lock installs.
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_REQUIRE_VIRTUALENV=0 PIP_USER=0 PIP_CONSTRAINT=/dev/null PIP_NO_INPUT=1 PIP_NO_COLOR=1

stop() {
    printf '%s\n' "$@" >&2
    exit 1
}

# The lock and the checkout's own metadata, and the folder: a checkout that was moved is installed again.
wanted() {
    { cat requirements.lock pyproject.toml; pwd -P; } | cksum
}

ready() {
    [ -f "$READY" ] && [ "$(cat "$READY")" = "$(wanted)" ] && "$VENV/bin/python" -c '' 2>/dev/null
}

version_of() {
    "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null
}

# Sets `found`, or leaves in `unfit` what was there and why it does not fit.
find_python() {
    found= unfit=
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3.13 python3.14 python3.12 \
            "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/3.13.*/bin/python3 \
            "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/3.14.*/bin/python3 \
            "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/3.12.*/bin/python3 \
            python3 python
    fi
    for candidate in "$@"; do
        path=$(command -v "$candidate") || continue
        version=$(version_of "$path") || {
            unfit="$unfit
  $path cannot be run"
            continue
        }
        case $version in
        3.12.* | 3.13.* | 3.14.*)
            if "$path" -c 'import ensurepip, venv' 2>/dev/null; then
                found=$path
                return
            fi
            minor=${version%.*}
            unfit="$unfit
  $path is $version, but without the modules venv and ensurepip: on Debian and Ubuntu, apt-get install python$minor-venv"
            ;;
        *) unfit="$unfit
  $path is $version" ;;
        esac
    done
}

need_python() {
    find_python
    [ -n "$found" ] && return
    if [ -n "${PYTHON:-}" ]; then
        stop "oz0 studio needs Python 3.12, 3.13 or 3.14 with its venv module, and PYTHON=$PYTHON is not one.${unfit:-
  It cannot be run.}" "fix: name another one, or leave PYTHON= out to have one found"
    fi
    stop "oz0 studio needs Python 3.12, 3.13 or 3.14 with its venv module, on the path or under pyenv.${unfit:+
Found:$unfit}" \
        "fix: install one (Debian 13, Ubuntu 24.04: apt-get install python3 python3-venv; elsewhere: pyenv install 3.13)," \
        "     or name one that is somewhere else: make run PYTHON=/path/to/python"
}

# Says how far the installation is: in place on a terminal, a line every 15 seconds elsewhere.
progress() {
    fetched=$(grep -c -e '^Collecting ' -e '^Requirement already satisfied' "$log")
    if grep -q '^Installing collected packages' "$log"; then
        set -- "$VENV"/lib/python*/site-packages/*.dist-info
        doing="unpacking them, $# there"
    else
        doing="fetched $fetched of about $PACKAGES packages"
    fi
    if [ -t 1 ]; then
        printf '\rinstalling into .venv: %s, %d s \033[K' "$doing" "$seconds"
    elif [ "$seconds" -ge "$told_next" ]; then
        told_next=$((seconds + 15))
        printf 'installing into .venv: %s, %d s\n' "$doing" "$seconds"
    fi
}

# Runs a command in the background, showing progress; in the foreground Ctrl-C would leave the loop and not the command.
watched() {
    "$@" >>"$log" 2>&1 &
    running=$!
    trap 'kill "$running" 2>/dev/null; wait "$running" 2>/dev/null; rm -f "$log"; [ -t 1 ] && echo; exit 130' INT TERM HUP
    while kill -0 "$running" 2>/dev/null; do
        progress
        sleep 1
        seconds=$(($(date +%s) - began))
    done
    wait "$running"
    ended=$?
    trap - INT TERM HUP
    if [ -t 1 ]; then printf '\r\033[K'; fi
    [ "$ended" -eq 0 ] || explain "$*"
}

# Why a step failed: its last error, and what helps.
explain() {
    why=$(grep -i -e '^error' -e 'errno' -e 'denied' "$log" | tail -n 1)
    [ -n "$why" ] || why=$(grep -v '^ *$' "$log" | tail -n 1)
    fix="say make again: what was fetched already is kept"
    if grep -qi -e 'no space left' -e 'errno 28' -e 'quota exceeded' "$log"; then
        fix="the disk is full: free about 1 GB in $(pwd), in pip's cache and in ${TMPDIR:-/tmp}, and say make again"
    elif grep -qi -e 'permission denied' -e 'read-only file system' "$log"; then
        fix="this account may not write there: use a checkout of its own"
    elif grep -qi -e 'do not match the hashes' "$log"; then
        fix="what the package index gave is not what the lock names: ask whoever runs that index"
    elif grep -qi -e 'certificate' "$log"; then
        fix="the certificate of the package index is not trusted here, as behind a proxy that shows its own: give PIP_CERT=/path/to/its/authority.pem, and say make again"
    elif grep -qi -e 'connection' -e 'resolve' -e 'no matching distribution' -e 'network' -e 'timed out' "$log"; then
        fix="packages cannot be fetched: see that the network, or the index that pip's settings name, can be reached, and say make again"
    fi
    rm -f "$log"
    stop "cannot install into $(pwd)/.venv: $why" "fix: $fix"
}

ready && exit 0
(: >.oz0-write-test) 2>/dev/null ||
    stop "cannot write to $(pwd): this account may not write there, or the disk is full or read-only" \
        "fix: free some space, or use a checkout in a folder of your own"
rm -f .oz0-write-test
if command -v flock >/dev/null; then
    exec 9<requirements.lock
    flock -n 9 || { echo "another make installs into .venv: waiting for it"; flock 9; }
    ready && exit 0
fi

log=$(mktemp 2>/dev/null) || stop "cannot write to ${TMPDIR:-/tmp}: free some space there, or set TMPDIR to a folder that can be written"
began=$(date +%s)
seconds=0 told_next=0
if ! { "$VENV/bin/python" -c 'import pip, sys; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null &&
    [ "$(cat "$VENV/.folder" 2>/dev/null)" = "$(pwd -P)" ] &&
    { [ -z "${PYTHON:-}" ] || [ "$(version_of "$PYTHON")" = "$(version_of "$VENV/bin/python")" ]; }; }; then
    need_python
    echo "making .venv with $found ($(version_of "$found")) and installing requirements.lock; the first time takes a minute or two"
    watched "$found" -m venv --clear "$VENV"
    pwd -P >"$VENV/.folder"
else
    echo "bringing .venv to requirements.lock"
fi
rm -f "$READY"
watched "$VENV/bin/python" -m pip install --progress-bar off --require-hashes -r requirements.lock
watched "$VENV/bin/python" -m pip install --progress-bar off --no-deps --no-build-isolation -e .
rm -f "$log"
wanted >"$READY" 2>/dev/null || stop "cannot write $READY: free some space and say make again"
echo "installed in $seconds s"
