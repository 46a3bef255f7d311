#!/bin/sh
# Makes a Debian package of a binary. The same commit, binary and models give the same bytes: all times are that of the
# commit, all owners root, and dpkg-deb sorts.
#
# usage: build.sh ARCH BINARY MODELS SBOM LICENCES OUTDIR
set -eu
cd "$(dirname "$0")/../.."
arch=$1 binary=$2 models=$3 sbom=$4 licences=$5 out=$6
here=deploy/package
for f in "$binary" "$models/okay_nabu.json" "$sbom" "$licences"; do
	[ -f "$f" ] || { echo "package: $f is missing: run \"make deb\"" >&2; exit 1; }
done
umask 022
export LC_ALL=C SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
version=${DEB_VERSION:-$($here/version.sh)}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
put() { install -D -m "$1" "$2" "$root/$3"; }

put 755 "$binary" usr/bin/bellbird
for f in clock-floor check-data; do put 755 $here/$f usr/lib/bellbird/$f; done
for f in deploy/systemd/*.service deploy/systemd/*.timer; do put 644 "$f" "usr/lib/systemd/system/$(basename "$f")"; done
# What restarts the machine for an update, and ends a trial. They are switched on where there is RAUC.
for f in bellbird-restart.path bellbird-restart.service bellbird-trial.timer bellbird-trial.service; do
	put 644 deploy/rauc/$f usr/lib/systemd/system/$f
done
put 755 deploy/rauc/trial-deadline usr/lib/bellbird/trial-deadline
# Where the last word is said: RAUC's own policy is in /usr.
put 644 deploy/rauc/bellbird-rauc.conf etc/dbus-1/system.d/bellbird-rauc.conf
put 644 deploy/systemd/bellbird.sysusers usr/lib/sysusers.d/bellbird.conf
put 644 deploy/systemd/bellbird.tmpfiles usr/lib/tmpfiles.d/bellbird.conf
put 644 deploy/systemd/60-bellbird.rules usr/lib/udev/rules.d/60-bellbird.rules
put 644 $here/config.toml etc/bellbird/config.toml
for f in "$models"/*.json "$models"/*.tflite; do put 644 "$f" "usr/share/bellbird/models/$(basename "$f")"; done
mkdir -p "$root/usr/share/bellbird/plugins"
doc=usr/share/doc/bellbird
for f in docs/*.md; do put 644 "$f" $doc/"$(basename "$f")"; done
put 644 $here/copyright $doc/copyright
put 644 "$licences" $doc/licences.txt
put 644 "$sbom" $doc/sbom.cdx.json
{
	echo "bellbird ($version) stable; urgency=medium"
	echo
	echo "  * What changed is told by the history of the repository."
	echo
	echo " -- The Bellbird authors <bellbird@localhost.localdomain>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$root/$doc/changelog.gz"

mkdir "$root/DEBIAN"
size=$(find "$root" -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$size/" $here/control.in >"$root/DEBIAN/control"
printf '%s\n' /etc/bellbird/config.toml /etc/dbus-1/system.d/bellbird-rauc.conf >"$root/DEBIAN/conffiles"
for f in postinst prerm postrm; do install -m 755 $here/$f "$root/DEBIAN/$f"; done
(cd "$root" && find usr etc -type f ! -path 'etc/*' | sort | xargs md5sum) >"$root/DEBIAN/md5sums"

find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out"
dpkg-deb --root-owner-group -Zxz -z${DEB_LEVEL:-6} -b "$root" "$out/bellbird_${version}_$arch.deb" >/dev/null
echo "$out/bellbird_${version}_$arch.deb"
