#!/bin/sh
# Installs, uses, upgrades, removes and purges a package in a small Debian of its own, in which systemd doesn't run: as
# when an image is made. Needs root, debootstrap, and Debian's packages. The base is kept in build/ for the next time.
#
# usage: test-install.sh DEB
set -eu
deb=$(realpath "$1")
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "test-install: SKIPPED, it needs root and debootstrap" >&2; exit 0; }

fail() { echo "test-install: $*" >&2; exit 1; }
step() { echo "test-install: $*"; }

base=build/debian-base.tar
if [ ! -f "$base" ]; then
	step "making a small Debian"
	dir=$(mktemp -d)
	debootstrap --variant=minbase --include=systemd,systemd-sysv,udev bookworm "$dir" >"$dir.log" 2>&1 || { tail "$dir.log" >&2; fail "debootstrap"; }
	chroot "$dir" apt-get install -q -y --no-install-recommends espeak-ng pocketsphinx-en-us libasound2 ca-certificates tzdata >"$dir.log" 2>&1 || { tail "$dir.log" >&2; fail "apt-get"; }
	tar -C "$dir" -cf "$base.new" .
	mv "$base.new" "$base"
	rm -rf "$dir" "$dir.log"
fi

root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
tar -C "$root" -xf "$base"
chmod 755 "$root" # mktemp made the one that the base came from
mount -t proc proc "$root/proc"
in_root() { chroot "$root" env LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }
quiet() { in_root "$@" >"$root/tmp/log" 2>&1 || { cat "$root/tmp/log" >&2; fail "$*"; }; }
files() { (cd "$root" && find . -path ./proc -prune -o -path ./tmp -prune -o -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./var/cache -prune -o -print | sort); }
files >"$root/tmp/before"
cp "$deb" "$root/tmp/one.deb"

step "install"
quiet dpkg -i /tmp/one.deb
in_root id bellbird
for g in audio gpio spi i2c input; do in_root id -nG bellbird | grep -qw $g || fail "bellbird is not in the group $g"; done
[ "$(stat -c %a:%u "$root/etc/bellbird/credentials")" = 700:0 ] || fail "the credentials can be read"
for u in multi-user.target.wants/bellbird.service sysinit.target.wants/bellbird-clock.service timers.target.wants/bellbird-clock-save.timer; do
	[ -L "$root/etc/systemd/system/$u" ] || fail "$u is not enabled"
done
in_root dpkg -V bellbird
[ -z "$(in_root dpkg -V bellbird)" ] || fail "a file is not as the package has it"

step "use"
in_root bellbird version
in_root su -s /bin/sh bellbird -c 'cd /tmp && bellbird say --wav /tmp/hello.wav "hello"' || fail "it can't speak"
[ "$(stat -c %s "$root/tmp/hello.wav")" -gt 10000 ] || fail "it says nothing"
in_root env HOME=/tmp bellbird check >"$root/tmp/check" 2>&1 || true # there is no sound card
for part in configuration "wake words" recogniser voice; do
	grep -q "^ok *$part" "$root/tmp/check" || { cat "$root/tmp/check" >&2; fail "check: $part is not ok"; }
done

step "what the services run"
in_root mkdir -p /var/lib/bellbird
in_root /usr/lib/bellbird/check-data /var/lib/bellbird bellbird || fail "check-data"
[ "$(in_root stat -c %U /var/lib/bellbird)" = bellbird ] || fail "check-data: the directory was not given to bellbird"
in_root touch -d 2001-01-01 /var/lib/bellbird/clock
in_root /usr/lib/bellbird/clock-floor save /var/lib/bellbird/clock
[ "$(stat -c %Y "$root/var/lib/bellbird/clock")" -ge "$(stat -c %Y "$root/usr/bin/bellbird")" ] || fail "clock-floor: the time was not kept"

step "upgrade, with a configuration that was changed, and a unit that was switched off"
echo 'volume = 33' >>"$root/etc/bellbird/config.toml"
in_root systemctl disable --quiet bellbird-clock-save.timer
mkdir "$root/tmp/two"
dpkg-deb -R "$deb" "$root/tmp/two/x"
sed -i 's/^Version: .*/&+upgrade/' "$root/tmp/two/x/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -b "$root/tmp/two/x" "$root/tmp/two.deb" >/dev/null
quiet dpkg -i /tmp/two.deb
in_root dpkg-query -W -f '${Version}\n' bellbird | grep -q '+upgrade$' || fail "it was not upgraded"
grep -q '^volume = 33' "$root/etc/bellbird/config.toml" || fail "the configuration was lost"
[ ! -L "$root/etc/systemd/system/timers.target.wants/bellbird-clock-save.timer" ] || fail "what was switched off was switched on"
[ -L "$root/etc/systemd/system/multi-user.target.wants/bellbird.service" ] || fail "the service was switched off"

step "remove"
echo secret >"$root/etc/bellbird/credentials/openai"
quiet dpkg -r bellbird
[ ! -e "$root/usr/bin/bellbird" ] || fail "the program is still there"
[ -e "$root/etc/bellbird/config.toml" ] && [ -e "$root/etc/bellbird/credentials/openai" ] && [ -d "$root/var/lib/bellbird" ] || fail "more than the program was removed"

step "purge"
quiet dpkg -P bellbird
files >"$root/tmp/after"
# The user and the groups stay, in files that were there before.
diff "$root/tmp/before" "$root/tmp/after" | grep '^>' | grep -v -e '/etc/\(passwd\|group\|shadow\|gshadow\)-$' -e '/etc/\.pwd\.lock$' -e '/etc/subuid-' -e '/etc/subgid-' >"$root/tmp/left" || true
[ ! -s "$root/tmp/left" ] || { cat "$root/tmp/left" >&2; fail "this was left behind"; }
echo "test-install: passed"
