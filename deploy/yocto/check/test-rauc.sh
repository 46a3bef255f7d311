#!/bin/sh
# The real RAUC with the layer's system.conf and boot loader: a bundle with a root and a boot partition, as the recipe makes
# it, is installed into the slot that doesn't run, tried, and marked good. Partitions are files; the rest is as on the device.
#
# usage: test-rauc.sh
set -eu
for program in rauc dbus-daemon openssl mksquashfs; do
	command -v $program >/dev/null || { echo "test-rauc: SKIPPED, there is no $program here"; exit 0; }
done
[ "$(id -u)" = 0 ] && [ -e /dev/loop-control ] || { echo "test-rauc: SKIPPED, RAUC mounts bundles, which needs root and loop devices"; exit 0; }

layer=$(cd "$(dirname "$0")/.." && pwd)/meta-bellbird
tmp=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || true; rm -rf "$tmp"' EXIT
fail() { echo "test-rauc: $*" >&2; cat "$tmp/log" >&2; exit 1; }
cd "$tmp"

# Not verity: the kernel of this machine may not have it. Everything else is the layer's.
sed -e 's/@MACHINE@/test/' -e 's/^bundle-formats=.*/bundle-formats=plain/' -e "s#/dev/mmcblk0p#$tmp/p#" \
	-e "s#/var/lib/settings\|/etc/rauc#$tmp#" -e "s#/run/rauc#$tmp/mnt#" \
	-e "s#/usr/lib/bellbird/tryboot#$tmp/backend#" "$layer/recipes-core/rauc/files/system.conf" >system.conf
mkdir select mnt bundle
printf '[all]\ntryboot_a_b=1\nboot_partition=2\n[tryboot]\nboot_partition=3\n' >select/autoboot.txt
printf 'next=A A=good B=bad.\n' >select/slots
echo "rauc.slot=A" >cmdline
printf '#!/bin/sh\nBELLBIRD_SELECT=%s/select BELLBIRD_CMDLINE=%s/cmdline exec %s "$@"\n' "$tmp" "$tmp" \
	"$layer/recipes-bellbird/bellbird-system/files/tryboot" >backend
chmod +x backend
for n in 2 3 5 6; do truncate -s 2M p$n; done

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout key.pem -out keyring.pem -subj /CN=test 2>/dev/null
head -c 1M /dev/urandom >bundle/root.ext4
head -c 1M /dev/urandom >bundle/boot.vfat.img
printf '[update]\ncompatible=bellbird-test\nversion=2\n[image.rootfs]\nfilename=root.ext4\n[image.boot]\nfilename=boot.vfat.img\n' >bundle/manifest.raucm
rauc bundle --cert=keyring.pem --key=key.pem bundle update.raucb >log 2>&1 || fail "no bundle"

cat >bus.conf <<EOF
<busconfig><type>custom</type><listen>unix:path=$tmp/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>
EOF
pids=$(dbus-daemon --config-file=bus.conf --fork --print-pid)
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$tmp/bus
serve() { # SLOT that runs
	rauc --conf=system.conf --override-boot-slot="$1" service >>log 2>&1 &
	service=$!
	pids="$pids $service"
	timeout 20 sh -c "until rauc status >/dev/null 2>&1; do sleep 0.1; done" || fail "RAUC doesn't start"
}

serve A
rauc install update.raucb >>log 2>&1 || fail "the bundle is not installed"
cmp -s -n 1048576 bundle/root.ext4 p6 || fail "the root isn't in partition 6"
cmp -s -n 1048576 bundle/boot.vfat.img p3 || fail "the boot partition isn't 3"
[ -z "$(tr -d '\0' <p5 | head -c 1)$(tr -d '\0' <p2 | head -c 1)" ] || fail "the slot that runs was written to"
[ "$(./backend get-primary)" = B ] || fail "slot B isn't tried next"
grep -A 1 '^.all' select/autoboot.txt | grep -q tryboot_a_b || fail "autoboot.txt was damaged"
[ "$(sed -n 3p select/autoboot.txt)" = boot_partition=2 ] || fail "slot B is taken without having been tried"

kill $service; wait $service || true
echo "rauc.slot=B" >cmdline
serve B
rauc status mark-good >>log 2>&1 || fail "slot B can't be marked good"
[ "$(sed -n 3p select/autoboot.txt)" = boot_partition=3 ] || fail "slot B was marked good and isn't taken"
rauc status mark-active other >>log 2>&1 || fail "the other slot can't be made active"
[ "$(./backend get-primary)" = A ] && [ "$(sed -n 3p select/autoboot.txt)" = boot_partition=3 ] || fail "going back isn't a trial"
echo "test-rauc: installed into slot B, tried, and marked good"
