#!/bin/sh
# Puts Home Assistant into a Debian of its own, in build/ha/_root: the machine's Python may be too old for it. Needs root
# and debootstrap. What is there already is left alone, unless requirements.txt has changed.
#
# Its name begins with _ so that Go doesn't look for packages in it.
set -eu
cd "$(dirname "$0")/../.."
fail() { echo "test-ha: $*" >&2; exit 1; }

wanted=deploy/ha/requirements.txt
dir=build/ha
root=$dir/_root
cmp -s "$wanted" "$root/opt/requirements.txt" && exit 0
[ "$(id -u)" = 0 ] || fail "it makes a Debian in build/ha, which needs root: run sudo deploy/ha/setup.sh"
mkdir -p "$dir"
log=$dir/setup.log
command -v debootstrap >/dev/null || { apt-get update -q && apt-get install -q -y --no-install-recommends debootstrap; } >"$log" 2>&1 || fail "apt-get can't install debootstrap: see $log"
release=$(sed -n 's/^homeassistant==//p' "$wanted")
trap 'umount "$dir/_new/proc" 2>/dev/null || true' EXIT
umount "$dir/_new/proc" 2>/dev/null || true
rm -rf --one-file-system "$dir/_new"

echo "test-ha: making a Debian for Home Assistant $release, which takes some minutes (see $log)" >&2
debootstrap --variant=minbase --include=python3-venv,python3-dev,gcc,libc6-dev,ca-certificates trixie "$dir/_new" >"$log" 2>&1 || fail "debootstrap: see $log"
umount "$dir/_new/proc" 2>/dev/null || true

# What this machine trusts is trusted there, too.
cp -L --remove-destination /etc/ssl/certs/ca-certificates.crt "$dir/_new/etc/ssl/certs/ca-certificates.crt"
cp -L --remove-destination /etc/resolv.conf "$dir/_new/etc/resolv.conf"
in_root() { chroot "$dir/_new" env -u PIP_FIND_LINKS PATH=/opt/ha/bin:/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 "$@" >>"$log" 2>&1 || fail "$*: see $log"; }
in_root python3 -m venv /opt/ha
# The constraints are in the package itself.
in_root pip download -q --no-deps -d /opt/wheel "homeassistant==$release"
in_root python3 -m zipfile -e "/opt/wheel/homeassistant-$release-py3-none-any.whl" /opt/wheel/in
cp "$wanted" "$dir/_new/opt/wanted.txt"
in_root pip install -q --no-cache-dir --prefer-binary -c /opt/wheel/in/homeassistant/package_constraints.txt -r /opt/wanted.txt
rm -rf "$dir/_new/opt/wheel" "$dir/_new/var/cache/apt/archives"
mv "$dir/_new/opt/wanted.txt" "$dir/_new/opt/requirements.txt"
rm -rf --one-file-system "$root"
mv "$dir/_new" "$root"
