#!/bin/sh
# Makes the archive from which meta-bellbird builds: the commit, with the sources of all modules that it is made of, as
# go.sum has them. The same commit gives the same bytes. Beside it goes what BitBake has to know of the commit.
#
# usage: source.sh OUTDIR
set -eu
out=${1:?usage: source.sh OUTDIR}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
export LC_ALL=C GOFLAGS= GOTOOLCHAIN=local

[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "source: the archive has the commit, and not what was changed since" >&2
version=$(deploy/package/version.sh)
epoch=$(git log -1 --format=%ct)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git archive --format=tar --prefix=bellbird/ HEAD | tar -x -C "$tmp"
(cd "$tmp/bellbird" && go mod vendor) || { echo "source: the modules could not be had: check the network" >&2; exit 1; }
tar -C "$tmp" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$epoch" -c bellbird | gzip -9n >"$tmp/bellbird-source.tar.gz"

cat >"$tmp/bellbird-version.inc" <<EOF
# Made by "make vendor-tarball", together with bellbird-source.tar.gz.
BELLBIRD_VERSION = "${version%+dirty}"
BELLBIRD_DESCRIBE = "$(git describe --tags --always)"
BELLBIRD_BUILT = "$(git log -1 --format=%cI)"
BELLBIRD_EPOCH = "$epoch"
EOF
mv "$tmp/bellbird-source.tar.gz" "$tmp/bellbird-version.inc" "$out/"
echo "$out/bellbird-source.tar.gz"
