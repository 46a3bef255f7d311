#!/bin/sh
# Tries what the services run at the start: check-data on a file system that is new, read-only, damaged, full or in use, and
# clock-floor with clocks that are right and wrong. The file system is a file; the mounts are of this process only.
#
# usage: test-scripts.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ "${1:-}" != inside ]; then
	[ "$(id -u)" = 0 ] && losetup -f >/dev/null 2>&1 || { echo "test-scripts: SKIPPED, it needs root and loop devices" >&2; exit 0; }
	exec unshare -m "$0" inside
fi

fail() { echo "test-scripts: $*" >&2; cat "$tmp/said" >&2; exit 1; }
tmp=$(mktemp -d) loop=
trap 'umount "$tmp/data" 2>/dev/null || true; [ -z "$loop" ] || losetup -d "$loop"; umount /etc/fstab 2>/dev/null || true; rm -rf "$tmp"' EXIT
data=$tmp/data
chmod 755 "$tmp" # the owner must get through
mkdir "$data"
truncate -s 64M "$tmp/disk"
mkfs.ext4 -q -F "$tmp/disk"
loop=$(losetup -f --show "$tmp/disk")
echo "$loop $data ext4 defaults 0 2" >"$tmp/fstab"
mount --bind "$tmp/fstab" /etc/fstab
mount "$data"

# check WHAT EXIT-CODE TEXT
check() {
	rc=0
	"$here/check-data" "$data" daemon >"$tmp/said" 2>&1 || rc=$?
	[ "$rc" = "$2" ] || fail "$1: exit code $rc, not $2"
	grep -q "$3" "$tmp/said" || fail "$1: it doesn't say \"$3\""
	echo "test-scripts: check-data: $1"
}
writable() { findmnt -n -o OPTIONS --mountpoint "$data" | grep -q '^rw'; }

check "a new one, that belongs to root" 0 "is given to daemon"
[ "$(stat -c %U "$data")" = daemon ] || fail "it was not given away"
mount -o remount,ro "$data"
check "a read-only one" 0 "is being checked"
writable || fail "it is still read-only"
umount "$data"
debugfs -w -R "set_super_value free_blocks_count 7" "$tmp/disk" 2>/dev/null
debugfs -w -R "set_super_value state 2" "$tmp/disk" 2>/dev/null
mount -o ro "$data"
check "a damaged one" 0 "FILE SYSTEM WAS MODIFIED"
writable || fail "it is still read-only"
dd if=/dev/zero of="$data/big" bs=1M status=none 2>/dev/null || true
check "a full one" 1 "are needed"
rm "$data/big"
mount -o remount,ro "$data"
exec 9<"$data"
check "a read-only one that is in use" 1 "restart the device"
exec 9<&-
"$here/check-data" "$tmp/nothing" daemon || fail "one that isn't there yet is no fault"

# A clock that can be set to anything.
mkdir "$tmp/bin"
printf '#!/bin/sh\ncase $1 in +%%s) cat "%s/now" ;; *) echo "set $3" ;; esac\n' "$tmp" >"$tmp/bin/date"
printf '#!/bin/sh\nexec /usr/bin/touch -d "@$(cat "%s/now")" "$@"\n' "$tmp" >"$tmp/bin/touch"
chmod +x "$tmp/bin/date" "$tmp/bin/touch"
sed "s#^program=.*#program=$tmp/program#" "$here/clock-floor" >"$tmp/clock-floor"
touch -d @1000 "$tmp/program"

# clock NOW set|save WHAT-IS-SET
clock() {
	echo "$1" >"$tmp/now"
	PATH="$tmp/bin:$PATH" sh "$tmp/clock-floor" "$2" "$tmp/saved" >"$tmp/said" 2>&1 || fail "clock-floor $2 at $1"
	[ "$(cat "$tmp/said")" = "$3" ] || fail "clock-floor $2 at $1: not \"$3\""
}
clock 500 set "set @1000" # nothing is saved: the time of the program
clock 2000 set ""
clock 2000 save ""
[ "$(stat -c %Y "$tmp/saved")" = 2000 ] || fail "the time was not saved"
clock 1500 set "set @2000"
clock 1500 save "" # a clock that is behind is not to be saved
[ "$(stat -c %Y "$tmp/saved")" = 2000 ] || fail "the saved time went back"
echo "test-scripts: passed"
