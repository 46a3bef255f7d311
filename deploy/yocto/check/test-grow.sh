#!/bin/sh
# A card of 1 GiB, as wic lays it out, is copied onto one of 4 GiB: its last partition must take the rest, and nothing else
# may change; a second time nothing is to be done.
#
# usage: test-grow.sh
set -eu
PATH=$PATH:/sbin:/usr/sbin
command -v sfdisk >/dev/null || { echo "test-grow: SKIPPED, there is no sfdisk here: apt-get install fdisk"; exit 0; }
grow=$(cd "$(dirname "$0")/.." && pwd)/meta-bellbird/recipes-bellbird/bellbird-system/files/grow
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export BELLBIRD_SYS=$tmp/sys BELLBIRD_DEV=$tmp PATH="$tmp/bin:$PATH"
fail() { echo "test-grow: $*" >&2; exit 1; }

table() { sfdisk -d "$tmp/card" | sed -n 's/^.*card\([0-9]\).*start= *\([0-9]*\), size= *\([0-9]*\).*/\1 \2 \3/p'; }
# What the kernel says of the card.
kernel() {
	mkdir -p "$tmp/sys/card"
	echo $(($(stat -c %s "$tmp/card") / 512)) >"$tmp/sys/card/size"
	table | while read -r n start size; do
		mkdir -p "$tmp/sys/cardp$n"
		echo "$start" >"$tmp/sys/cardp$n/start"
		echo "$size" >"$tmp/sys/cardp$n/size"
	done
}
mkdir "$tmp/bin"
printf '#!/bin/sh\necho "$*" >>%s/partx\n' "$tmp" >"$tmp/bin/partx"
chmod +x "$tmp/bin/partx"

truncate -s 1G "$tmp/card"
printf 'label: dos\n,16M,c,*\n,128M,c\n,128M,c\n,+,E\n,100M\n,100M\n,16M\n,256M\n' | sfdisk -q "$tmp/card" 2>/dev/null
table | grep -v '^[48]' >"$tmp/before"
truncate -s 4G "$tmp/card"
kernel
"$grow" card 4 8 2>/dev/null || fail "it fails"
table | grep -v '^[48]' | cmp -s - "$tmp/before" || fail "another partition was changed"
kernel
end=$(($(cat "$tmp/sys/cardp8/start") + $(cat "$tmp/sys/cardp8/size")))
[ $(($(cat "$tmp/sys/card/size") - end)) -lt 65536 ] || fail "the rest of the card is not used"
[ "$(cat "$tmp/partx")" = "--update --nr 8 $tmp/card" ] || fail "the kernel isn't told"
"$grow" card 4 8 || fail "it fails the second time"
[ "$(wc -l <"$tmp/partx")" = 1 ] || fail "it does it again"
echo "test-grow: no complaints"
