#!/usr/bin/env bash
# Looks at the site in a browser: ci/site-test.sh FOLDER
# Its pages are opened as files, as a user without a server would; what the browser has made of each
# page is examined.
set -eu
site=$(realpath "$1")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "ci/site-test.sh: no chromium; ci/deps.sh site installs it" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# look PAGE[?QUERY]: what the browser shows, after its scripts have run
look() {
    timeout -k 5 90 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --allow-file-access-from-files \
        --user-data-dir="$work/profile" --virtual-time-budget=15000 --dump-dom "file://$site/$1" 2>"$work/log"
}

expect() { # expect PAGE TEXT...
    local page=$1 text
    shift
    if ! look "$page" >"$work/dom"; then
        echo "site-test: $page: the browser failed" >&2
        tail -5 "$work/log" >&2
        failed=1
        return
    fi
    for text in "$@"; do
        if ! grep -qF -- "$text" "$work/dom"; then
            echo "site-test: $page does not show: $text" >&2
            failed=1
        fi
    done
}

expect index.html "<title>OpenLAPI" 'href="docs/tutorial.html"' "Man pages" "searchbar"
expect docs/tutorial.html "LAPI_Put(" "Tutorial" 'class="hljs'
expect man/LAPI_Xfer.3.html "LAPI_Xfer(3)" 'href="LAPI_Util.3.html"' "typedef union lapi_xfer_t"
expect man/poe.1.html "task_affinity" 'href="lapi.7.html"'
# The index for searching is read by the page itself.
expect "index.html?search=gather%20scatter" '<li><a href="man/LAPI_Util.3.html?highlight' "search results for 'gather scatter'"
# Names are found by their parts.
expect "index.html?search=waitcntr" '<li><a href="man/LAPI_Waitcntr.3.html?highlight'
expect "index.html?search=stall_seconds" '<li><a href="man/lapi.7.html?highlight'

# Every link of every page leads to a page of the site, or elsewhere.
while read -r page; do
    folder=$(dirname "$page")
    grep -oE 'href="[^"#?]+' "$page" | sed 's/^href="//' | grep -vE '^([a-z]+:|//)' | sort -u | while read -r link; do
        [ -e "$folder/$link" ] || echo "${page#"$site"/}: $link"
    done
done < <(find "$site" -name '*.html') >"$work/broken"
if [ -s "$work/broken" ]; then
    echo "site-test: links that lead nowhere:" >&2
    sort -u "$work/broken" | head -40 >&2
    failed=1
fi
[ "$failed" = 0 ] && echo "== site-test: $(find "$site" -name '*.html' | wc -l) pages"
exit "$failed"
