#!/bin/sh
# Fetches what a cross build needs of the target: pocketsphinx's static libraries and headers, from Debian's packages for
# the architecture. The machine's own package database is left alone: this apt has its own lists, sources and cache.
#
#     deploy/sysroot.sh arm64|armhf DEST
#
# Afterwards DEST has usr/include, in which all headers are found with one -I, and usr/lib/TRIPLET. Offline when done.
set -eu
arch=${1:?usage: sysroot.sh arm64|armhf DEST} dest=${2:?usage: sysroot.sh arm64|armhf DEST}
case $arch in
arm64) triplet=aarch64-linux-gnu ;;
armhf) triplet=arm-linux-gnueabihf ;;
*) echo "sysroot.sh: unknown architecture $arch: there are arm64 and armhf" >&2; exit 2 ;;
esac
packages="libpocketsphinx-dev libsphinxbase-dev"
[ -e "$dest/.done" ] && exit 0

rm -rf "$dest"
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
apt=$dest/.apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources.d"

# The machine's sources, for the other architecture. Both formats of apt: one line, and paragraphs.
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
	[ -e "$f" ] || continue
	sed -n -e 's/^deb  *\[\([^]]*\)\]/deb [arch='"$arch"' \1]/p;t' -e 's/^deb  */deb [arch='"$arch"'] /p' "$f"
done >"$apt/sources.list"
for f in /etc/apt/sources.list.d/*.sources; do
	[ -e "$f" ] || continue
	sed -e '/^Architectures:/d' -e "s/^Types:.*/Types: deb\nArchitectures: $arch/" "$f" >"$apt/sources.d/$(basename "$f")"
done

set -- -qq -o Dir::State::lists="$apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" \
	-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/sources.d" \
	-o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root
apt-get "$@" update || true # other sources than Debian's may lack the architecture; the download tells
(cd "$apt" && apt-get "$@" download $packages)
for deb in "$apt"/*.deb; do
	dpkg-deb -x "$deb" "$dest"
done

# One include directory is enough then.
cp -r "$dest/usr/include/$triplet/sphinxbase" "$dest"/usr/include/pocketsphinx/*.h "$dest/usr/include/"
cp "$dest/usr/include/sphinxbase/sphinx_config.h" "$dest/usr/include/"
rm -rf "$apt" "$dest/usr/include/$triplet" "$dest/usr/include/pocketsphinx" "$dest/usr/share"
touch "$dest/.done"
