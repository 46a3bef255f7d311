#!/bin/sh
# Runs Home Assistant, of build/ha/_root, with a directory of configuration. It installs nothing.
#
# usage: run.sh DIRECTORY
set -eu
config=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../../build/ha/_root")
mkdir -p "$root/config"
# The mounts are gone with the process.
exec unshare --mount --propagation private sh -c '
	mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --bind "$2" "$1/config" || exit 1
	exec chroot "$1" env -i PATH=/opt/ha/bin:/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 \
		/opt/ha/bin/hass --config /config --skip-pip --log-no-color' run "$root" "$config"
