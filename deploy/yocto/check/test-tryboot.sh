#!/bin/sh
# Plays the Raspberry Pi's firmware, as its documentation describes it, for the choice of the slot: updates that are kept, that
# fail, that are gone back from, and power cuts between the steps.
#
# usage: test-tryboot.sh
set -eu
tryboot=$(cd "$(dirname "$0")/.." && pwd)/meta-bellbird/recipes-bellbird/bellbird-system/files/tryboot
recipe=$(dirname "$0")/../meta-bellbird/recipes-bsp/bellbird-boot/bellbird-boot_1.0.bb
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export BELLBIRD_SELECT=$tmp/select BELLBIRD_CMDLINE=$tmp/cmdline PATH=$tmp/bin:$PATH
fail() { echo "test-tryboot: $*" >&2; exit 1; }

mkdir "$tmp/bin"
printf '#!/bin/sh\necho "$*" >%s/asked\n' "$tmp" >"$tmp/bin/systemctl"
chmod +x "$tmp/bin/systemctl"

# A new card: the files as the recipe writes them.
new() {
	rm -rf "$BELLBIRD_SELECT"
	mkdir "$BELLBIRD_SELECT"
	python3 - "$recipe" "$BELLBIRD_SELECT" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
for name in ('autoboot.txt', 'slots'):
    body = re.search(r"'%s'\), 'w'\) as f:\n        f.write\('(.*)'\)" % re.escape(name), text).group(1)
    open('%s/%s' % (sys.argv[2], name), 'w').write(body.encode().decode('unicode_escape'))
PY
	start
}
# What the firmware does: the partition of the section that fits, and the flag is gone. The kernel is told the slot.
start() {
	section=all
	[ "${1-}" != tryboot ] || section=tryboot
	p=$(awk -v s="[$section]" '/^\[/ { here = $0 == s } here && sub(/^boot_partition=/, "") { print }' "$BELLBIRD_SELECT/autoboot.txt")
	case $p in 2) s=A ;; 3) s=B ;; *) fail "autoboot.txt names partition \"$p\"" ;; esac
	echo "root=/dev/x rauc.slot=$s quiet" >"$BELLBIRD_CMDLINE"
}
restart() {
	"$tryboot" restart
	case $(cat "$tmp/asked") in
	reboot) start ;;
	"reboot --reboot-argument=0 tryboot") start tryboot ;;
	*) fail "systemctl was called with \"$(cat "$tmp/asked")\"" ;;
	esac
}
power_cut() { start; }
install() { # what RAUC does around writing a slot
	"$tryboot" set-state "$1" bad
	[ "$("$tryboot" get-state "$1")" = bad ] || fail "slot $1 is written to and good"
	"$tryboot" set-primary "$1"
}
is() { # SLOT-THAT-RUNS PRIMARY A B, and the files have their length
	got="$("$tryboot" get-current) $("$tryboot" get-primary) $("$tryboot" get-state A) $("$tryboot" get-state B)"
	[ "$got" = "$*" ] || fail "$step: it is \"$got\" and should be \"$*\""
	[ "$(stat -c %s "$BELLBIRD_SELECT/autoboot.txt"):$(stat -c %s "$BELLBIRD_SELECT/slots")" = 64:21 ] || fail "$step: a file has another length"
}

step="a new card"
new; is A A good bad
restart; is A A good bad

step="an update that is kept"
install B; is A B good good
restart; is B B good good
"$tryboot" set-state B good; is B B good good
restart; is B B good good
power_cut; is B B good good
step="and the next one, back into A"
install A; is B A good good
restart; is A A good good
"$tryboot" set-state A good
power_cut; is A A good good

step="a version that doesn't start"
new; install B; restart; power_cut; is A B good good
"$tryboot" set-state A good; is A B good good # what the appliance says first
"$tryboot" set-primary A; "$tryboot" set-state B bad; is A A good bad
restart; is A A good bad

step="a version that is found to be faulty"
new; install B; restart
"$tryboot" set-primary A; "$tryboot" set-state B bad; is B A good bad
restart; is A A good bad

step="a power cut before the restart: it is tried later"
new; install B; power_cut; is A B good good
restart; is B B good good

step="a power cut while it is being written"
new; "$tryboot" set-state B bad; power_cut; is A A good bad

step="a power cut between the two files of a commit"
new; install B; restart; cp "$BELLBIRD_SELECT/slots" "$tmp/slots"
"$tryboot" set-state B good; cp "$tmp/slots" "$BELLBIRD_SELECT/slots"
power_cut; is B B good good

step="somebody wants the former version"
new; install B; restart; "$tryboot" set-state B good
"$tryboot" set-primary A; is B A good good
restart; "$tryboot" set-state A good; power_cut; is A A good good

step="the running slot is marked as bad"
"$tryboot" set-state A bad; is A B bad good
step="both are"
"$tryboot" set-state B bad; is A A bad bad

step="a slots file that nothing can be made of"
new; head -c 21 /dev/zero >"$BELLBIRD_SELECT/slots"; is A A good good

step="no autoboot.txt"
rm "$BELLBIRD_SELECT/autoboot.txt"
! "$tryboot" get-primary 2>"$tmp/said" || fail "$step: it is not noticed"
grep -q 'autoboot.txt is missing' "$tmp/said" || fail "$step: it says $(cat "$tmp/said")"
! "$tryboot" get-state C 2>/dev/null || fail "a third slot"
echo "test-tryboot: no complaints"
