#!/bin/sh
# Builds the commit of this checkout once more, in another directory and with an empty cache, and compares the package
# with DEB.
#
# usage: reproduce.sh DEB
set -eu
deb=$(realpath "$1")
cd "$(dirname "$0")/../.."
[ -z "$(git status --porcelain --untracked-files=no)" ] || { echo "reproduce: commit your changes first: what is built is the commit" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git clone -q --no-local . "$dir/elsewhere"
mkdir "$dir/elsewhere/build"
cp -r models "$dir/elsewhere/"
# Under another user's settings, too.
(cd "$dir/elsewhere" && umask 077 && TZ=Asia/Tokyo LANG=C.UTF-8 GOCACHE="$dir/cache" make -s deb-amd64)
again=$(echo "$dir"/elsewhere/build/deb/*_amd64.deb)
cmp "$deb" "$again" || { echo "reproduce: the packages differ: see \"diffoscope $deb\" and another build" >&2; exit 1; }
echo "reproduce: the same $(stat -c %s "$deb") bytes twice, sha256 $(sha256sum "$deb" | cut -d ' ' -f 1)"
