#!/bin/sh
# Sees that the tests have a browser: one on the path, else Playwright's own, else Debian's package when this is root.
# $1 is the Python of the tests. Which one they take is said by tests/browser/chromium.py, here and there.
set -u
find_browser() { "$1" -m tests.browser.chromium; }

find_browser "$1" 2>/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "no Chromium here: installing Debian's"
    if { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1; then
        find_browser "$1" && exit 0
    fi
    echo "apt-get could not install chromium" >&2
fi
find_browser "$1"
