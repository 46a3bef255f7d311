#!/bin/sh
# Makes the disk of the virtual device out of Debian's packages for arm64: a kernel, a small root file system with what
# the appliance needs, and an initramfs that finds it. The machine's own package database is left alone: this apt has
# its own lists, sources and cache.
#
#     deploy/device/fetch.sh DEST
#
# Afterwards DEST has kernel, initrd and root. Offline when done.
set -eu
dest=${1:?usage: fetch.sh DEST}
here=$(cd "$(dirname "$0")" && pwd)
packages="busybox-static libasound2 alsa-utils espeak-ng pocketsphinx-en-us tzdata"
# What the kernel has not built in and the device needs; the first ones to find its root.
early="virtio_pci 9pnet_virtio 9p overlay"
modules="virtio_net snd-aloop spi-gpio"
made=$(cat "$0" "$here/init" "$here/initrd-init" | sha256sum | cut -c 1-16)
[ "$(cat "$dest/.made" 2>/dev/null)" = "$made" ] && exit 0

echo "device: fetching Debian's packages for arm64" >&2
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
apt=$dest/apt debs=$dest/debs
rm -rf "$dest/.made" "$dest/root" "$dest/stage" "$apt"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources.d" "$debs" "$dest/root" "$dest/stage"

# The machine's sources, for the other architecture. Both formats of apt: one line, and paragraphs.
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
	[ -e "$f" ] || continue
	sed -n -e 's/^deb  *\[\([^]]*\)\]/deb [arch=arm64 \1]/p;t' -e 's/^deb  */deb [arch=arm64] /p' "$f"
done >"$apt/sources.list"
for f in /etc/apt/sources.list.d/*.sources; do
	[ -e "$f" ] || continue
	sed -e '/^Architectures:/d' -e "s/^Types:.*/Types: deb\nArchitectures: arm64/" "$f" >"$apt/sources.d/$(basename "$f")"
done
set -- -qq -o Dir::State::lists="$apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" \
	-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/sources.d" \
	-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
apt-get "$@" update || true # other sources than Debian's may lack the architecture; the download tells

# The packages with all that they depend on. The kernel comes without: its dependencies are for installing it.
kernel=$(apt-cache "$@" depends linux-image-arm64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
[ -n "$kernel" ] || { echo "device: apt knows no linux-image-arm64: check the network and the sources of apt" >&2; exit 1; }
all=$(apt-get "$@" --no-install-recommends -y --print-uris install $packages | sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p")
(cd "$debs" && apt-get "$@" download $all "$kernel")

for p in $all; do
	dpkg-deb -x "$(ls -t "$debs/$p"_*.deb | head -n 1)" "$dest/root"
done
rm -rf "$dest/root/usr/share/doc" "$dest/root/usr/share/man" "$dest/root/usr/share/locale"
dpkg-deb -x "$(ls -t "$debs/$kernel"_*.deb | head -n 1)" "$dest/stage/kernel"
cp "$dest/stage/kernel"/boot/vmlinuz-* "$dest/kernel"
version=$(ls "$dest/stage/kernel/lib/modules")
/sbin/depmod -b "$dest/stage/kernel" "$version"

# put TREE MODULE... copies modules and what they need.
put() {
	tree=$1
	shift
	from=$dest/stage/kernel/lib/modules/$version
	to=$tree/lib/modules/$version
	mkdir -p "$to"
	cp "$from"/modules.order "$from"/modules.builtin "$from"/modules.builtin.modinfo "$to"
	for m in "$@"; do
		/sbin/modprobe -d "$dest/stage/kernel" -S "$version" -D "$m" | sed -n 's/^insmod //p'
	done | sort -u | while read -r file _; do
		file=${file#"$dest/stage/kernel/lib/modules/$version/"}
		file=${file##*/modules/$version/}
		mkdir -p "$to/$(dirname "$file")"
		cp "$from/$file" "$to/$file"
	done
	/sbin/depmod -b "$tree" "$version"
}
put "$dest/root" $early $modules
put "$dest/stage/initrd" $early

# busybox is in the place of all programs that no package brought.
mkdir -p "$dest/root/bin" "$dest/root/sbin" "$dest/root/etc" "$dest/root/dev" "$dest/root/proc" "$dest/root/sys" "$dest/root/tmp" "$dest/root/run" \
	"$dest/root/root" "$dest/root/share" "$dest/root/data" "$dest/root/var/lib/bellbird"
for c in sh ls cat cp mv rm mkdir mount umount ifconfig modprobe rmmod sleep kill ps poweroff dd head tail tr wc cut \
	chmod chown ln sync echo test true false date id env sed awk sort uniq nproc touch basename dirname stat du; do
	[ -e "$dest/root/bin/$c" ] || [ -e "$dest/root/usr/bin/$c" ] || [ -e "$dest/root/sbin/$c" ] || ln -s busybox "$dest/root/bin/$c"
done
# kmod's package has no links of the old names.
rm -f "$dest/root/sbin/modprobe" "$dest/root/sbin/rmmod" && ln -sf busybox "$dest/root/bin/modprobe" && ln -sf busybox "$dest/root/bin/rmmod"
install -m 755 "$here/init" "$dest/root/sbin/init"
printf 'root:x:0:0:root:/root:/bin/sh\nbellbird:x:900:900::/var/lib/bellbird:/bin/sh\n' >"$dest/root/etc/passwd"
printf 'root:x:0:\naudio:x:29:bellbird\nbellbird:x:900:\n' >"$dest/root/etc/group"

mkdir -p "$dest/stage/initrd/bin"
cp "$dest/root/bin/busybox" "$dest/stage/initrd/bin/"
ln -s busybox "$dest/stage/initrd/bin/sh"
install -m 755 "$here/initrd-init" "$dest/stage/initrd/init"
(cd "$dest/stage/initrd" && find . | cpio -o -H newc --quiet -R 0:0 | gzip -1) >"$dest/initrd"
rm -rf "$dest/stage" "$apt"
echo "$made" >"$dest/.made"
