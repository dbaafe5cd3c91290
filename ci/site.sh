#!/usr/bin/env bash
# Makes a site of the installed documents and man pages, searchable and without a server:
# ci/site.sh STAGE
# It is in the build folder's site.
set -eu
cd "$(dirname "$0")/.."
stage=$(realpath "$1")
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
mdbook=$(ci/tool.sh mdbook 0.5.4 --no-default-features --features search)

book=$build/site-source
rm -rf "$book" "$build/site"
mkdir -p "$book/src/man"
cp -r "$stage"/share/doc/openlapi/. "$book/src"

# Man pages as pages of the site, with links between them. Those of other names for a call
# are links to it.
declare -A pages
for page in "$stage"/share/man/man[137]/*.[137]; do
    [ -h "$page" ] || pages[$(basename "$page")]=$page
done
links=$book/links.sed
for page in "${!pages[@]}"; do
    name=${page%.*} section=${page##*.}
    # mandoc escapes the underscore, but not where it has literal text, which is indented.
    escaped=${name//_/\\\\_}
    echo "/^>? ?    /!s#(^|[^A-Za-z_\\[])${escaped}\(${section}\)#\1[${escaped}(${section})](${page}.md)#g"
done >"$links"
for page in "${!pages[@]}"; do
    mandoc -T markdown "${pages[$page]}" | sed -E -e '1d' -e '$d' -e 's/^# /## /' -f "$links" >"$book/man.md"
    { echo "# ${page%.*}(${page##*.})"; cat "$book/man.md"; } >"$book/src/man/$page.md"
done

# mdbook would name the pages of README.md index.html, and leave the links to them as they are.
mv "$book/src/README.md" "$book/src/index.md"
mv "$book/src/docs/README.md" "$book/src/docs/index.md"
find "$book/src" -name '*.md' -exec sed -E -i 's#\]\(((\.\./)*(docs/)?)README\.md#](\1index.md#g' {} +

# Links of the documents to man pages.
find "$book/src" -name '*.md' -not -path '*/man/*' | while read -r file; do
    folder=$(dirname "${file#"$book/src/"}")
    up=
    [ "$folder" = . ] || up=$(sed -E 's#[^/]+#..#g' <<<"$folder")/
    sed -E -i "s#\]\((\.\./)*man/man[0-9]/([^)]*)\)#](${up}man/\2.md)#g" "$file"
done

find "$book/src" -name '*.md' | while read -r page; do
    awk -f ci/site-words.awk "$page" >"$book/page.md"
    mv "$book/page.md" "$page"
done

title() { sed -n 's/^# *//p' "$1" | head -n 1 | tr -d '`'; }
{
    echo "[OpenLAPI](index.md)"
    echo "# Documents"
    echo "- [Which page?](docs/index.md)"
    # In the order of the index.
    grep -oE '\]\([a-z-]+\.md' "$book/src/docs/index.md" | sed 's/^](//' | awk '!seen[$0]++' | while read -r page; do
        echo "- [$(title "$book/src/docs/$page")](docs/$page)"
    done
    echo "- [Changes](CHANGELOG.md)"
    echo "- [Security](SECURITY.md)"
    echo "# Man pages"
    printf '%s\n' "${!pages[@]}" | sort -t. -k2,2n -k1,1f | while read -r page; do
        echo "- [${page%.*}(${page##*.})](man/$page.md)"
    done
    echo "# Development"
    echo "- [Architecture](ARCHITECTURE.md)"
    echo "- [Contributing](CONTRIBUTING.md)"
    for page in "$book"/src/docs/design/*.md; do
        echo "- [$(title "$page")](docs/design/$(basename "$page"))"
    done
} >"$book/src/SUMMARY.md"
cat >"$book/book.toml" <<'TOML'
[book]
title = "OpenLAPI"
language = "en"
src = "src"

[output.html]
no-section-label = true

[output.html.search]
limit-results = 30

[output.html.print]
enable = false
TOML
"$mdbook" build --dest-dir "$build/site" "$book"
echo "== site: $build/site/index.html"
